// What part of the graph the camera shows: at first, on request, and when the layout changes.

import { centre } from "./keyboard.js";

const TOP_MARGIN = 26;
const SIDE_MARGIN = 30;
const MAP_ROOM = 106; // right of what should be seen, where the map lies
const READABLE = [0.45, 1.6]; // scales at which the camera is not changed to show something

export class Framing {
  constructor(view) {
    this.view = view;
    this.anchor = null;
  }

  get picture() { return this.view.state.picture; }
  get camera() { return this.view.camera; }
  get port() { return this.view.ports()[0].port; }

  /** The camera that shows a world rectangle beside the map. */
  _beside(extent, margin = 28, most = 1) {
    const { port } = this;
    const room = this.view.minimap.canvas.hidden || port.w < 4 * MAP_ROOM ? 0 : MAP_ROOM;
    const [x, y, scale] = this.camera.fitting({ ...port, w: port.w - room }, extent, margin, most);
    return [x + room / 2 / scale, y, scale];
  }

  _go(glide, goal) {
    this.camera[glide ? "glideTo" : "set"](...goal);
    this.view.touch("paint");
  }

  /** The changes of a comparison, else the whole if it is readable, else the top at 1:1. */
  first() {
    const changes = this._extentOf(this._changedBoxes());
    if (changes) this.lookAt(changes, false, 1.1);
    else this.top(false);
  }

  top(glide) {
    const { picture, port } = this;
    const whole = this.camera.fitting(port, [0, 0, picture.width, picture.height]);
    if (whole[2] > 0.72) this._go(glide, whole);
    else this._go(glide, [this._topMiddle(port), port.h / 2 - TOP_MARGIN, 1]);
  }

  /** Middle of the first boxes; if the whole width fits, everything stays in view. */
  _topMiddle(port) {
    const { picture } = this;
    const xs = picture.boxesIn([-1e9, 0, 1e9, 160]).map((box) => centre(picture, box)[0]);
    const middle = xs.length ? (Math.min(...xs) + Math.max(...xs)) / 2 : picture.width / 2;
    const room = port.w / 2 - SIDE_MARGIN;
    if (picture.width > 2 * room) return middle;
    return Math.min(Math.max(middle, picture.width - room), room);
  }

  bottom() {
    const { camera, picture } = this;
    this._go(true, [camera.x, picture.height - this.port.h / 2 / camera.scale, camera.scale]);
  }

  page(sign) {
    const { camera } = this;
    this._go(true, [camera.x, camera.y + (sign * this.port.h * 0.8) / camera.scale, camera.scale]);
  }

  fit() {
    const { picture } = this;
    this._go(true, this._beside([0, 0, picture.width, picture.height]));
  }

  zoomMiddle(factor) {
    const { port } = this;
    this.camera.zoomAt(port, port.x + port.w / 2, port.y + port.h / 2, factor);
    this.view.touch("paint");
  }

  _extentOf(boxes) {
    const { picture } = this;
    if (!boxes.length) return null;
    return boxes.reduce(
      ([l, t, r, b], box) => [
        Math.min(l, picture.x(box)),
        Math.min(t, picture.y(box)),
        Math.max(r, picture.x(box) + picture.w(box)),
        Math.max(b, picture.y(box) + picture.h(box)),
      ],
      [Infinity, Infinity, -Infinity, -Infinity],
    );
  }

  _changedBoxes() {
    const { scene, comparing } = this.view.state;
    if (!comparing) return [];
    const boxes = new Set();
    for (let node = 0; node < scene.count; node += 1) {
      if (scene.status(node)) boxes.add(this.picture.home[node]);
    }
    return [...boxes];
  }

  /** Show a world rectangle with some of what is around it; the top of it if it is very large. */
  lookAt([left, top, right, bottom], glide = true, most = 1) {
    const goal = this._beside([left - 40, top - 60, right + 40, bottom + 60], 20, most);
    if (goal[2] < 0.3) {
      goal.splice(0, 3, (left + right) / 2, Math.min((top + bottom) / 2, top + this.port.h), 0.3);
    }
    this._go(glide, goal);
  }

  /** Bring boxes into view, moving no more than needed. */
  show(boxes) {
    const extent = this._extentOf(boxes);
    if (!extent) return;
    const { camera, port } = this;
    const [left, top, right, bottom] = camera.view(port);
    const [l, t, r, b] = extent;
    const readable = camera.scale >= READABLE[0] && camera.scale <= READABLE[1];
    const inView = l >= left && r <= right && t >= top + 30 / camera.scale && b <= bottom;
    if (readable && inView) return;
    if (readable && r - l < (right - left) * 0.8 && b - t < (bottom - top) * 0.8) {
      this._go(true, [(l + r) / 2, (t + b) / 2, camera.scale]);
    } else {
      this.lookAt(extent);
    }
  }

  /** The box nearest to the middle of the view, or -1. */
  middleBox() {
    const { picture, camera } = this;
    let [best, least] = [-1, Infinity];
    for (const box of picture.boxesIn(camera.view(this.port))) {
      const [x, y] = centre(picture, box);
      const far = Math.hypot(x - camera.x, y - camera.y);
      if (far < least) [least, best] = [far, box];
    }
    return best;
  }

  /** Remember where a box (-1: the middle one) is, so that it stays there when blocks open. */
  holdStill(box) {
    const { picture } = this;
    const { scene } = this.view.state;
    const at = box >= 0 ? box : this.middleBox();
    if (at < 0) return;
    this.anchor = {
      block: picture.block(at)?.id ?? null,
      ids: picture.nodesOf(at).map((node) => scene.id(node)),
      place: this._topOf(at),
    };
  }

  _topOf(box) {
    const { picture } = this;
    return this.camera.toScreen(this.port, picture.x(box) + picture.w(box) / 2, picture.y(box));
  }

  /** Move the camera so that what was held still is where it was. */
  keepAnchor() {
    const { anchor, picture, camera } = this;
    this.anchor = null;
    if (!anchor) return;
    const [node] = this.view.state.scene.indices(anchor.ids);
    const box = picture.boxOfBlock.get(anchor.block) ?? picture.home[node];
    if (box === undefined) {
      camera.keepIn(picture.width, picture.height);
      return;
    }
    const [x, y] = this._topOf(box);
    camera.pan(anchor.place[0] - x, anchor.place[1] - y);
    camera.keepIn(picture.width, picture.height);
  }
}
