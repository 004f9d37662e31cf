// How every box and line looks in the present state; computed once per change, not per frame.

import { STATUS } from "./data.js";
import { boxColours, cssColour, mixColours, parseColour, scaleColour } from "./theme.js";

const DIM = 0.3;
const KEPT_IN_COMPARISON = 0.5;
const NO_CLASS = 255;

/** Colours, alpha and value text of every box. */
export function boxLooks(state) {
  const { picture } = state;
  const paint = painterOf(state);
  const looks = new Array(picture.count);
  for (let box = 0; box < picture.count; box += 1) {
    if (picture.isFrame(box)) {
      looks[box] = { alpha: frameAlpha(state, box), status: boxStatus(state, box) };
      continue;
    }
    const { colours, value } = paint(box);
    looks[box] = {
      colours,
      value,
      flat: colours.flat,
      alpha: boxAlpha(state, box),
      status: boxStatus(state, box),
      mark: markColour(state, boxStatus(state, box)),
    };
  }
  return looks;
}

/** Colour of what was added, removed or changed; null for the rest. */
export function markColour({ scene, theme }, status) {
  const name = [null, "added", "removed", "changed"][status];
  if (!name) return null;
  const colour = parseColour(scene.marks[name]);
  return cssColour(theme.dark ? mixColours(colour, [255, 255, 255, 1], 0.22) : colour);
}

/** Fate of a box; a block with any change inside counts as changed. */
export function boxStatus(state, box) {
  const { picture, scene } = state;
  const node = picture.node(box);
  if (node >= 0 && !picture.isBlock(box)) return scene.status(node);
  if (picture.isFrame(box)) return STATUS.KEPT;
  const nodes = picture.nodesOf(box);
  const first = nodes.length ? scene.status(nodes[0]) : STATUS.KEPT;
  if (nodes.every((n) => scene.status(n) === first)) return first;
  return STATUS.CHANGED;
}

function boxAlpha(state, box) {
  const { picture, highlight, comparing, soloCategory } = state;
  if (soloCategory !== null && !picture.nodesOf(box).some((n) => state.codeOf(n) === soloCategory)) {
    return DIM;
  }
  if (highlight?.dim && !highlight.boxes.has(box)) return DIM;
  if (comparing && boxStatus(state, box) === STATUS.KEPT) return KEPT_IN_COMPARISON;
  return 1;
}

function frameAlpha({ highlight, soloCategory }, box) {
  if (soloCategory !== null) return 0.5;
  return highlight?.dim && !highlight.frames.has(box) ? 0.4 : 1;
}

/** A function from box to colours and value text, for the colouring in use. */
function painterOf(state) {
  const { theme } = state;
  const known = new Map();
  const coloured = (colour, strong) => {
    const key = colour + strong;
    if (!known.has(key)) {
      const colours = boxColours(theme, colour, strong);
      colours.flat = strong ? colour : colours.accent;
      known.set(key, colours);
    }
    return known.get(key);
  };
  const neutral = coloured("#7A8794", false);
  const colouring = state.colouring;
  if (!colouring) return () => ({ colours: neutral, value: "" });
  return colouring.kind === "scale"
    ? scalePainter(state, colouring, coloured, neutral)
    : categoryPainter(state, colouring, coloured, neutral);
}

function categoryPainter(state, colouring, coloured, neutral) {
  const { picture } = state;
  return (box) => {
    const code = commonCode(state, picture.nodesOf(box));
    if (code < 0) return { colours: neutral, value: "" };
    const value = colouring.key === "op" ? "" : colouring.labels[code];
    return { colours: coloured(colouring.colours[code], false), value };
  };
}

/** The category of all the nodes; -1 where they differ. */
function commonCode(state, nodes) {
  const first = nodes.length ? state.codeOf(nodes[0]) : -1;
  return nodes.every((node) => state.codeOf(node) === first) ? first : -1;
}

function scalePainter(state, colouring, coloured, neutral) {
  const { picture, theme } = state;
  const stops = theme.dark ? colouring.stops.dark : colouring.stops.light;
  const values = new Float64Array(picture.count);
  let high = 0;
  for (let box = 0; box < picture.count; box += 1) {
    values[box] = picture.isFrame(box) ? NaN : sumOf(colouring.data, picture.nodesOf(box));
    if (values[box] > high) high = values[box];
  }
  state.scaleHigh = high;
  return (box) => {
    const value = values[box];
    if (!Number.isFinite(value)) return { colours: neutral, value: colouring.partial ? "" : NaN };
    const step = Math.round((high > 0 ? value / high : 0) * 48) / 48;
    return { colours: coloured(scaleColour(stops, Math.sqrt(step)), true), value };
  };
}

function sumOf(data, nodes) {
  let sum = NaN;
  for (const node of nodes) {
    if (Number.isFinite(data[node])) sum = (Number.isNaN(sum) ? 0 : sum) + data[node];
  }
  return sum;
}

/** Styles of lines, and the style of every line. Later styles are drawn above earlier ones. */
export function lineLooks(state) {
  const { picture, theme } = state;
  const styles = [];
  const numbers = new Map();
  const of = new Uint16Array(picture.lineCount);
  for (let line = 0; line < picture.lineCount; line += 1) {
    const style = lineStyle(state, line);
    const key = `${style.level}|${style.colour}|${style.width}|${style.dash}|${style.alpha}`;
    if (!numbers.has(key)) {
      numbers.set(key, styles.length);
      styles.push(style);
    }
    of[line] = numbers.get(key);
  }
  const order = styles.map((_, i) => i).sort((a, b) => styles[a].level - styles[b].level);
  return { styles, of, order, plain: theme.line };
}

function lineStyle(state, line) {
  const { picture, theme, edges } = state;
  const status = picture.lineStatus[line];
  const style = {
    colour: theme.line,
    width: 1.35,
    dash: picture.lineCaptured[line] ? "5,4" : "",
    alpha: 1,
    level: 0,
  };
  if (edges) Object.assign(style, edgeValueStyle(state, line));
  const mark = markColour(state, status);
  if (mark) Object.assign(style, { colour: mark, width: 2.3, level: 2 });
  if (status === STATUS.REMOVED) style.dash = "7,5";
  if (touches(state.selectedBoxes, picture, line)) {
    style.level = 3;
    if (!edges) Object.assign(style, { colour: theme.brand, width: 2.2 });
  }
  style.alpha = lineAlpha(state, line, status);
  return style;
}

function lineAlpha(state, line, status) {
  const { picture, highlight, comparing, soloCategory } = state;
  if (soloCategory !== null) return DIM;
  if (highlight?.dim) {
    const inside = (box) => highlight.boxes.has(box);
    const [a, b] = [picture.lineSource(line), picture.lineTarget(line)];
    return inside(a) && inside(b) ? 1 : inside(a) || inside(b) ? 0.6 : DIM;
  }
  return comparing && status === STATUS.KEPT ? KEPT_IN_COMPARISON : 1;
}

function touches(boxes, picture, line) {
  return boxes.size > 0 && (boxes.has(picture.lineSource(line)) || boxes.has(picture.lineTarget(line)));
}

/** How an edge class looks in this theme: colours are brighter on dark ground. */
export function edgeClassLook({ theme }, { colour, width, dash }) {
  const bright = theme.dark ? mixColours(parseColour(colour), [255, 255, 255, 1], 0.25) : parseColour(colour);
  return { colour: cssColour(bright), width, dash };
}

function edgeClassStyle(state, line) {
  const { picture, edges } = state;
  let code = NO_CLASS;
  for (const edge of picture.lineMembers(line)) code = Math.min(code, edges.codes[edge]);
  if (code === NO_CLASS) return { alpha: 1, width: 1, level: 0 };
  return { ...edgeClassLook(state, edges.classes[code]), level: 1.9 - code * 0.1 };
}

function edgeValueStyle(state, line) {
  const { picture, theme, edges } = state;
  if (edges.classes) return edgeClassStyle(state, line);
  let value = NaN;
  let solid = false;
  for (const edge of picture.lineMembers(line)) {
    if (!Number.isFinite(edges.values[edge])) continue;
    value = Number.isNaN(value) ? edges.values[edge] : Math.max(value, edges.values[edge]);
    solid = solid || edges.solid[edge] === 1;
  }
  if (Number.isNaN(value)) return { alpha: 1, width: 1, level: 0 };
  const share = edges.high > 0 ? Math.round((value / edges.high) * 24) / 24 : 0;
  const stops = theme.dark ? EDGE_STOPS.dark : EDGE_STOPS.light;
  return {
    colour: scaleColour(stops, share),
    width: Math.round((1.4 + 6.6 * share) * 10) / 10,
    dash: solid ? "" : "7,6",
    level: 1 + share * 0.9,
  };
}

export const EDGE_STOPS = {
  light: ["#9db4c8", "#5b93c4", "#1f6fb0", "#0b4a86", "#6b1d5e"],
  dark: ["#4d6175", "#4f88b8", "#58aee8", "#8fd0ff", "#ffd0f4"],
};

/** Ink that can be read on a colour. */
export function inkOn(colour) {
  const [r, g, b] = parseColour(colour);
  return r * 0.299 + g * 0.587 + b * 0.114 > 150 ? "#14181c" : "#ffffff";
}
