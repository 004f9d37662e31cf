// The widget: canvas, controls, and the loop that redraws when something has changed.

import { Actions } from "./actions.js";
import { showWhole } from "./arrival.js";
import { Camera } from "./camera.js";
import { Legend, Toolbar, element } from "./controls.js";
import { toSvg } from "./export.js";
import { Framing } from "./framing.js";
import { centre, listenToKeys } from "./keyboard.js";
import { Minimap } from "./minimap.js";
import { paintPane, paintPaneTitle } from "./painter.js";
import { Pointer } from "./pointer.js";
import { Search } from "./search.js";
import { State } from "./state.js";
import { Tooltip } from "./tooltip.js";

const DIVIDER = 1;
const TRAITS = {
  names: "scene",
  picture: "picture",
  colourings: "colourings",
  colour_by: "looks",
  highlighted: "looks",
  groups: "looks",
  edge_values: "looks",
  comparison: "looks",
  selection: "looks",
};
const THEME_ATTRIBUTES = [
  "data-jp-theme-light", "data-jp-theme-name", "data-vscode-theme-kind", "class", "style",
];

class GraphCanvas {
  constructor(model, el, shared) {
    this.model = model;
    this.el = el;
    this.dirty = { scene: true };
    this.drawn = 0;
    this.wanted = null; // ids to bring into view with the next frame
    this.lassoPath = null;
    this.stops = [];
    this.camera = shared.camera ?? new Camera();
    this.placed = Boolean(shared.camera);
    shared.camera = this.camera;
    this.framing = new Framing(this);
    this.actions = new Actions(this);
    this._build(el);
    this.state = new State(this.root);
    this._listen();
    this._hook();
    this._request();
  }

  _build(el) {
    this.root = element("div", "explorer-graph", el);
    this.root.style.height = `${this.model.get("height")}px`;
    this.toolbar = new Toolbar(this.root, this.actions.bar());
    this.search = new Search(this.toolbar.search, {
      scene: () => this.state.scene,
      matches: (nodes, current) => this.actions.showMatches(nodes, current),
      leave: () => this.canvas.focus({ preventScroll: true }),
    });
    this.stage = element("div", "eg-stage", this.root);
    this._buildCanvas();
    this.legend = new Legend(this.stage, (code) => {
      this.state.soloCategory = code;
      this.touch("looks");
    });
    this.minimap = new Minimap(this.stage, (x, y) => {
      this.camera.set(x, y, this.camera.scale);
      this.touch("paint");
    });
    this.empty = element("div", "eg-empty", this.stage);
    this.note = element("div", "eg-note", this.stage);
    this.note.setAttribute("role", "status");
    this.note.hidden = true;
    this.tooltip = new Tooltip(this.stage);
    this.spoken = element("div", "eg-spoken", this.root);
    this.spoken.setAttribute("aria-live", "polite");
  }

  _buildCanvas() {
    this.canvas = element("canvas", "eg-canvas", this.stage);
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-roledescription", "graph");
    this.canvas.dataset.lmSuppressShortcuts = "true";
  }

  // ------------------------------------------------------------------ events

  _listen() {
    for (const [name, level] of Object.entries(TRAITS)) {
      this._watch(`change:${name}`, () => this._onTrait(name, level));
    }
    this._watch("change:height", () => { this.root.style.height = `${this.model.get("height")}px`; });
    this._watch("msg:custom", (message) => {
      if (message?.command === "show") this.reveal(message.nodes);
    });
    const resize = new ResizeObserver(() => {
      this._retheme(); // it may have changed while we were hidden
      this.touch("paint");
    });
    resize.observe(this.stage);
    this.stops.push(() => resize.disconnect());
    this._listenToTheme();
    this.pointer = new Pointer(this.canvas, this.actions.pointer());
    listenToKeys(this.canvas, this.actions.keys());
    this.canvas.addEventListener("focus", () => this._focus());
    this.canvas.addEventListener("blur", () => this._focus());
    this.root.addEventListener("keydown", () => this._byKeyboard(true), true);
    this.root.addEventListener("pointerdown", () => this._byKeyboard(false), true);
  }

  _watch(event, handler) {
    this.model.on(event, handler);
    this.stops.push(() => this.model.off(event, handler));
  }

  /** Themes arrive late, after the attribute that announces them; a transition tells when. */
  _listenToTheme() {
    const retheme = () => this._retheme();
    const sensor = element("div", "eg-sensor", this.root);
    sensor.setAttribute("aria-hidden", "true");
    sensor.addEventListener("transitionend", retheme);
    const observer = new MutationObserver(retheme);
    for (const node of [document.body, document.documentElement]) {
      observer.observe(node, { attributes: true, attributeFilter: THEME_ATTRIBUTES });
    }
    this.stops.push(() => observer.disconnect());
  }

  _retheme() {
    if (this.state.refreshTheme()) this.touch("looks");
  }

  _onTrait(name, level) {
    if (name === "highlighted") this.revealSite = true;
    if (name === "names") this._onScene();
    if (name === "colour_by") this.state.chooseColouring(this.model.get("colour_by"));
    this.touch(level);
  }

  /** Another version of the same graph: stay where we are. Another graph: begin anew. */
  _onScene() {
    if (this.placed && this.model.get("names")?.stay) this.framing.holdStill(-1);
    else this.placed = false;
  }

  /** Rings and outlines that tell where the keyboard is are drawn only for those who use it. */
  _byKeyboard(used) {
    this.root.classList.toggle("eg-keys", used);
    this._focus();
  }

  _focus() {
    const focused = document.activeElement === this.canvas && this.root.classList.contains("eg-keys");
    if (focused === this.state.focused) return;
    this.state.focused = focused;
    if (focused && this.state.focusBox < 0) this.state.focusBox = this.framing.middleBox();
    this.touch("paint");
  }

  /** Say what has changed: "scene", "picture", "colourings", "looks" or only "paint". */
  touch(level) {
    this.dirty[level] = true;
    this._request();
  }

  /** Bring nodes into view with the next frame. */
  reveal(ids) {
    this.wanted = ids;
    this.touch("paint");
  }

  _request() {
    if (this.frame === undefined) this.frame = requestAnimationFrame((now) => this._draw(now));
  }

  close() {
    if (this.frame !== undefined) cancelAnimationFrame(this.frame);
    this.frame = null;
    this.actions.close();
    for (const stop of this.stops) stop();
    this.root.remove();
  }

  // ------------------------------------------------------------------ drawing

  _draw(now) {
    this.frame = undefined;
    if (!this.stage.clientWidth || !this.stage.clientHeight) return; // hidden: drawn when shown
    this._resize();
    this._derive();
    if (!this.placed && this.state.picture.count) {
      this.placed = true;
      this.framing.first();
    }
    this._follow();
    this.camera.step(now);
    this._paint();
    if (this.camera.goal) this._request();
  }

  _resize() {
    this.ratio = window.devicePixelRatio || 1;
    [this.width, this.height] = [this.stage.clientWidth, this.stage.clientHeight];
    const [w, h] = [Math.round(this.width * this.ratio), Math.round(this.height * this.ratio)];
    if (this.canvas.width !== w || this.canvas.height !== h) {
      [this.canvas.width, this.canvas.height] = [w, h];
    }
  }

  _derive() {
    const { dirty, state, model } = this;
    this.dirty = {};
    const fresh = dirty.scene || dirty.picture;
    if (!fresh && !dirty.looks && !dirty.colourings) return;
    if (dirty.scene) state.readScene(model);
    else if (dirty.picture) state.readPicture(model);
    if (dirty.colourings && !dirty.scene) state.readColourings(model);
    state.refreshTheme();
    state.readOverlays(model);
    state.derive();
    this.toolbar.update(state);
    this.legend.update(state);
    this._describe();
    if (dirty.scene) this.search.refresh();
    if (!fresh) return;
    this.drawn += 1;
    this.tooltip.hide();
    if (this.placed) this.framing.keepAnchor();
  }

  _describe() {
    const { scene, picture } = this.state;
    this.canvas.setAttribute(
      "aria-label",
      `Graph ${scene.title}: ${scene.count} nodes, ${picture.count} boxes shown. ` +
        "Arrow keys follow the lines, Enter selects, slash finds.",
    );
    this.empty.hidden = scene.count > 0;
    this.empty.textContent = scene.title ? "No nodes to show" : "No model is open: its graph is drawn here.";
  }

  /** After new data: bring into view what Python or a search asked for. */
  _follow() {
    const { state } = this;
    if (this.revealSite && state.site?.boxes.length) this.framing.show(state.site.boxes);
    this.revealSite = false;
    if (!this.wanted) return;
    const nodes = state.scene.indices(this.wanted);
    this.wanted = null;
    this.framing.show([...new Set(nodes.map((node) => state.picture.home[node]))]);
  }

  /** The panes with their viewports. */
  ports() {
    const panes = this.state.panes();
    const w = (this.width - DIVIDER * (panes.length - 1)) / panes.length;
    return panes.map((pane, i) => ({
      ...pane,
      port: { x: i * (w + DIVIDER), y: 0, w, h: this.height },
    }));
  }

  portAt(x) {
    const ports = this.ports().map((pane) => pane.port);
    return ports.find((port) => x < port.x + port.w) ?? ports[ports.length - 1];
  }

  _paint() {
    const ctx = this.canvas.getContext("2d");
    const ports = this.ports();
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.fillStyle = this.state.theme.border;
    ctx.fillRect(0, 0, this.canvas.width, this.canvas.height);
    for (const { pane, port, title, note } of ports) {
      paintPane(ctx, this.state, this.camera, port, this.ratio, pane);
      if (title) paintPaneTitle(ctx, this.state, port, this.ratio, title, note);
    }
    if (this.lassoPath) this._paintLasso(ctx);
    this.minimap.paint(this.state, this.camera, ports[0].port, this.height, this.ratio);
    this.firstPaint ??= performance.now(); // read by the benchmark
    this.el.dataset.drawn = String(this.drawn);
    this.el.dataset.boxes = String(this.state.picture.count);
  }

  _paintLasso(ctx) {
    const { theme } = this.state;
    ctx.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    ctx.beginPath();
    this.lassoPath.forEach(([x, y], i) => (i ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
    ctx.closePath();
    ctx.fillStyle = theme.halo;
    ctx.fill();
    ctx.strokeStyle = theme.brand;
    ctx.lineWidth = 1.5;
    ctx.setLineDash([5, 4]);
    ctx.stroke();
    ctx.setLineDash([]);
  }

  /** For browser tests and the benchmark: where nodes are on the page, and what is drawn. */
  _hook() {
    this.el.explorerGraph = {
      position: (id) => {
        const { picture, scene } = this.state;
        const node = scene.byId.get(id);
        if (node === undefined) return null;
        const rect = this.canvas.getBoundingClientRect();
        const [x, y] = this.camera.toScreen(this.ports()[0].port, ...centre(picture, picture.home[node]));
        return { x: rect.left + x, y: rect.top + y };
      },
      reveal: (id) => this.reveal([id]),
      camera: () => ({
        x: this.camera.x,
        y: this.camera.y,
        scale: this.camera.scale,
        still: !this.camera.goal && this.frame === undefined,
      }),
      theme: () => ({ dark: this.state.theme.dark, background: this.state.theme.bg }),
      toSvg: () => toSvg(this.state),
      view: this,
    };
  }
}

/** One per widget: views of the same widget share the camera. */
function makeWidget() {
  const shared = {};
  return {
    render: ({ model, el }) => {
      const view = new GraphCanvas(model, el, shared);
      showWhole(el, shared);
      return () => view.close();
    },
  };
}

export default makeWidget;
