// The whole graph in a narrow strip; ribbons are widened so that they can be seen.

const MAP_WIDTH = 92;
const MAP_MARGIN = 8;
const LEAST_PANE = 420; // in a narrower pane, as in a comparison, it would cover too much of the graph

export class Minimap {
  constructor(parent, onMove) {
    this.canvas = document.createElement("canvas");
    this.canvas.className = "eg-map";
    this.canvas.setAttribute("aria-hidden", "true");
    parent.appendChild(this.canvas);
    this.cache = document.createElement("canvas");
    this.key = "";
    this.dragging = false;
    this._listen(onMove);
  }

  _listen(onMove) {
    const move = (event) => {
      const rect = this.canvas.getBoundingClientRect();
      onMove(
        (event.clientX - rect.left - this.left) / this.sx,
        (event.clientY - rect.top - this.top) / this.sy,
      );
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.dragging = true;
      move(event);
      event.preventDefault();
    });
    this.canvas.addEventListener("pointermove", (event) => this.dragging && move(event));
    this.canvas.addEventListener("pointerup", () => { this.dragging = false; });
    this.canvas.addEventListener("pointercancel", () => { this.dragging = false; });
  }

  /** Show the map if not everything is in view and there is room for it. */
  paint(state, camera, port, height, ratio) {
    const { picture } = state;
    const [left, top, right, bottom] = camera.view(port);
    const all = left <= 0 && top <= 0 && right >= picture.width && bottom >= picture.height;
    this.canvas.hidden = all || !picture.count || height < 120 || port.w < LEAST_PANE;
    if (this.canvas.hidden) return;
    this._scale(picture, height - 16);
    this._resize(ratio);
    this._paintGraph(state, ratio);
    const ctx = this.canvas.getContext("2d");
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, this.canvas.width, this.canvas.height);
    ctx.drawImage(this.cache, 0, 0);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    this._paintView(ctx, state.theme, [left, top, right, bottom]);
  }

  _scale(picture, height) {
    this.mapHeight = height;
    const room = [MAP_WIDTH - 2 * MAP_MARGIN, height - 2 * MAP_MARGIN];
    this.sy = Math.min(room[1] / Math.max(picture.height, 1), 0.14);
    this.sx = Math.min(room[0] / Math.max(picture.width, 1), Math.max(this.sy * 6, 0.1));
    this.left = (MAP_WIDTH - picture.width * this.sx) / 2;
    this.top = MAP_MARGIN;
    this.mapHeight = Math.min(height, picture.height * this.sy + 2 * MAP_MARGIN);
  }

  _resize(ratio) {
    const [w, h] = [Math.round(MAP_WIDTH * ratio), Math.round(this.mapHeight * ratio)];
    if (this.canvas.width === w && this.canvas.height === h) return;
    for (const canvas of [this.canvas, this.cache]) [canvas.width, canvas.height] = [w, h];
    this.canvas.style.width = `${MAP_WIDTH}px`;
    this.canvas.style.height = `${this.mapHeight}px`;
    this.key = "";
  }

  _paintGraph(state, ratio) {
    const key = `${state.revision}|${ratio}`;
    if (this.key === key) return;
    this.key = key;
    const { picture, looks, theme } = state;
    const ctx = this.cache.getContext("2d");
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, this.cache.width, this.cache.height);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = theme.border;
    for (const box of picture.frames) this._rect(ctx, picture, box, 0.35);
    const marked = [];
    for (let box = 0; box < picture.count; box += 1) {
      if (picture.isFrame(box)) continue;
      const { flat, alpha, mark } = looks[box];
      if (mark || state.selectedBoxes.has(box) || state.matches.has(box)) marked.push(box);
      ctx.fillStyle = flat;
      this._rect(ctx, picture, box, Math.max(alpha, 0.25) * 0.85);
    }
    for (const box of marked) {
      ctx.fillStyle = looks[box].mark ?? (state.selectedBoxes.has(box) ? theme.brand : "#E69F00");
      const y = this.top + (picture.y(box) + picture.h(box) / 2) * this.sy;
      ctx.globalAlpha = 1;
      ctx.fillRect(2, y - 1.5, MAP_WIDTH - 4, 3);
    }
    if (state.site?.boxes.length) this._site(ctx, state.site);
    ctx.globalAlpha = 1;
  }

  _rect(ctx, picture, box, alpha) {
    ctx.globalAlpha = alpha;
    ctx.fillRect(
      this.left + picture.x(box) * this.sx,
      this.top + picture.y(box) * this.sy,
      Math.max(picture.w(box) * this.sx, 1.5),
      Math.max(picture.h(box) * this.sy, 0.8),
    );
  }

  _site(ctx, site) {
    const [, top, , bottom] = site.extent;
    ctx.globalAlpha = 1;
    ctx.strokeStyle = site.colour;
    ctx.lineWidth = 2;
    const high = Math.max((bottom - top) * this.sy, 6);
    ctx.strokeRect(3, this.top + ((top + bottom) / 2) * this.sy - high / 2, MAP_WIDTH - 6, high);
  }

  _paintView(ctx, theme, [left, top, right, bottom]) {
    const [x0, y0] = [this.left + left * this.sx, this.top + top * this.sy];
    const [x1, y1] = [this.left + right * this.sx, this.top + bottom * this.sy];
    const x = Math.max(1.5, x0);
    const y = Math.max(1.5, y0);
    const w = Math.max(Math.min(MAP_WIDTH - 1.5, x1) - x, 6);
    const h = Math.max(Math.min(this.mapHeight - 1.5, y1) - y, 5);
    ctx.beginPath();
    ctx.roundRect(x, y, w, h, 3);
    ctx.fillStyle = theme.halo;
    ctx.fill();
    ctx.strokeStyle = theme.brand;
    ctx.lineWidth = 1.5;
    ctx.stroke();
  }
}
