// The view without a mouse. Handled keys go no further: JupyterLab would edit the notebook.

const KEYS = {
  "/": "find",
  f: "fit",
  1: "top",
  Home: "top",
  End: "bottom",
  "+": "zoomIn",
  "=": "zoomIn",
  "-": "zoomOut",
  n: "next",
  N: "previous",
  e: "expandAll",
  c: "collapseAll",
  Enter: "choose",
  " ": "choose",
  Escape: "clear",
  ArrowDown: "down",
  ArrowUp: "up",
  ArrowLeft: "left",
  ArrowRight: "right",
  PageDown: "pageDown",
  PageUp: "pageUp",
};

/** Call ``actions[name](event)`` for the keys of the canvas. */
export function listenToKeys(canvas, actions) {
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Tab") return;
    event.stopPropagation();
    const name = KEYS[event.key];
    if (!name) return;
    event.preventDefault();
    actions[name](event);
  });
}

/** The box an arrow key leads to: along lines up and down, within the row left and right. */
export function neighbour(picture, box, way) {
  if (way === "down" || way === "up") {
    const lines = way === "down" ? picture.outgoing[box] : picture.incoming[box];
    const other = (line) => (way === "down" ? picture.lineTarget(line) : picture.lineSource(line));
    const boxes = lines.map(other).filter((b) => !picture.isFrame(b));
    return nearest(picture, box, boxes) ?? box;
  }
  const sign = way === "right" ? 1 : -1;
  const middle = centre(picture, box);
  const reach = picture.h(box) * 1.5;
  const row = picture
    .boxesIn([-1e9, middle[1] - reach, 1e9, middle[1] + reach])
    .filter((b) => (centre(picture, b)[0] - middle[0]) * sign > 1);
  return nearest(picture, box, row) ?? box;
}

function nearest(picture, box, boxes) {
  const [x, y] = centre(picture, box);
  let best = null;
  let least = Infinity;
  for (const other of boxes) {
    const [ox, oy] = centre(picture, other);
    const far = Math.hypot(ox - x, oy - y);
    if (far < least) [least, best] = [far, other];
  }
  return best;
}

export function centre(picture, box) {
  return [picture.x(box) + picture.w(box) / 2, picture.y(box) + picture.h(box) / 2];
}
