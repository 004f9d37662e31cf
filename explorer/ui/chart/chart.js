// Draws plain plotly traces in the colours of the page. plotly.js comes in the widget's state (see chart.py).

const COLOURS = ["text", "muted", "grid", "panel", "blue", "orange", "green", "red"].map((name) => `--ec-${name}`);
const SHARED = Symbol.for("explorer.plotly");
const CONFIG = { displayModeBar: false, responsive: false, showTips: false };

/** plotly.js, loaded once for all charts of the page. */
function loadPlotly(source) {
  globalThis[SHARED] ??= (async () => {
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    try {
      return (await import(url)).default;
    } finally {
      URL.revokeObjectURL(url);
    }
  })();
  return globalThis[SHARED];
}

/** Replace "var(--x)" by its value, wherever it stands. */
function resolved(value, style) {
  if (typeof value === "string" && value.startsWith("var(")) {
    return style.getPropertyValue(value.slice(4, -1)).trim() || "#808a96";
  }
  if (Array.isArray(value)) return value.map((item) => resolved(item, style));
  if (value && typeof value === "object" && !ArrayBuffer.isView(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolved(item, style)]));
  }
  return value;
}

function merged(base, over) {
  const result = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const both = value && base[key] && typeof value === "object" && !Array.isArray(value);
    result[key] = both ? merged(base[key], value) : value;
  }
  return result;
}

function pageLayout(names) {
  const axis = {
    gridcolor: "var(--ec-grid)", linecolor: "var(--ec-grid)", zeroline: false, fixedrange: true,
    title: { font: { size: 12 }, standoff: 8 },
  };
  return {
    margin: { l: 60, r: 12, t: 10, b: 42 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    showlegend: false,
    dragmode: false,
    font: { color: "var(--ec-muted)", family: "var(--ec-font)", size: 12 },
    hoverlabel: {
      bgcolor: "var(--ec-panel)", bordercolor: "var(--ec-grid)",
      font: { color: "var(--ec-text)", family: "var(--ec-font)", size: 12 }, align: "left",
    },
    ...Object.fromEntries(names.map((name) => [name, axis])),
  };
}

class ChartView {
  constructor(model, el) {
    this.model = model;
    el.classList.add("explorer-chart-widget");
    this.box = document.createElement("div");
    this.box.setAttribute("role", "img");
    this.box.setAttribute("aria-label", model.get("label"));
    el.append(this.box);
    this.el = el;
    this.stops = [];
    this._listen();
    loadPlotly(model.get("_plotly")).then((plotly) => {
      this.plotly = plotly;
      this.draw();
    });
  }

  _listen() {
    const change = () => { this.drawnKey = null; this.draw(); };
    for (const name of ["traces", "layout_", "height"]) {
      this.model.on(`change:${name}`, change);
      this.stops.push(() => this.model.off(`change:${name}`, change));
    }
    const draw = () => this.draw();
    const resize = new ResizeObserver(draw);
    resize.observe(this.el);
    // A theme changes attributes of the page, and a style sheet that may arrive later.
    const theme = new MutationObserver(draw);
    for (const node of [document.body, document.documentElement]) theme.observe(node, { attributes: true });
    theme.observe(document.head, { childList: true });
    document.head.addEventListener("load", draw, true);
    this.stops.push(
      () => resize.disconnect(),
      () => theme.disconnect(),
      () => document.head.removeEventListener("load", draw, true),
    );
  }

  /** With the next frame, once for many changes; nothing while hidden. */
  draw() {
    if (this.frame !== undefined) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = undefined;
      if (this.drawing) this.again = true;
      else this._draw();
    });
  }

  async _draw() {
    const width = this.el.clientWidth;
    if (!width || this.closed || !this.plotly) return;
    const style = getComputedStyle(this.el);
    const key = `${width} ${COLOURS.map((name) => style.getPropertyValue(name)).join(" ")}`;
    if (key === this.drawnKey) return;
    const given = this.model.get("layout_");
    const axes = ["xaxis", "yaxis", ...Object.keys(given).filter((name) => /^[xy]axis\d+$/.test(name))];
    const layout = { ...merged(pageLayout(axes), given), width, height: this.model.get("height") };
    const traces = this.model.get("traces");
    const figure = [resolved(traces, style), resolved(layout, style)];
    this.drawnKey = key;
    this.drawing = true;
    try {
      await this.plotly.react(this.box, ...figure, CONFIG);
    } finally {
      this.drawing = false;
    }
    this._watchClicks();
    this.el.dataset.points = String(traces.reduce((n, trace) => n + (trace.x?.length ?? 0), 0));
    this.el.dataset.colours = key;
    if (this.again) {
      this.again = false;
      this.draw();
    }
  }

  _watchClicks() {
    if (this.watching || !this.box.on) return;
    this.watching = true;
    this.box.on("plotly_click", (event) => {
      this.model.send({ kind: "click", customdata: event.points[0]?.customdata ?? null });
    });
  }

  close() {
    this.closed = true;
    for (const stop of this.stops) stop();
    this.plotly?.purge(this.box);
  }
}

function render({ model, el }) {
  const view = new ChartView(model, el);
  return () => view.close();
}

export default { render };
