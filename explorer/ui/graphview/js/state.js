// Everything the painter needs to know, decoded from the traits and derived once per change.

import { PictureData, SceneData, STATUS, flags, floats, ints } from "./data.js";
import { makeHull } from "./hulls.js";
import { boxLooks, lineLooks } from "./looks.js";
import { readTheme } from "./theme.js";

export class State {
  constructor(root) {
    this.root = root;
    this.scene = new SceneData({});
    this.picture = new PictureData({}, this.scene);
    this.colourings = [];
    this.colouring = null;
    this.selected = new Set();
    this.matchNodes = [];
    this.matchNode = -1;
    this.hover = null;
    this.focusBox = -1;
    this.focused = false;
    this.highlight = null;
    this.highlightWire = {};
    this.dismissedSite = null; // put away with Escape, until Python shows another
    this.groups = [];
    this.edges = null;
    this.comparison = {};
    this.mode = null;
    this.soloCategory = null;
    this.revision = 0;
    this.theme = readTheme(root);
  }

  get comparing() { return Boolean(this.comparison.mode); }
  get hasBlocks() { return this.picture.boxOfBlock.size > 0; }

  codeOf(node) { return this.colouring?.codes?.[node] ?? -1; }

  /** Take over the traits of the model. */
  readScene(model) {
    this.scene = new SceneData(model.get("names") ?? {});
    this.readPicture(model);
    this.readColourings(model);
    this.readOverlays(model);
  }

  readPicture(model) {
    this.picture = new PictureData(model.get("picture") ?? {}, this.scene);
    if (this.focusBox >= this.picture.count) this.focusBox = -1;
    this.hover = null;
  }

  readColourings(model) {
    this.colourings = (model.get("colourings") ?? []).map((wire) => ({
      ...wire,
      data: wire.values ? floats(wire.values) : null,
      codes: wire.codes ? ints(wire.codes) : null,
    }));
    this.chooseColouring(model.get("colour_by"));
  }

  chooseColouring(key) {
    this.colouring = this.colourings.find((c) => c.key === key) ?? this.colourings[0] ?? null;
    this.soloCategory = null;
  }

  readOverlays(model) {
    const comparison = model.get("comparison") ?? {};
    if (comparison !== this.comparison) this.mode = comparison.mode ?? null;
    this.comparison = comparison;
    this.selected = new Set(this.scene.indices(model.get("selection")));
    this.highlightWire = model.get("highlighted") ?? {};
    this.groups = model.get("groups") ?? [];
    this.edges = this._edgeValues(model.get("edge_values") ?? {});
  }

  _edgeValues(wire) {
    if (wire.classes) return { ...wire, codes: flags(wire.codes) };
    if (!wire.values) return null;
    const values = floats(wire.values);
    const solid = flags(wire.solid);
    let high = 0;
    let someDashed = false;
    values.forEach((value, edge) => {
      if (value > high) high = value;
      if (Number.isFinite(value) && !solid[edge]) someDashed = true;
    });
    return { ...wire, values, solid, high, someDashed };
  }

  /** Recompute what depends on traits, theme, selection or search. */
  derive() {
    const { picture, scene } = this;
    const boxesOf = (nodes) => new Set([...nodes].map((node) => picture.home[node]));
    this.revision += 1;
    this.selectedBoxes = boxesOf(this.selected);
    this.matches = boxesOf(this.matchNodes);
    this.currentMatch = this.matchNode >= 0 ? picture.home[this.matchNode] : -1;
    this.highlight = null;
    this.site = null;
    const shown = this.highlightWire !== this.dismissedSite;
    const nodes = shown ? scene.indices(this.highlightWire.nodes) : [];
    if (nodes.length) this._deriveSite(boxesOf(nodes));
    this.hulls = this.groups.map((group) =>
      makeHull(picture, boxesOf(scene.indices(group.nodes)), group.colour, group.label),
    );
    this.looks = boxLooks(this);
    this.lineLooks = lineLooks(this);
  }

  _deriveSite(boxes) {
    const { picture, theme } = this;
    const frames = new Set();
    for (const box of boxes) {
      for (let up = picture.parent(box); up >= 0; up = picture.parent(up)) frames.add(up);
    }
    this.highlight = { boxes, frames, dim: this.highlightWire.dim !== false };
    this.site = makeHull(picture, boxes, theme.brand, this.highlightWire.label ?? "");
  }

  refreshTheme() {
    const theme = readTheme(this.root);
    const changed = theme.key !== this.theme.key;
    this.theme = theme;
    return changed;
  }

  changeCounts() {
    const counts = { added: 0, removed: 0, changed: 0 };
    for (let node = 0; node < this.scene.count; node += 1) {
      const status = this.scene.status(node);
      if (status === STATUS.ADDED) counts.added += 1;
      if (status === STATUS.REMOVED) counts.removed += 1;
      if (status === STATUS.CHANGED) counts.changed += 1;
    }
    return counts;
  }

  /** The panes that are shown: one, or before and after. */
  panes() {
    if (!this.comparing || this.mode !== "split") return [{ pane: null, title: "", note: "" }];
    const { added, removed, changed } = this.changeCounts();
    const altered = changed ? `~${changed}` : "";
    const join = (...parts) => parts.filter(Boolean).join("  ");
    return [
      { pane: "before", title: this.comparison.before ?? "Before", note: join(removed ? `−${removed}` : "", altered) },
      { pane: "after", title: this.comparison.after ?? "After", note: join(added ? `+${added}` : "", altered) },
    ];
  }
}
