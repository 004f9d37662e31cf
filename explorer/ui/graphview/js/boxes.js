// Boxes, closed blocks, frames and stubs, in as much detail as the zoom allows.

import { KIND, STATUS } from "./data.js";
import { inkOn } from "./looks.js";
import { cutToFit, fittedText, lastPart, textWidth, useFont } from "./texts.js";
import { formatValue } from "./units.js";

export const FULL_SCALE = 0.58; // above: label and shape
export const LABEL_SCALE = 0.26; // above: label only, in larger letters
const RADIUS = 8;
const MARK_SIGNS = { [STATUS.ADDED]: "+", [STATUS.REMOVED]: "−", [STATUS.CHANGED]: "~" };

/** Frames from the outside in, with their titles. */
export function drawFrames(ctx, state, frames, scale) {
  const { picture, theme, looks } = state;
  for (const box of frames) {
    const [x, y, w, h] = [picture.x(box), picture.y(box), picture.w(box), picture.h(box)];
    ctx.globalAlpha = looks[box].alpha;
    ctx.beginPath();
    ctx.roundRect(x, y, w, h, 12);
    ctx.fillStyle = theme.frame;
    ctx.fill();
    ctx.strokeStyle = theme.frameEdge;
    ctx.lineWidth = Math.max(1, 0.7 / scale);
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
}

/** Titles of frames; drawn after the lines, which run through title bars. */
export function drawFrameTitles(ctx, state, frames, scale) {
  if (scale < LABEL_SCALE) return;
  for (const box of frames) {
    ctx.globalAlpha = state.looks[box].alpha;
    frameTitle(ctx, state, box, scale);
  }
  ctx.globalAlpha = 1;
}

function frameTitle(ctx, state, box, scale) {
  const { picture, theme } = state;
  const [x, y, w] = [picture.x(box), picture.y(box), picture.w(box)];
  const size = Math.min(20, Math.max(12, 8.5 / scale));
  const block = picture.block(box);
  drawSign(ctx, theme, x + 17, y + 16, "−", Math.min(11, size * 0.62));
  useFont(ctx, theme.font(size, 600));
  ctx.fillStyle = theme.muted;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  const title = cutToFit(ctx, block.title, w - 48);
  const used = textWidth(ctx, title) + 44;
  ctx.fillText(title, x + 32, y + 16.5);
  if (scale < FULL_SCALE) return;
  useFont(ctx, theme.font(11));
  ctx.fillStyle = theme.faint;
  ctx.textAlign = "right";
  fittedText(ctx, `${block.count} nodes`, x + w - 12, y + 17, w - used - 10);
}

function drawSign(ctx, theme, x, y, sign, radius) {
  ctx.beginPath();
  ctx.arc(x, y, radius, 0, Math.PI * 2);
  ctx.fillStyle = theme.bg;
  ctx.fill();
  ctx.strokeStyle = theme.faint;
  ctx.lineWidth = 1.2;
  ctx.stroke();
  const half = radius * 0.5;
  ctx.beginPath();
  ctx.moveTo(x - half, y);
  ctx.lineTo(x + half, y);
  if (sign === "+") {
    ctx.moveTo(x, y - half);
    ctx.lineTo(x, y + half);
  }
  ctx.strokeStyle = theme.text;
  ctx.stroke();
}

/** Where the sign that opens or closes a block is: centre and radius for clicks. */
export function signOf(picture, box) {
  if (picture.isFrame(box)) return [picture.x(box) + 17, picture.y(box) + 16, 14];
  return [picture.x(box) + picture.w(box) - 20, picture.y(box) + 20, 14];
}

/** All boxes that are not frames. */
export function drawBoxes(ctx, state, boxes, scale) {
  if (scale < LABEL_SCALE) {
    drawFlat(ctx, state, boxes);
    for (const box of boxes) if (state.looks[box].mark) drawMark(ctx, state, box, scale);
    return;
  }
  for (const box of boxes) {
    ctx.globalAlpha = state.looks[box].alpha;
    if (state.picture.isBlock(box)) drawBlock(ctx, state, box, scale);
    else drawNode(ctx, state, box, scale);
    if (state.looks[box].mark) drawMark(ctx, state, box, scale);
  }
  ctx.globalAlpha = 1;
}

/** Far away: plain rectangles, one path per colour. */
function drawFlat(ctx, { picture, looks }, boxes) {
  const byColour = new Map();
  for (const box of boxes) {
    const key = `${looks[box].flat}|${looks[box].alpha}`;
    if (!byColour.has(key)) byColour.set(key, []);
    byColour.get(key).push(box);
  }
  for (const group of byColour.values()) {
    ctx.globalAlpha = looks[group[0]].alpha;
    ctx.fillStyle = looks[group[0]].flat;
    ctx.beginPath();
    for (const box of group) ctx.rect(picture.x(box), picture.y(box), picture.w(box), picture.h(box));
    ctx.fill();
  }
  ctx.globalAlpha = 1;
}

function card(ctx, theme, x, y, w, h, radius, colours) {
  ctx.beginPath();
  ctx.roundRect(x, y + 1.5, w, h, radius);
  ctx.fillStyle = theme.shadow;
  ctx.fill();
  ctx.beginPath();
  ctx.roundRect(x, y, w, h, radius);
  ctx.fillStyle = colours.fill;
  ctx.fill();
  ctx.strokeStyle = colours.border;
  ctx.lineWidth = 1.1;
  ctx.stroke();
}

function drawNode(ctx, state, box, scale) {
  const { picture, scene, theme, looks } = state;
  const [x, y, w, h] = [picture.x(box), picture.y(box), picture.w(box), picture.h(box)];
  const { colours, value } = looks[box];
  const node = picture.node(box);
  const pill = picture.code(box) !== KIND.OP;
  card(ctx, theme, x, y, w, h, pill ? h / 2 : RADIUS, colours);
  if (!pill) accentBar(ctx, x, y, h, colours.accent);
  ctx.textBaseline = "middle";
  if (pill) {
    drawPill(ctx, state, node, [x, y, w, h], colours, scale);
    return;
  }
  const left = x + 15;
  const room = w - 24;
  if (scale < FULL_SCALE) {
    ctx.fillStyle = colours.text;
    ctx.textAlign = "left";
    largeLabel(ctx, theme, shortLabel(scene.label(node)), left, y + h / 2 + 1, room, scale);
    return;
  }
  nodeTexts(ctx, state, node, colours, valueText(state, value), left, y, room);
}

/** One line in letters that stay readable from afar; a little smaller where it would be cut. */
function largeLabel(ctx, theme, text, x, y, room, scale) {
  const size = Math.min(25, 11.5 / scale);
  useFont(ctx, theme.font(Math.round(size), 600));
  if (textWidth(ctx, text) > room) useFont(ctx, theme.font(Math.round(size * 0.8), 600));
  fittedText(ctx, text, x, y, room);
}

/** Operator names are long; from afar the usual abbreviations are easier to read than a cut. */
export function shortLabel(label) {
  return label.replace("Normalization", "Norm").replace("Average", "Avg").replace("Convolution", "Conv");
}

function accentBar(ctx, x, y, h, colour) {
  ctx.beginPath();
  ctx.roundRect(x, y, 5.5, h, [RADIUS, 0, 0, RADIUS]);
  ctx.fillStyle = colour;
  ctx.fill();
}

export function valueText(state, value) {
  if (typeof value === "string") return value;
  return state.colouring?.kind === "scale" ? formatValue(value, state.colouring.unit) : "";
}

function nodeTexts(ctx, { scene, theme }, node, colours, value, left, y, room) {
  ctx.textAlign = "left";
  useFont(ctx, theme.font(13, 650));
  ctx.fillStyle = colours.text;
  const label = cutToFit(ctx, scene.label(node), room);
  ctx.fillText(label, left, y + 16.5);
  const used = textWidth(ctx, label) + 6;
  useFont(ctx, theme.font(11));
  ctx.fillStyle = colours.muted;
  fittedText(ctx, scene.hint(node), left + used, y + 17, room - used);
  let shapeRoom = room;
  if (value) {
    useFont(ctx, theme.font(11, 600));
    ctx.textAlign = "right";
    ctx.fillStyle = colours.text;
    const shown = cutToFit(ctx, value, room * 0.6);
    ctx.fillText(shown, left + room, y + 33.5);
    shapeRoom -= textWidth(ctx, shown) + 8;
    ctx.textAlign = "left";
    useFont(ctx, theme.font(11));
    ctx.fillStyle = colours.muted;
  }
  fittedText(ctx, scene.detail(node), left, y + 33.5, shapeRoom);
}

function drawPill(ctx, { scene, theme }, node, [x, y, w, h], colours, scale) {
  ctx.textAlign = "center";
  ctx.fillStyle = colours.text;
  if (scale < FULL_SCALE) {
    useFont(ctx, theme.font(Math.round(Math.min(21, 11 / scale)), 600));
    fittedText(ctx, scene.label(node), x + w / 2, y + h / 2 + 1, w - 22);
    return;
  }
  useFont(ctx, theme.font(12, 600));
  fittedText(ctx, scene.label(node), x + w / 2, y + h / 2 - 6, w - 26);
  useFont(ctx, theme.font(10.5));
  ctx.fillStyle = colours.muted;
  fittedText(ctx, scene.detail(node), x + w / 2, y + h / 2 + 8, w - 26);
}

function drawBlock(ctx, state, box, scale) {
  const { picture, theme, looks } = state;
  const [x, y, w, h] = [picture.x(box), picture.y(box), picture.w(box), picture.h(box)];
  const { colours, value } = looks[box];
  for (const shift of [6, 3]) {
    ctx.beginPath();
    ctx.roundRect(x + shift, y + shift, w - shift * 2, h, RADIUS);
    ctx.fillStyle = theme.bg;
    ctx.fill();
    ctx.strokeStyle = colours.border;
    ctx.lineWidth = 1;
    ctx.stroke();
  }
  ctx.beginPath();
  ctx.roundRect(x, y, w, h, RADIUS);
  ctx.fillStyle = theme.bg;
  ctx.fill();
  card(ctx, theme, x, y, w, h, RADIUS, colours);
  blockTexts(ctx, state, box, valueText(state, value), scale);
  mixBar(ctx, state, box, x + 12, y + h - 9, w - 24);
  drawSign(ctx, theme, x + w - 20, y + 20, "+", 9);
}

function blockTexts(ctx, state, box, value, scale) {
  const { picture, theme, looks } = state;
  const [x, y, w] = [picture.x(box), picture.y(box), picture.w(box)];
  const { colours } = looks[box];
  const block = picture.block(box);
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  ctx.fillStyle = colours.text;
  if (scale < FULL_SCALE) {
    largeLabel(ctx, theme, block.title, x + 14, y + 24, w - 50, scale);
    return;
  }
  useFont(ctx, theme.font(13, 650));
  fittedText(ctx, block.title, x + 14, y + 16.5, w - 54);
  useFont(ctx, theme.font(11));
  ctx.fillStyle = colours.muted;
  const count = `${block.count} nodes`;
  fittedText(ctx, value ? `${count} · ${value}` : `${count} · ${block.contents}`, x + 14, y + 33.5, w - 48);
}

/** What a closed block is made of: shares of operator families, as a thin bar. */
function mixBar(ctx, state, box, x, y, width) {
  const { scene, picture } = state;
  const counts = new Map();
  const nodes = picture.nodesOf(box);
  for (const node of nodes) counts.set(scene.family(node), (counts.get(scene.family(node)) ?? 0) + 1);
  let at = x;
  for (const [family, count] of [...counts].sort((a, b) => a[0] - b[0])) {
    const share = (width * count) / nodes.length;
    ctx.fillStyle = scene.families[family]?.colour ?? "#7A8794";
    ctx.fillRect(at, y, Math.max(share - 1, 0.5), 3.5);
    at += share;
  }
}

/** Added, removed, changed: border and sign, so that it does not depend on colour. */
function drawMark(ctx, state, box, scale) {
  const { picture, looks, theme } = state;
  const { mark, status, alpha } = looks[box];
  const [x, y, w, h] = [picture.x(box), picture.y(box), picture.w(box), picture.h(box)];
  const grow = Math.max(1, 0.5 / scale);
  ctx.globalAlpha = alpha;
  ctx.strokeStyle = mark;
  ctx.lineWidth = 2.6 * grow;
  ctx.setLineDash(status === STATUS.REMOVED ? [8 * grow, 5 * grow] : []);
  ctx.beginPath();
  ctx.roundRect(x - 1, y - 1, w + 2, h + 2, picture.code(box) === KIND.OP ? RADIUS + 1 : 10);
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.beginPath();
  ctx.arc(x + w - 2, y + 1, 10 * grow, 0, Math.PI * 2);
  ctx.fillStyle = mark;
  ctx.fill();
  useFont(ctx, theme.font(Math.round(16 * grow), 700));
  ctx.fillStyle = inkOn(mark);
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.fillText(MARK_SIGNS[status] ?? "", x + w - 2, y + 1.5);
  ctx.globalAlpha = 1;
}

/** Labels that stand for tensors with many or far consumers. */
export function drawStubs(ctx, state, stubs, scale) {
  if (scale < LABEL_SCALE) return;
  const { picture, theme, looks } = state;
  for (const stub of stubs) {
    const box = picture.stubs[stub * 4];
    const [x, y] = [picture.stubPoints[stub * 2], picture.stubPoints[stub * 2 + 1]];
    const text = stubText(state, stub);
    const hovered = state.hover?.stub === stub;
    ctx.globalAlpha = looks[box]?.alpha ?? 1;
    useFont(ctx, theme.font(10.5, 500));
    const shown = cutToFit(ctx, text, picture.w(box) - 34);
    const width = textWidth(ctx, shown) + 14;
    ctx.beginPath();
    ctx.roundRect(x + 10, y + 2, width, 15, 7.5);
    ctx.fillStyle = theme.bg;
    ctx.fill();
    ctx.strokeStyle = hovered ? theme.brand : theme.line;
    ctx.lineWidth = 1;
    ctx.setLineDash([3, 2]);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.fillStyle = hovered ? theme.brand : theme.muted;
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    if (scale >= 0.45) ctx.fillText(shown, x + 17, y + 10);
  }
  ctx.globalAlpha = 1;
}

/** What a stub says: the tensor, and how many consumers it has there. */
export function stubText({ picture, scene }, stub) {
  const members = picture.stubMembers(stub);
  const tensors = new Set([...members].map((edge) => scene.tensor(edge)));
  const name = lastPart(scene.tensor(members[0])) || "tensor";
  if (tensors.size > 1) return `${tensors.size} more tensors`;
  return picture.stubIncoming(stub) ? `↳ ${name}` : `${name} → ${members.length}`;
}
