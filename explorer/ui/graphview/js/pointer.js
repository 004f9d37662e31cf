// Mouse, pen and touch: hover, select, pan, zoom, lasso, open and close.

import { signOf } from "./boxes.js";
import { lineDistance } from "./lines.js";

const CLICK_MOVE = 4;

/** What is at a point of the world: {box, line, stub, sign}; -1 where nothing is. */
export function hitTest(state, wx, wy, scale) {
  const { picture } = state;
  const near = 4 / scale;
  const hit = { box: -1, line: -1, stub: -1, sign: false };
  const area = [wx - near, wy - near, wx + near, wy + near];
  for (const box of picture.boxesIn([wx, wy, wx, wy])) {
    hit.box = box;
    hit.sign = picture.isBlock(box) && onSign(picture, box, wx, wy);
    return hit;
  }
  for (const stub of picture.stubsIn(area)) {
    const [x, y] = [picture.stubPoints[stub * 2] + 10, picture.stubPoints[stub * 2 + 1]];
    if (wx >= x && wx <= x + 130 && wy >= y && wy <= y + 18) {
      hit.stub = stub;
      return hit;
    }
  }
  for (const box of picture.framesIn([wx, wy, wx, wy]).reverse()) {
    if (wy > picture.y(box) + 30) continue;
    hit.box = box;
    hit.sign = onSign(picture, box, wx, wy);
    return hit;
  }
  let best = (6 / scale) ** 2;
  for (const line of picture.linesIn(area)) {
    const distance = lineDistance(picture, line, wx, wy);
    if (distance < best) [best, hit.line] = [distance, line];
  }
  return hit;
}

function onSign(picture, box, wx, wy) {
  const [x, y, r] = signOf(picture, box);
  return (wx - x) ** 2 + (wy - y) ** 2 <= r * r;
}

/** Listen on the canvas and call ``actions``. */
export class Pointer {
  constructor(canvas, actions) {
    this.canvas = canvas;
    this.actions = actions;
    this.down = null;
    this.touches = new Map();
    const on = (name, handler, options) => canvas.addEventListener(name, handler.bind(this), options);
    on("wheel", this._wheel, { passive: false });
    on("pointerdown", this._pointerDown);
    on("pointermove", this._pointerMove);
    on("pointerup", this._pointerUp);
    on("pointercancel", this._pointerCancel);
    on("pointerleave", () => this.actions.hover(null));
    on("dblclick", this._doubleClick);
  }

  _place(event) {
    const rect = this.canvas.getBoundingClientRect();
    return [event.clientX - rect.left, event.clientY - rect.top];
  }

  _wheel(event) {
    event.preventDefault();
    event.stopPropagation();
    const unit = event.deltaMode === 1 ? 24 : event.deltaMode === 2 ? 400 : 1;
    const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
    if (event.shiftKey || event.altKey) this.actions.pan(-(dx || dy), dx ? -dy : 0);
    else if (Math.abs(dx) > Math.abs(dy) * 1.5) this.actions.pan(-dx, 0);
    else this.actions.zoomAt(...this._place(event), Math.exp(-dy * (event.ctrlKey ? 0.01 : 0.0016)));
  }

  _pointerDown(event) {
    if (event.button !== 0 && event.button !== 1) return;
    event.stopPropagation();
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    const place = this._place(event);
    this.touches.set(event.pointerId, place);
    const lasso = event.shiftKey && event.button === 0 && !this.actions.isBox(...place);
    this.down = { start: place, last: place, moved: false, lasso: lasso ? [place] : null, shift: event.shiftKey };
  }

  _pointerMove(event) {
    const place = this._place(event);
    if (!this.down) {
      this.actions.hover(place);
      return;
    }
    if (this.touches.size === 2) {
      this._pinch(event, place);
      return;
    }
    const { start, last, lasso } = this.down;
    if (Math.hypot(place[0] - start[0], place[1] - start[1]) > CLICK_MOVE) this.down.moved = true;
    if (this.down.moved && lasso) {
      lasso.push(place);
      this.actions.lasso(lasso, false);
    } else if (this.down.moved) {
      this.actions.pan(place[0] - last[0], place[1] - last[1]);
    }
    this.down.last = place;
    this.touches.set(event.pointerId, place);
  }

  _pinch(event, place) {
    const [otherId] = [...this.touches.keys()].filter((id) => id !== event.pointerId);
    const other = this.touches.get(otherId);
    const old = this.touches.get(event.pointerId);
    const gap = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]) || 1;
    const middle = [(place[0] + other[0]) / 2, (place[1] + other[1]) / 2];
    this.actions.zoomAt(...middle, gap(place, other) / gap(old, other));
    this.touches.set(event.pointerId, place);
    this.down.moved = true;
  }

  _pointerUp(event) {
    this.touches.delete(event.pointerId);
    if (!this.down) return;
    const { moved, lasso, shift } = this.down;
    this.down = null;
    if (lasso && moved) this.actions.lasso(lasso, true);
    else if (!moved && event.button === 0) this.actions.click(this._place(event), shift);
  }

  _pointerCancel(event) {
    this.touches.delete(event.pointerId);
    if (this.down?.lasso) this.actions.lasso([], true);
    this.down = null;
  }

  _doubleClick(event) {
    event.preventDefault();
    this.actions.doubleClick(this._place(event));
  }
}

/** Whether a point lies inside a polygon. */
export function insidePolygon(polygon, x, y) {
  let inside = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i, i += 1) {
    const [xi, yi] = polygon[i];
    const [xj, yj] = polygon[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
}
