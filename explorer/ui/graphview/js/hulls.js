// Groups and highlighted sites: one shape around boxes and the lines between them.
// Drawn opaque below lines and boxes, outline first, so that overlapping parts melt into one shape.

import { cssColour, mixColours, parseColour } from "./theme.js";

const PAD = 11;
const MAX_BRIDGE = 60;

/** A hull from a list of boxes: the boxes, the lines inside, and where its label goes. */
export function makeHull(picture, boxes, colour, label) {
  const inside = new Set(boxes);
  const lines = [];
  for (const box of inside) {
    for (const line of picture.outgoing[box]) {
      if (inside.has(picture.lineTarget(line))) lines.push(line);
    }
  }
  const extent = [Infinity, Infinity, -Infinity, -Infinity];
  let first = null;
  for (const box of inside) {
    extent[0] = Math.min(extent[0], picture.x(box) - PAD);
    extent[1] = Math.min(extent[1], picture.y(box) - PAD);
    extent[2] = Math.max(extent[2], picture.x(box) + picture.w(box) + PAD);
    extent[3] = Math.max(extent[3], picture.y(box) + picture.h(box) + PAD);
    if (first === null || picture.y(box) < picture.y(first)) first = box;
  }
  const anchor = first === null ? null : [picture.x(first) - PAD, picture.y(first) - PAD];
  return { boxes: [...inside], lines, colour, label, extent, anchor };
}

/** The colour of a hull; "currentcolor" is that of the theme's text, which shows on light and dark. */
export function hullColour(hull, theme) {
  return hull.colour === "currentcolor" ? theme.text : hull.colour;
}

export function drawHulls(ctx, state, hulls, view, scale) {
  const { picture, theme } = state;
  const edge = Math.max(1.8, 1.3 / scale);
  const [left, top, right, bottom] = view;
  for (const hull of hulls) {
    const [l, t, r, b] = hull.extent;
    if (!hull.boxes.length || l > right || r < left || t > bottom || b < top) continue;
    const colour = hullColour(hull, theme);
    fillHull(ctx, picture, hull, view, PAD + edge, colour);
    const soft = mixColours(theme.base.bg, parseColour(colour), theme.dark ? 0.24 : 0.15);
    fillHull(ctx, picture, hull, view, PAD, cssColour(soft));
  }
}

function fillHull(ctx, picture, hull, [left, top, right, bottom], pad, colour) {
  ctx.fillStyle = colour;
  ctx.strokeStyle = colour;
  ctx.beginPath();
  for (const box of hull.boxes) {
    const [x, y, w, h] = [picture.x(box), picture.y(box), picture.w(box), picture.h(box)];
    if (x > right + pad || x + w < left - pad || y > bottom + pad || y + h < top - pad) continue;
    ctx.roundRect(x - pad, y - pad, w + 2 * pad, h + 2 * pad, 9 + pad * 0.5);
  }
  for (const line of hull.lines) bridge(ctx, picture, line, pad);
  ctx.fill();
  ctx.lineWidth = pad * 2;
  ctx.lineCap = "butt";
  ctx.lineJoin = "round";
  ctx.beginPath();
  for (const line of hull.lines) {
    const at = line * 4;
    if (picture.lineBox[at + 1] > bottom || picture.lineBox[at + 3] < top) continue;
    traceMiddle(ctx, picture, line);
  }
  ctx.stroke();
}

/** Close the gap between two boxes right below each other, so that the hull has no waist. */
function bridge(ctx, picture, line, pad) {
  const [a, b] = [picture.lineSource(line), picture.lineTarget(line)];
  const top = picture.y(a) + picture.h(a);
  const gap = picture.y(b) - top;
  const left = Math.max(picture.x(a), picture.x(b)) - pad;
  const right = Math.min(picture.x(a) + picture.w(a), picture.x(b) + picture.w(b)) + pad;
  if (gap <= 0 || gap > MAX_BRIDGE || right - left < 60) return;
  const [start, end] = [top - picture.h(a) / 2, picture.y(b) + picture.h(b) / 2];
  ctx.rect(left, start, right - left, end - start);
}

function traceMiddle(ctx, picture, line) {
  const first = picture.lines[line * 6 + 2];
  const last = first + picture.lines[line * 6 + 3] - 1;
  const p = picture.points;
  ctx.moveTo(p[first * 2], p[first * 2 + 1]);
  for (let i = first + 1; i <= last; i += 1) {
    const [x, y, nx, ny] = [p[i * 2 - 2], p[i * 2 - 1], p[i * 2], p[i * 2 + 1]];
    if (Math.abs(nx - x) < 0.5) ctx.lineTo(nx, ny);
    else ctx.bezierCurveTo(x, y + (ny - y) * 0.55, nx, ny - (ny - y) * 0.55, nx, ny);
  }
}
