// One pane: everything visible, from the back to the front. Works on a canvas and on the recorder.

import { drawBoxes, drawFrameTitles, drawFrames, drawStubs } from "./boxes.js";
import { STATUS } from "./data.js";
import { drawHulls } from "./hulls.js";
import { drawLabels } from "./labels.js";
import { drawBatch, drawLines } from "./lines.js";
import { useFont } from "./texts.js";

/** Paint one pane of the view into a viewport {x, y, w, h} (screen pixels), at a pixel ratio. */
export function paintPane(ctx, state, camera, port, ratio, pane) {
  const { theme } = state;
  ctx.egFont = null;
  ctx.save();
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.beginPath();
  ctx.rect(port.x, port.y, port.w, port.h);
  ctx.clip();
  ctx.fillStyle = theme.bg;
  ctx.fillRect(port.x, port.y, port.w, port.h);
  if (state.picture.count) paintGraph(ctx, state, camera, port, ratio, pane);
  ctx.restore();
  ctx.egFont = null;
}

function paintGraph(ctx, state, camera, port, ratio, pane) {
  const view = camera.view(port);
  const scale = camera.scale;
  const [ox, oy] = camera.offset(port);
  const shown = visibleThings(state, view, pane);
  ctx.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * ox, ratio * oy);
  drawFrames(ctx, state, shown.frames, scale);
  drawHulls(ctx, state, shown.hulls, view, scale);
  drawLines(ctx, state.picture, shown.lines, state.lineLooks, scale);
  if (state.hover?.line >= 0) hoveredLine(ctx, state, scale);
  drawFrameTitles(ctx, state, shown.frames, scale);
  drawGhosts(ctx, state, shown.ghosts, scale);
  drawBoxes(ctx, state, shown.boxes, scale);
  drawStubs(ctx, state, shown.stubs, scale);
  drawRings(ctx, state, shown, scale);
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  drawLabels(ctx, state, shown, port, scale, (x, y) => [ox + x * scale, oy + y * scale]);
}

/** What is in view, without what the other pane of a comparison shows alone. */
function visibleThings(state, view, pane) {
  const { picture, lineLooks } = state;
  const absent = pane === "before" ? STATUS.ADDED : pane === "after" ? STATUS.REMOVED : -1;
  const boxes = picture.boxesIn(view);
  const here = (box) => absent < 0 || state.looks[box].status !== absent;
  return {
    boxes: absent < 0 ? boxes : boxes.filter(here),
    ghosts: absent < 0 ? [] : boxes.filter((box) => !here(box)),
    frames: picture.framesIn(view),
    lines: picture.linesIn(view).filter(
      (line) => (absent < 0 || picture.lineStatus[line] !== absent) && lineLooks.styles.length,
    ),
    stubs: picture.stubsIn(view).filter((stub) => here(picture.stubs[stub * 4])),
    hulls: state.site ? [...state.hulls, state.site] : state.hulls,
  };
}

/** Where the other pane has a box, a faint outline keeps the place. */
function drawGhosts(ctx, { picture, theme }, ghosts, scale) {
  if (!ghosts.length) return;
  ctx.strokeStyle = theme.faint;
  ctx.globalAlpha = 0.55;
  ctx.lineWidth = Math.max(1, 0.6 / scale);
  ctx.setLineDash([3, 5]);
  ctx.beginPath();
  for (const box of ghosts) {
    ctx.roundRect(picture.x(box), picture.y(box), picture.w(box), picture.h(box), 8);
  }
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.globalAlpha = 1;
}

function hoveredLine(ctx, state, scale) {
  const line = state.hover.line;
  const style = state.lineLooks.styles[state.lineLooks.of[line]];
  drawBatch(ctx, state.picture, [line], {
    ...style, colour: state.theme.brand, width: Math.max(style.width + 1, 2.4), alpha: 1,
  }, scale);
}

/** Selection, search matches, hover and keyboard position. */
function drawRings(ctx, state, shown, scale) {
  const { theme, selectedBoxes, matches, hover, focusBox, currentMatch } = state;
  const grow = Math.max(1, 0.55 / scale);
  for (const box of shown.boxes) {
    if (matches.has(box)) ring(ctx, state, box, "#E69F00", 2 * grow, 4 * grow, [2 * grow, 3 * grow]);
    if (box === currentMatch) ring(ctx, state, box, "#E69F00", 3 * grow, 4 * grow, []);
    if (selectedBoxes.has(box)) {
      ring(ctx, state, box, theme.halo, 7 * grow, 3.5 * grow, []);
      ring(ctx, state, box, theme.brand, 2.6 * grow, 1, []);
    } else if (hover?.box === box) {
      ring(ctx, state, box, theme.brand, 1.6 * grow, 0.5, []);
    }
    if (state.focused && box === focusBox) {
      ring(ctx, state, box, theme.text, 1.6 * grow, 7 * grow, [5 * grow, 4 * grow]);
    }
  }
}

function ring(ctx, { picture }, box, colour, width, gap, dash) {
  ctx.strokeStyle = colour;
  ctx.lineWidth = width;
  ctx.setLineDash(dash);
  ctx.beginPath();
  const [x, y, w, h] = [picture.x(box), picture.y(box), picture.w(box), picture.h(box)];
  ctx.roundRect(x - gap, y - gap, w + 2 * gap, h + 2 * gap, 8 + gap);
  ctx.stroke();
  ctx.setLineDash([]);
}

/** Title of a pane of a comparison. */
export function paintPaneTitle(ctx, state, port, ratio, title, note) {
  const { theme } = state;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.egFont = null;
  useFont(ctx, theme.font(12.5, 650));
  const width = ctx.measureText(title).width;
  useFont(ctx, theme.font(11.5));
  const noteWidth = note ? ctx.measureText(note).width + 10 : 0;
  const whole = width + noteWidth + 22;
  const x = port.x + (port.w - whole) / 2;
  ctx.beginPath();
  ctx.roundRect(x, port.y + 8, whole, 24, 12);
  ctx.fillStyle = theme.title;
  ctx.fill();
  ctx.strokeStyle = theme.border;
  ctx.lineWidth = 1;
  ctx.stroke();
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  ctx.fillStyle = theme.muted;
  if (note) ctx.fillText(note, x + 21 + width, port.y + 20.5);
  useFont(ctx, theme.font(12.5, 650));
  ctx.fillStyle = theme.text;
  ctx.fillText(title, x + 11, port.y + 20.5);
  ctx.egFont = null;
}
