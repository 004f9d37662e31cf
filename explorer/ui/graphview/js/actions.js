// What people can do, with the mouse, the keyboard and the tool bar.

import { KIND } from "./data.js";
import { download, fileName, toPng, toSvg } from "./export.js";
import { centre, neighbour } from "./keyboard.js";
import { hitTest, insidePolygon } from "./pointer.js";

const PATIENCE_MS = 4000;
const NOTE_MS = 6000;

export class Actions {
  constructor(view) {
    this.view = view;
  }

  get state() { return this.view.state; }
  get framing() { return this.view.framing; }

  /** For the tool bar. */
  bar() {
    return {
      fit: () => this.framing.fit(),
      top: () => this.framing.top(true),
      zoom: (factor) => this.framing.zoomMiddle(factor),
      expandAll: () => this._all("expand_all"),
      collapseAll: () => this._all("collapse_all"),
      mode: (mode) => {
        this.state.mode = mode;
        this.view.touch("looks");
      },
      colour: (key) => {
        this.state.chooseColouring(key);
        this.view.touch("looks");
        this._send("colour", key);
      },
      png: () => this._savePng(),
      svg: () => this._saveSvg(),
    };
  }

  /** For the mouse, pen and touch. */
  pointer() {
    const { view } = this;
    return {
      hover: (place) => this._hover(place),
      isBox: (x, y) => this._hit([x, y]).box >= 0,
      pan: (dx, dy) => {
        view.tooltip.hide();
        view.camera.pan(dx, dy);
        view.camera.keepIn(this.state.picture.width, this.state.picture.height);
        view.touch("paint");
      },
      zoomAt: (x, y, factor) => {
        view.tooltip.hide();
        view.camera.zoomAt(view.portAt(x), x, y, factor);
        view.touch("paint");
      },
      click: (place, more) => this._click(place, more),
      doubleClick: (place) => this._doubleClick(place),
      lasso: (path, done) => this._lasso(path, done),
    };
  }

  /** For the keyboard, by the names of keyboard.js. */
  keys() {
    const { framing } = this;
    return {
      find: () => this.view.search.focus(),
      fit: () => framing.fit(),
      top: () => framing.top(true),
      bottom: () => framing.bottom(),
      zoomIn: () => framing.zoomMiddle(1.25),
      zoomOut: () => framing.zoomMiddle(1 / 1.25),
      next: () => this.view.search.move(1),
      previous: () => this.view.search.move(-1),
      expandAll: () => this._all("expand_all"),
      collapseAll: () => this._all("collapse_all"),
      choose: (event) => this._choose(event.shiftKey),
      clear: () => this._clear(),
      down: () => this._moveFocus("down"),
      up: () => this._moveFocus("up"),
      left: () => this._moveFocus("left"),
      right: () => this._moveFocus("right"),
      pageDown: () => framing.page(1),
      pageUp: () => framing.page(-1),
    };
  }

  // ------------------------------------------------------------------ messages

  _send(command, argument = "") {
    this.view.model.send({ command, argument });
    if (["toggle", "reveal", "expand_all", "collapse_all"].includes(command)) this._expectAnswer();
  }

  /** Opening and closing needs Python; say so where none answers. */
  _expectAnswer() {
    const before = this.view.drawn;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => {
      if (this.view.drawn === before) {
        this.tell("Opening and closing blocks needs a running kernel that is not busy.");
      }
    }, PATIENCE_MS);
  }

  tell(text) {
    const { note } = this.view;
    note.textContent = text;
    note.hidden = false;
    clearTimeout(this.noteTimer);
    this.noteTimer = setTimeout(() => { note.hidden = true; }, NOTE_MS);
  }

  close() {
    clearTimeout(this.waiting);
    clearTimeout(this.noteTimer);
  }

  async _savePng() {
    const { blob, ratio } = await toPng(this.state);
    if (!blob) {
      this.tell("The picture is too large for a PNG in this browser; save it as SVG.");
      return;
    }
    download(blob, fileName(this.state.scene.title, "png"));
    if (ratio < 0.9) this.tell(`PNG saved at ${Math.round(ratio * 100)} % size; SVG keeps every detail.`);
  }

  _saveSvg() {
    const blob = new Blob([toSvg(this.state)], { type: "image/svg+xml" });
    download(blob, fileName(this.state.scene.title, "svg"));
  }

  // ------------------------------------------------------------------ mouse

  _hit(place) {
    const { camera } = this.view;
    return hitTest(this.state, ...camera.toWorld(this.view.portAt(place[0]), ...place), camera.scale);
  }

  _hover(place) {
    const { state, view } = this;
    const old = state.hover;
    const hit = place ? this._hit(place) : null;
    const found = hit && (hit.box >= 0 || hit.line >= 0 || hit.stub >= 0) ? hit : null;
    state.hover = found;
    view.canvas.style.cursor = !found ? "grab" : found.line >= 0 ? "default" : "pointer";
    if (found) view.tooltip.show(state, found, ...place);
    else view.tooltip.hide();
    const same = ["box", "line", "stub"].every((key) => old?.[key] === found?.[key]);
    if (!same) view.touch("paint");
  }

  _click(place, more) {
    const hit = this._hit(place);
    if (hit.box >= 0 && hit.sign) this._toggle(hit.box);
    else if (hit.box >= 0) this.select(this.state.picture.nodesOf(hit.box), more, hit.box);
    else if (hit.stub >= 0) this._followStub(hit.stub);
    else if (!more) this.select([], false, -1);
  }

  _doubleClick(place) {
    const { box } = this._hit(place);
    if (box < 0) return;
    const { picture, scene } = this.state;
    if (picture.block(box)) this._toggle(box);
    else this._send("activate", scene.id(picture.node(box)));
  }

  _followStub(stub) {
    const { picture, scene } = this.state;
    const edge = picture.stubMembers(stub)[0];
    this.goTo(picture.stubIncoming(stub) ? scene.source(edge) : scene.target(edge));
  }

  _lasso(path, done) {
    const { state, view } = this;
    view.lassoPath = done ? null : path;
    if (done && path.length > 2) {
      const { picture } = state;
      const port = view.portAt(path[0][0]);
      const world = path.map(([x, y]) => view.camera.toWorld(port, x, y));
      const boxes = picture.boxesIn(view.camera.view(port));
      const inside = boxes.filter((box) => insidePolygon(world, ...centre(picture, box)));
      const nodes = inside.flatMap((box) => picture.nodesOf(box));
      this.select(nodes.filter((node) => !state.selected.has(node)), true, -1);
    }
    view.touch("paint");
  }

  // ------------------------------------------------------------------ blocks and selection

  _all(command) {
    this.framing.holdStill(-1);
    this._send(command);
  }

  _toggle(box) {
    this.framing.holdStill(box);
    this._send("toggle", this.state.picture.block(box).id);
  }

  /** Select nodes; with ``more`` add them, or take them out if all are selected. */
  select(nodes, more, focusBox) {
    const { state, view } = this;
    const chosen = more ? new Set(state.selected) : new Set();
    const all = more && nodes.length > 0 && nodes.every((node) => chosen.has(node));
    for (const node of nodes) {
      if (all) chosen.delete(node);
      else chosen.add(node);
    }
    state.selected = chosen;
    if (focusBox >= 0) state.focusBox = focusBox;
    const ids = [...chosen].sort((a, b) => a - b).map((node) => state.scene.id(node));
    view.model.set("selection", ids);
    view.model.save_changes();
    view.touch("looks");
  }

  /** Select a node and bring it into view, opening the block it is in first. */
  goTo(node) {
    const { picture, scene } = this.state;
    const box = picture.home[node];
    this.select([node], false, box);
    if (picture.isBlock(box) && picture.node(box) !== node) this._send("reveal", scene.id(node));
    this.view.reveal([scene.id(node)]);
  }

  /** Mark search results, and go to the current one. */
  showMatches(nodes, current) {
    this.state.matchNodes = nodes;
    this.state.matchNode = current;
    if (current >= 0) this.goTo(current);
    this.view.touch("looks");
  }

  // ------------------------------------------------------------------ keyboard

  _moveFocus(way) {
    const { state, view } = this;
    if (state.focusBox < 0) state.focusBox = this.framing.middleBox();
    else state.focusBox = neighbour(state.picture, state.focusBox, way);
    if (state.focusBox < 0) return;
    this.framing.show([state.focusBox]);
    view.spoken.textContent = this._speak(state.focusBox);
    view.touch("paint");
  }

  _choose(more) {
    const { picture, focusBox } = this.state;
    if (focusBox < 0) return;
    if (picture.block(focusBox) && !more) this._toggle(focusBox);
    else this.select(picture.nodesOf(focusBox), more, focusBox);
    this.view.spoken.textContent = `selected: ${this._speak(focusBox)}`;
  }

  _clear() {
    this.view.search.clear();
    this.view.tooltip.hide();
    this.state.dismissedSite = this.state.highlightWire;
    this.select([], false, -1);
  }

  _speak(box) {
    const { picture, scene } = this.state;
    const lines = `${picture.incoming[box].length} lines in, ${picture.outgoing[box].length} out`;
    const block = picture.block(box);
    if (block) return `block ${block.title}, ${block.count} nodes, ${lines}`;
    const node = picture.node(box);
    const end = picture.code(box) === KIND.OP ? "" : "graph end ";
    const shape = scene.detail(node) || "unknown";
    return `${end}${scene.label(node)}, ${scene.id(node)}, ${scene.name(node)}, output ${shape}, ${lines}`;
  }
}
