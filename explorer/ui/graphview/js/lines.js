// Lines with smooth bends and arrowheads, batched by style.

const SIMPLE_SCALE = 0.16; // below this, straight pieces and no arrowheads
const ARROW = 6.5;

/** Draw lines in the styles of ``looks.lineLooks``. */
export function drawLines(ctx, picture, lines, looks, scale) {
  const byStyle = new Map();
  for (const line of lines) {
    const style = looks.of[line];
    if (!byStyle.has(style)) byStyle.set(style, []);
    byStyle.get(style).push(line);
  }
  for (const number of looks.order) {
    if (byStyle.has(number)) drawBatch(ctx, picture, byStyle.get(number), looks.styles[number], scale);
  }
}

/** Draw these lines in one style. */
export function drawBatch(ctx, picture, lines, style, scale) {
  const thick = (style.width * Math.max(0.42, Math.min(scale, 1.7))) / scale;
  ctx.globalAlpha = style.alpha;
  ctx.strokeStyle = style.colour;
  ctx.fillStyle = style.colour;
  ctx.lineWidth = thick;
  ctx.lineJoin = "round";
  ctx.setLineDash(style.dash && scale > SIMPLE_SCALE ? style.dash.split(",").map(Number) : []);
  const arrows = scale > SIMPLE_SCALE;
  ctx.beginPath();
  for (const line of lines) traceLine(ctx, picture, line, arrows ? ARROW + thick : 0, scale);
  ctx.stroke();
  ctx.setLineDash([]);
  if (arrows) {
    ctx.beginPath();
    for (const line of lines) traceArrow(ctx, picture, line, thick);
    ctx.fill();
  }
  ctx.globalAlpha = 1;
}

function traceLine(ctx, picture, line, shorten, scale) {
  const first = picture.lines[line * 6 + 2];
  const last = first + picture.lines[line * 6 + 3] - 1;
  const p = picture.points;
  let x = p[first * 2];
  let y = p[first * 2 + 1];
  ctx.moveTo(x, y);
  for (let i = first + 1; i <= last; i += 1) {
    const nx = p[i * 2];
    const end = i === last ? shorten * Math.sign(p[i * 2 + 1] - y) : 0;
    const ny = p[i * 2 + 1] - end;
    if (scale <= SIMPLE_SCALE || Math.abs(nx - x) < 0.5) {
      ctx.lineTo(nx, ny);
    } else {
      const pull = (ny - y) * 0.55;
      ctx.bezierCurveTo(x, y + pull, nx, ny - pull, nx, ny);
    }
    x = nx;
    y = ny;
  }
}

function traceArrow(ctx, picture, line, thick) {
  const first = picture.lines[line * 6 + 2];
  const last = first + picture.lines[line * 6 + 3] - 1;
  const x = picture.points[last * 2];
  const y = picture.points[last * 2 + 1];
  const up = Math.sign(y - picture.points[last * 2 - 1]) || 1;
  const long = ARROW + thick * 1.1;
  const half = long * 0.52;
  ctx.moveTo(x, y);
  ctx.lineTo(x - half, y - long * up);
  ctx.lineTo(x + half, y - long * up);
  ctx.closePath();
}

/** Squared distance from a point to a line, through samples of its curve. */
export function lineDistance(picture, line, wx, wy) {
  const first = picture.lines[line * 6 + 2];
  const last = first + picture.lines[line * 6 + 3] - 1;
  const p = picture.points;
  let best = Infinity;
  for (let i = first; i < last; i += 1) {
    const [x0, y0, x1, y1] = [p[i * 2], p[i * 2 + 1], p[i * 2 + 2], p[i * 2 + 3]];
    if (wy < Math.min(y0, y1) - 10 || wy > Math.max(y0, y1) + 10) continue;
    const steps = Math.abs(x1 - x0) < 0.5 ? 1 : 10;
    let [ax, ay] = [x0, y0];
    for (let s = 1; s <= steps; s += 1) {
      const [bx, by] = curvePoint(x0, y0, x1, y1, s / steps);
      best = Math.min(best, segmentDistance(wx, wy, ax, ay, bx, by));
      [ax, ay] = [bx, by];
    }
  }
  return best;
}

function curvePoint(x0, y0, x1, y1, t) {
  const pull = (y1 - y0) * 0.55;
  const u = 1 - t;
  const [a, b, c, d] = [u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t];
  return [(a + b) * x0 + (c + d) * x1, a * y0 + b * (y0 + pull) + c * (y1 - pull) + d * y1];
}

function segmentDistance(px, py, ax, ay, bx, by) {
  const [dx, dy] = [bx - ax, by - ay];
  const long = dx * dx + dy * dy;
  const t = long ? Math.max(0, Math.min(1, ((px - ax) * dx + (py - ay) * dy) / long)) : 0;
  return (px - ax - t * dx) ** 2 + (py - ay - t * dy) ** 2;
}
