// Tool bar and legend: plain HTML beside the canvas. Texts are set as text, never as mark-up.

import { EDGE_STOPS, edgeClassLook, markColour } from "./looks.js";
import { formatValue } from "./units.js";

export function element(tag, className, parent, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  if (parent) parent.appendChild(node);
  return node;
}

function button(parent, text, title, action) {
  const node = element("button", "eg-button", parent, text);
  node.type = "button";
  node.title = title;
  node.addEventListener("click", action);
  return node;
}

/** The row above the canvas. ``actions`` is what its buttons do. */
export class Toolbar {
  constructor(root, actions) {
    this.node = element("div", "eg-bar", root);
    this.node.setAttribute("role", "toolbar");
    this.node.setAttribute("aria-label", "Graph view");
    this.search = element("div", "eg-group eg-search", this.node);
    const zoom = element("div", "eg-group", this.node);
    button(zoom, "Fit", "Show the whole graph (f)", actions.fit);
    button(zoom, "1:1", "Original size, at the top (1)", actions.top);
    button(zoom, "−", "Zoom out (-)", () => actions.zoom(1 / 1.4)).setAttribute("aria-label", "Zoom out");
    button(zoom, "+", "Zoom in (+)", () => actions.zoom(1.4)).setAttribute("aria-label", "Zoom in");
    this.blocks = element("div", "eg-group", this.node);
    button(this.blocks, "Expand all", "Open every block (e)", actions.expandAll);
    button(this.blocks, "Collapse all", "Close every block (c)", actions.collapseAll);
    this.modes = element("div", "eg-group", this.node);
    this.split = button(this.modes, "Side by side", "Before and after beside each other", () => actions.mode("split"));
    this.merged = button(this.modes, "Merged", "Before and after in one picture", () => actions.mode("merged"));
    const last = element("div", "eg-group eg-last", this.node); // wrapped together
    const label = element("label", "eg-group eg-colour", last);
    element("span", "", label, "Colour by");
    this.select = element("select", "eg-select", label);
    this.select.title = "Colour by";
    this.select.setAttribute("aria-label", "Colour by");
    this.select.addEventListener("change", () => actions.colour(this.select.value));
    const files = element("div", "eg-group", last);
    button(files, "PNG", "Save the whole picture as PNG", actions.png);
    button(files, "SVG", "Save the whole picture as SVG", actions.svg);
  }

  update(state) {
    this.blocks.hidden = !state.hasBlocks;
    this.modes.hidden = !state.comparing;
    this.split.setAttribute("aria-pressed", String(state.mode === "split"));
    this.merged.setAttribute("aria-pressed", String(state.mode === "merged"));
    const keys = state.colourings.map((c) => `${c.key}\u0000${c.title}`).join("\u0001");
    if (this.keys !== keys) {
      this.keys = keys;
      this.select.replaceChildren(
        ...state.colourings.map((c) => {
          const option = element("option", "", null, c.title);
          option.value = c.key;
          return option;
        }),
      );
    }
    this.select.value = state.colouring?.key ?? "";
    this.select.parentElement.hidden = state.colourings.length < 2;
  }
}

function legendTitle({ comparing, colouring }) {
  return comparing ? "Changes" : colouring.title;
}

/** What colours, widths and signs mean. */
export class Legend {
  constructor(parent, onSolo) {
    this.node = element("div", "eg-legend", parent);
    this.onSolo = onSolo;
    this.open = true;
  }

  update(state) {
    this.node.replaceChildren();
    const { colouring } = state;
    this.node.hidden = !state.scene.count || !colouring;
    if (this.node.hidden) return;
    const head = element("button", "eg-legend-title", this.node, legendTitle(state));
    head.type = "button";
    head.setAttribute("aria-expanded", String(this.open));
    head.addEventListener("click", () => {
      this.open = !this.open;
      this.update(state);
    });
    if (!this.open) return;
    if (state.comparing) this._marks(state);
    if (state.comparing && colouring.key !== "op") element("div", "eg-legend-sub", this.node, colouring.title);
    if (colouring.kind === "scale") this._scale(state, colouring);
    else if (!state.comparing || colouring.key !== "op") this._categories(state, colouring);
    if (state.edges) this._edges(state);
  }

  _scale(state, colouring) {
    const stops = state.theme.dark ? colouring.stops.dark : colouring.stops.light;
    const ramp = element("div", "eg-ramp", this.node);
    ramp.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    const ticks = element("div", "eg-ticks", this.node);
    for (const share of [0, 0.25, 1]) {
      element("span", "", ticks, formatValue(share * (state.scaleHigh ?? 0), colouring.unit));
    }
    if (colouring.source) element("div", "eg-source", this.node, colouring.source);
  }

  _categories(state, colouring) {
    const present = new Map();
    for (let node = 0; node < state.scene.count; node += 1) {
      const code = state.codeOf(node);
      if (code >= 0) present.set(code, (present.get(code) ?? 0) + 1);
    }
    const rows = [...present].sort((a, b) => b[1] - a[1]);
    for (const [code, count] of rows.slice(0, 12)) {
      const row = element("button", "eg-item", this.node);
      row.type = "button";
      const swatch = element("span", "eg-swatch", row);
      swatch.style.background = colouring.colours[code];
      element("span", "", row, colouring.labels[code]);
      element("span", "eg-count", row, String(count));
      row.addEventListener("pointerenter", () => this.onSolo(code));
      row.addEventListener("pointerleave", () => this.onSolo(null));
      row.addEventListener("focus", () => this.onSolo(code));
      row.addEventListener("blur", () => this.onSolo(null));
    }
    if (rows.length > 12) element("div", "eg-source", this.node, `and ${rows.length - 12} more`);
  }

  _marks(state) {
    const counts = state.changeCounts();
    for (const [i, [name, sign]] of [["added", "+"], ["removed", "−"], ["changed", "~"]].entries()) {
      if (!counts[name]) continue;
      const row = element("div", "eg-item", this.node);
      const swatch = element("span", `eg-mark eg-${name}`, row, sign);
      swatch.style.background = markColour(state, i + 1);
      element("span", "", row, name);
      element("span", "eg-count", row, String(counts[name]));
    }
  }

  _edges(state) {
    const { edges, theme } = state;
    element("div", "eg-legend-sub", this.node, edges.title);
    if (edges.classes) {
      this._edgeClasses(state);
      return;
    }
    const ramp = element("div", "eg-wedge", this.node);
    const stops = theme.dark ? EDGE_STOPS.dark : EDGE_STOPS.light;
    ramp.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    const ticks = element("div", "eg-ticks", this.node);
    element("span", "", ticks, formatValue(0, edges.unit));
    element("span", "", ticks, formatValue(edges.high, edges.unit));
    if (edges.someDashed) element("div", "eg-source", this.node, "solid: selected, dashed: not");
    if (edges.source) element("div", "eg-source", this.node, edges.source);
  }

  _edgeClasses(state) {
    const { edges } = state;
    const counts = new Map();
    for (const code of edges.codes) counts.set(code, (counts.get(code) ?? 0) + 1);
    for (const [code, one] of edges.classes.entries()) {
      const row = element("div", "eg-item", this.node);
      const { colour, width, dash } = edgeClassLook(state, one);
      const sample = element("span", "eg-line", row);
      sample.style.borderTop = `${width}px ${dash ? "dashed" : "solid"} ${colour}`;
      element("span", "", row, one.label);
      element("span", "eg-count", row, String(counts.get(code) ?? 0));
    }
    if (edges.source) element("div", "eg-source", this.node, edges.source);
  }
}
