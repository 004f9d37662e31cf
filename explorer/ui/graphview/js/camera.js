// Which part of the picture is on the screen.

const MIN_SCALE = 0.002;
const MAX_SCALE = 4;
const MOVE_MS = 220;

/** World point (x, y) in the middle of the view, and pixels per world unit. */
export class Camera {
  constructor() {
    this.x = 0;
    this.y = 0;
    this.scale = 1;
    this.goal = null;
  }

  /** World to screen, for a viewport {x, y, w, h}. */
  offset(port) {
    return [
      port.x + port.w / 2 - this.x * this.scale,
      port.y + port.h / 2 - this.y * this.scale,
    ];
  }

  toWorld(port, sx, sy) {
    const [ox, oy] = this.offset(port);
    return [(sx - ox) / this.scale, (sy - oy) / this.scale];
  }

  toScreen(port, wx, wy) {
    const [ox, oy] = this.offset(port);
    return [ox + wx * this.scale, oy + wy * this.scale];
  }

  /** Visible part of the world: left, top, right, bottom. */
  view(port) {
    const [left, top] = this.toWorld(port, port.x, port.y);
    return [left, top, left + port.w / this.scale, top + port.h / this.scale];
  }

  zoomAt(port, sx, sy, factor) {
    this.goal = null;
    const [wx, wy] = this.toWorld(port, sx, sy);
    this.scale = clampScale(this.scale * factor);
    this.x = wx - (sx - port.x - port.w / 2) / this.scale;
    this.y = wy - (sy - port.y - port.h / 2) / this.scale;
  }

  pan(dx, dy) {
    this.goal = null;
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
  }

  set(x, y, scale) {
    this.goal = null;
    [this.x, this.y, this.scale] = [x, y, clampScale(scale)];
  }

  /** Keep the middle of the view within the picture. */
  keepIn(width, height) {
    this.x = Math.max(0, Math.min(width, this.x));
    this.y = Math.max(0, Math.min(height, this.y));
  }

  /** The view that shows a world rectangle, not larger than ``most``. */
  fitting(port, [left, top, right, bottom], margin = 28, most = 1) {
    const scale = Math.min(
      (port.w - 2 * margin) / Math.max(right - left, 1),
      (port.h - 2 * margin) / Math.max(bottom - top, 1),
      most,
    );
    return [(left + right) / 2, (top + bottom) / 2, clampScale(scale)];
  }

  glideTo(x, y, scale, still) {
    if (still || matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.set(x, y, scale);
      return;
    }
    const from = [this.x, this.y, this.scale];
    this.goal = { from, to: [x, y, clampScale(scale)], start: performance.now() };
  }

  /** Advance a glide; whether it is still under way. */
  step(now) {
    if (!this.goal) return false;
    const { from, to, start } = this.goal;
    const t = Math.min(1, (now - start) / MOVE_MS);
    const ease = 1 - (1 - t) ** 3;
    this.scale = from[2] * (to[2] / from[2]) ** ease;
    this.x = from[0] + (to[0] - from[0]) * ease;
    this.y = from[1] + (to[1] - from[1]) * ease;
    if (t >= 1) this.goal = null;
    return this.goal !== null;
  }
}

function clampScale(scale) {
  return Math.max(MIN_SCALE, Math.min(MAX_SCALE, scale));
}
