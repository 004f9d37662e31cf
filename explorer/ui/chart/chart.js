// Draws plain plotly traces in the colours of the page. ``Plotly`` is defined above (see chart.py).

const CONFIG = { displayModeBar: false, responsive: false, showTips: false };

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
  }

  _listen() {
    const draw = () => this.draw();
    for (const name of ["traces", "layout_", "height"]) {
      this.model.on(`change:${name}`, draw);
      this.stops.push(() => this.model.off(`change:${name}`, draw));
    }
    const resize = new ResizeObserver(draw);
    resize.observe(this.el);
    const theme = new MutationObserver(draw);
    for (const node of [document.body, document.documentElement]) {
      theme.observe(node, { attributes: true, attributeFilter: ["class", "data-jp-theme-light", "data-jp-theme-name"] });
    }
    this.stops.push(() => resize.disconnect(), () => theme.disconnect());
  }

  /** With the next frame, once for many changes; nothing while hidden. */
  draw() {
    if (this.frame !== undefined) return;
    this.frame = requestAnimationFrame(async () => {
      this.frame = undefined;
      const width = this.el.clientWidth;
      if (!width || this.closed) return;
      const style = getComputedStyle(this.el);
      const given = this.model.get("layout_");
      const axes = ["xaxis", "yaxis", ...Object.keys(given).filter((key) => /^[xy]axis\d+$/.test(key))];
      const layout = { ...merged(pageLayout(axes), given), width, height: this.model.get("height") };
      await Plotly.react(this.box, resolved(this.model.get("traces"), style), resolved(layout, style), CONFIG);
      this._watchClicks();
      this.el.dataset.points = String(this.model.get("traces").reduce((n, trace) => n + (trace.x?.length ?? 0), 0));
      this.el.dataset.text = style.getPropertyValue("--ec-text").trim();
    });
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
    Plotly.purge(this.box);
  }
}

function render({ model, el }) {
  const view = new ChartView(model, el);
  return () => view.close();
}

export default { render };
