// Files of the whole picture: SVG, and PNG as large as browsers allow.

import { Camera } from "./camera.js";
import { paintPane, paintPaneTitle } from "./painter.js";
import { Recorder } from "./recorder.js";

const MARGIN = 36;
const MAX_SIDE = 16000;
const MAX_PIXELS = 100e6;

/** Paint the whole picture at 1:1 (both panes of a comparison side by side). */
function paintWhole(ctx, state, ratio) {
  const [w, h] = wholeSize(state);
  const panes = state.panes();
  panes.forEach(({ pane, title, note }, i) => {
    const port = { x: i * w, y: 0, w, h };
    const camera = new Camera();
    camera.set(state.picture.width / 2, state.picture.height / 2, 1);
    paintPane(ctx, state, camera, port, ratio, pane);
    if (title) paintPaneTitle(ctx, state, port, ratio, title, note);
  });
  return [w * panes.length, h];
}

function wholeSize({ picture }) {
  return [Math.max(picture.width, 200) + 2 * MARGIN + 120, picture.height + 2 * MARGIN];
}

export function toSvg(state) {
  const measure = document.createElement("canvas").getContext("2d");
  const recorder = new Recorder(measure);
  const [w, h] = paintWhole(recorder, state, 1);
  return recorder.document(w, h, state.scene.title || "graph");
}

/** A PNG of the whole picture as a blob, and its scale (1 where it fits). */
export async function toPng(state) {
  const panes = state.panes().length;
  const [w, h] = wholeSize(state);
  const ratio = Math.min(2, MAX_SIDE / Math.max(w * panes, h), Math.sqrt(MAX_PIXELS / (w * panes * h)));
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(w * panes * ratio);
  canvas.height = Math.ceil(h * ratio);
  paintWhole(canvas.getContext("2d"), state, ratio);
  const blob = await new Promise((done) => { canvas.toBlob(done, "image/png"); });
  return { blob, ratio };
}

export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

export function fileName(title, ending) {
  const safe = (title || "graph").replace(/[^\p{L}\p{N}._-]+/gu, "_").slice(0, 80);
  return `${safe}.${ending}`;
}
