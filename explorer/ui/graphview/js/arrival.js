// When a cell has just shown the app: all of it comes into view, not only what happened to fit below the cell.

const STEP_MS = 250; // styles and the notebook's own scrolling come first
const STEPS = 80; // a busy machine puts the app on the page late

/** Once per widget, and only where the top of the app is on screen already: nobody is taken elsewhere. */
export function showWhole(el, shared) {
  if (shared.hasArrived) return;
  shared.hasArrived = true;
  const look = (left, before) => setTimeout(() => {
    const app = el.closest(".explorer-app");
    const scroller = app?.closest(".jp-WindowedPanel-outer");
    const height = app?.clientHeight;
    if (scroller && height && height === before) bringIntoView(app, scroller);
    else if (left > 1) look(left - 1, height); // not on the page yet, or without its style
  }, STEP_MS);
  look(STEPS, 0);
}

function bringIntoView(app, scroller) {
  const [inside, outside] = [app.getBoundingClientRect(), scroller.getBoundingClientRect()];
  const startsHere = inside.top >= outside.top && inside.top < outside.bottom;
  if (startsHere && inside.bottom > outside.bottom) app.scrollIntoView({ block: "nearest" });
}
