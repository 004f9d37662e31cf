// Labels of constant size on the screen: hulls, frames that are scrolled past, and, from far away,
// as many boxes as there is room for.

import { LABEL_SCALE } from "./boxes.js";
import { hullColour } from "./hulls.js";
import { inkOn } from "./looks.js";
import { cutToFit, textWidth, useFont } from "./texts.js";

const CELL = 8;
const MAX_FAR_BOXES = 2500;

/** Which parts of the screen are taken, in cells of 8 pixels. */
class Occupied {
  constructor(port) {
    this.port = port;
    this.columns = Math.ceil(port.w / CELL) + 1;
    this.rows = Math.ceil(port.h / CELL) + 1;
    this.cells = new Uint8Array(this.columns * this.rows);
  }

  _range(x, y, w, h) {
    const clampTo = (v, most) => Math.max(0, Math.min(most - 1, v));
    return [
      clampTo(Math.floor((x - this.port.x) / CELL), this.columns),
      clampTo(Math.floor((y - this.port.y) / CELL), this.rows),
      clampTo(Math.floor((x + w - 0.01 - this.port.x) / CELL), this.columns),
      clampTo(Math.floor((y + h - 0.01 - this.port.y) / CELL), this.rows),
    ];
  }

  mark(x, y, w, h) {
    const [c0, r0, c1, r1] = this._range(x, y, w, h);
    for (let r = r0; r <= r1; r += 1) this.cells.fill(1, r * this.columns + c0, r * this.columns + c1 + 1);
  }

  isFree(x, y, w, h) {
    if (x < this.port.x || x + w > this.port.x + this.port.w) return false;
    const [c0, r0, c1, r1] = this._range(x, y, w, h);
    for (let r = r0; r <= r1; r += 1) {
      for (let c = c0; c <= c1; c += 1) if (this.cells[r * this.columns + c]) return false;
    }
    return true;
  }
}

/** Draw all labels of one pane; the context is in screen coordinates. */
export function drawLabels(ctx, state, shown, port, scale, toScreen) {
  const taken = new Occupied(port);
  for (const hull of shown.hulls) if (hull.label) hullLabel(ctx, state, hull, port, taken, toScreen);
  if (scale >= LABEL_SCALE) {
    breadcrumb(ctx, state, shown.frames, port, scale, toScreen);
  } else {
    farLabels(ctx, state, shown, port, scale, toScreen, taken);
  }
}

function hullLabel(ctx, { theme }, hull, port, taken, toScreen) {
  if (!hull.anchor) return;
  const [sx, sy] = toScreen(...hull.anchor);
  useFont(ctx, theme.font(11, 650));
  const text = cutToFit(ctx, hull.label, 260);
  const width = textWidth(ctx, text) + 14;
  const x = Math.max(port.x + 4, Math.min(sx + 10, port.x + port.w - width - 4));
  const y = sy - 9; // on the outline, so that it covers neither this box nor the one above
  if (y > port.y + port.h || y < port.y - 24) return;
  ctx.beginPath();
  ctx.roundRect(x, y, width, 18, 6);
  const colour = hullColour(hull, theme);
  ctx.fillStyle = colour;
  ctx.fill();
  ctx.fillStyle = inkOn(colour);
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  ctx.fillText(text, x + 7, y + 9.5);
  taken.mark(x, y, width, 18);
}

/** Where we are: titles of the frames around the middle of the view that are scrolled past. */
function breadcrumb(ctx, { picture, theme }, frames, port, scale, toScreen) {
  const middle = port.x + port.w / 2;
  const titles = [];
  for (const box of frames) {
    const [left, top] = toScreen(picture.x(box), picture.y(box));
    const [right, bottom] = [left + picture.w(box) * scale, top + picture.h(box) * scale];
    const past = top + 6 * scale < port.y && bottom > port.y + 60;
    if (past && left < middle && right > middle) titles.push(picture.block(box).title);
  }
  if (!titles.length) return;
  useFont(ctx, theme.font(11.5, 600));
  const text = cutToFit(ctx, titles.join("  ›  "), Math.max(60, port.w * 0.5));
  const width = textWidth(ctx, text) + 20;
  ctx.beginPath();
  ctx.roundRect(port.x + 8, port.y + 8, width, 22, 7);
  ctx.fillStyle = theme.title;
  ctx.fill();
  ctx.strokeStyle = theme.frameEdge;
  ctx.lineWidth = 1;
  ctx.stroke();
  ctx.fillStyle = theme.muted;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  ctx.fillText(text, port.x + 18, port.y + 19.5);
}

function farLabels(ctx, state, shown, port, scale, toScreen, taken) {
  const { picture, theme } = state;
  const rect = (box) => {
    const [x, y] = toScreen(picture.x(box), picture.y(box));
    return [x, y, picture.w(box) * scale, picture.h(box) * scale];
  };
  if (shown.boxes.length > MAX_FAR_BOXES) return;
  for (const box of shown.boxes) taken.mark(...rect(box));
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  frameLabels(ctx, state, shown.frames, rect, taken);
  useFont(ctx, theme.font(10));
  ctx.fillStyle = theme.muted;
  const byImportance = [...shown.boxes].sort((a, b) => importance(state, b) - importance(state, a));
  for (const box of byImportance) {
    const [x, y, w, h] = rect(box);
    const title = picture.isBlock(box) ? picture.block(box).title : state.scene.label(picture.node(box));
    const text = cutToFit(ctx, title, 110);
    const width = textWidth(ctx, text);
    if (taken.isFree(x + w + 9, y + h / 2 - 5, width, 10)) {
      ctx.globalAlpha = state.looks[box].alpha;
      ctx.fillText(text, x + w + 9, y + h / 2 + 0.5);
      taken.mark(x + w + 9, y + h / 2 - 5, width, 10);
    }
  }
  ctx.globalAlpha = 1;
}

function frameLabels(ctx, { picture, theme }, frames, rect, taken) {
  useFont(ctx, theme.font(11, 650));
  for (const box of frames) {
    const [x, y, w, h] = rect(box);
    if (h < 26) continue;
    const text = cutToFit(ctx, picture.block(box).title, 150);
    const width = textWidth(ctx, text);
    const left = [x + 4, x - width - 7].find(
      (at) => (at < x || w > width + 8) && taken.isFree(at, y + 1, width, 12),
    );
    if (left === undefined) continue;
    ctx.fillStyle = theme.text;
    ctx.fillText(text, left, y + 8);
    taken.mark(left, y + 1, width, 12);
  }
}

function importance({ picture, looks, matches, selectedBoxes }, box) {
  const { value, mark } = looks[box];
  if (selectedBoxes.has(box) || matches.has(box) || mark) return 1e30;
  if (picture.isBlock(box)) return 1e20;
  return Number.isFinite(value) ? value : picture.incoming[box].length + picture.outgoing[box].length;
}
