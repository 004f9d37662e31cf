// Enough of a canvas context to write what the painter draws as SVG. Names are escaped.

/** Records drawing calls as SVG elements. */
export class Recorder {
  constructor(measure) {
    this._measure = measure;
    this.out = [];
    this.path = [];
    this.globalAlpha = 1;
    this.fillStyle = "#000";
    this.strokeStyle = "#000";
    this.lineWidth = 1;
    this.lineJoin = "miter";
    this.lineCap = "butt";
    this.textAlign = "left";
    this.textBaseline = "middle";
    this.font = "12px sans-serif";
    this._dash = [];
    this._move = "";
  }

  save() {}
  restore() {}
  clip() {}

  setTransform(a, b, c, d, e, f) {
    const still = a === 1 && d === 1 && e === 0 && f === 0;
    this._move = still ? "" : ` transform="matrix(${[a, b, c, d, e, f].map(short).join(" ")})"`;
  }

  setLineDash(dash) { this._dash = dash; }
  beginPath() { this.path = []; }
  moveTo(x, y) { this.path.push(`M${short(x)} ${short(y)}`); }
  lineTo(x, y) { this.path.push(`L${short(x)} ${short(y)}`); }
  closePath() { this.path.push("Z"); }

  bezierCurveTo(...numbers) { this.path.push(`C${numbers.map(short).join(" ")}`); }

  rect(x, y, w, h) {
    this.path.push(`M${short(x)} ${short(y)}h${short(w)}v${short(h)}h${short(-w)}Z`);
  }

  roundRect(x, y, w, h, radii) {
    const list = Array.isArray(radii) ? radii : [radii, radii, radii, radii];
    const [a, b, c, d] = list.map((r) => Math.max(0, Math.min(r, w / 2, h / 2)));
    const arc = (r, dx, dy) => (r ? `a${short(r)} ${short(r)} 0 0 1 ${short(dx)} ${short(dy)}` : "");
    this.path.push(
      `M${short(x + a)} ${short(y)}H${short(x + w - b)}${arc(b, b, b)}V${short(y + h - c)}` +
      `${arc(c, -c, c)}H${short(x + d)}${arc(d, -d, -d)}V${short(y + a)}${arc(a, a, -a)}Z`,
    );
  }

  arc(x, y, r) {
    this.path.push(
      `M${short(x - r)} ${short(y)}a${short(r)} ${short(r)} 0 1 0 ${short(2 * r)} 0` +
      `a${short(r)} ${short(r)} 0 1 0 ${short(-2 * r)} 0Z`,
    );
  }

  fillRect(x, y, w, h) {
    this.out.push(
      `<rect x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}"` +
      ` fill="${escapeXml(this.fillStyle)}"${this._alpha()}${this._move}/>`,
    );
  }

  fill() {
    if (!this.path.length) return;
    this.out.push(
      `<path d="${this.path.join("")}" fill="${escapeXml(this.fillStyle)}"${this._alpha()}${this._move}/>`,
    );
  }

  stroke() {
    if (!this.path.length) return;
    const dash = this._dash.length ? ` stroke-dasharray="${this._dash.map(short).join(" ")}"` : "";
    this.out.push(
      `<path d="${this.path.join("")}" fill="none" stroke="${escapeXml(this.strokeStyle)}"` +
      ` stroke-width="${short(this.lineWidth)}" stroke-linejoin="round"${dash}${this._alpha()}${this._move}/>`,
    );
  }

  measureText(text) {
    if (this._measure.font !== this.font) this._measure.font = this.font;
    return this._measure.measureText(text);
  }

  fillText(text, x, y) {
    const [, weight, size, family] = /^(\d+) ([\d.]+)px (.*)$/.exec(this.font) ?? [null, 400, 12, ""];
    const anchor = { center: "middle", right: "end" }[this.textAlign] ?? "start";
    this.out.push(
      `<text x="${short(x)}" y="${short(y)}" font-size="${size}" font-weight="${weight}"` +
      ` font-family="${escapeXml(family)}" text-anchor="${anchor}" dominant-baseline="central"` +
      ` fill="${escapeXml(this.fillStyle)}"${this._alpha()}${this._move}>${escapeXml(text)}</text>`,
    );
  }

  _alpha() {
    return this.globalAlpha < 1 ? ` opacity="${short(this.globalAlpha)}"` : "";
  }

  /** The finished document. */
  document(width, height, title) {
    return (
      `<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg"` +
      ` width="${short(width)}" height="${short(height)}" viewBox="0 0 ${short(width)} ${short(height)}">` +
      `<title>${escapeXml(title)}</title>\n${this.out.join("\n")}\n</svg>\n`
    );
  }
}

function short(value) {
  return String(Math.round(value * 100) / 100);
}

/** Text that is safe in XML: mark-up escaped, characters that XML forbids replaced. */
export function escapeXml(text) {
  return String(text)
    .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "\uFFFD")
    .replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
