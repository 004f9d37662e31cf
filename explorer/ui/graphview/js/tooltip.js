// What the pointer is on, in words. Names are hostile: only textContent is ever set.

import { valueText, stubText } from "./boxes.js";
import { element } from "./controls.js";
import { formatValue } from "./units.js";

const SIGNS = ["", "added", "removed", "changed"];

export class Tooltip {
  constructor(parent) {
    this.parent = parent;
    this.node = element("div", "eg-tip", parent);
    this.node.hidden = true;
    this.key = "";
  }

  hide() {
    this.node.hidden = true;
    this.key = "";
  }

  show(state, hover, x, y) {
    const key = `${hover.box}|${hover.line}|${hover.stub}|${state.revision}`;
    if (key !== this.key) {
      this.key = key;
      this.node.replaceChildren();
      this._fill(state, hover);
    }
    this.node.hidden = false;
    const [w, h] = [this.parent.clientWidth, this.parent.clientHeight];
    const left = x + 16 + this.node.offsetWidth > w ? x - this.node.offsetWidth - 12 : x + 16;
    const top = Math.min(y + 14, h - this.node.offsetHeight - 6);
    this.node.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
  }

  _fill(state, hover) {
    if (hover.stub >= 0) this._stub(state, hover.stub);
    else if (hover.line >= 0) this._line(state, hover.line);
    else if (state.picture.block(hover.box)) this._block(state, hover.box);
    else this._node(state, hover.box);
  }

  _text(className, text) {
    if (text) element("div", className, this.node, text);
  }

  _node(state, box) {
    const { scene, picture, looks } = state;
    const node = picture.node(box);
    const status = SIGNS[scene.status(node)];
    this._text("eg-tip-head", [scene.label(node), scene.hint(node)].filter(Boolean).join(" "));
    this._text("eg-tip-id", [scene.id(node), status].filter(Boolean).join(" · "));
    this._text("eg-tip-name", scene.name(node));
    this._text("", scene.detail(node) && `output ${scene.detail(node)}`);
    for (const line of scene.tooltip(node).split("\n")) this._text("eg-tip-line", line);
    this._value(state, valueText(state, looks[box].value));
  }

  _value(state, value) {
    if (value) this._text("eg-tip-value", `${state.colouring.title}: ${value}`);
  }

  _block(state, box) {
    const { picture, looks } = state;
    const block = picture.block(box);
    this._text("eg-tip-head", block.title);
    this._text("", `${block.count} nodes`);
    this._text("eg-tip-line", block.contents);
    if (!picture.isFrame(box)) this._value(state, valueText(state, looks[box].value));
    this._text("eg-tip-hint", picture.isFrame(box) ? "double-click the title to close" : "double-click to open");
  }

  _line(state, line) {
    const { scene, picture, edges } = state;
    const members = [...picture.lineMembers(line)];
    for (const edge of members.slice(0, 4)) {
      this._text("eg-tip-name", scene.tensor(edge) || "tensor without a name");
      const size = scene.edgeBytes[edge];
      const parts = [scene.shape(edge), Number.isFinite(size) ? formatValue(size, "bytes") : "size unknown"];
      if (scene.captured(edge)) parts.push("captured by a body");
      if (SIGNS[scene.edgeStatus(edge)]) parts.push(SIGNS[scene.edgeStatus(edge)]);
      this._text("", parts.filter(Boolean).join(" · "));
      const kind = edges?.classes?.[edges.codes[edge]];
      if (kind) this._text("eg-tip-value", `${edges.title} ${kind.label}`);
      const value = edges?.values?.[edge];
      if (Number.isFinite(value)) this._text("eg-tip-value", `${edges.title}: ${formatValue(value, edges.unit)}`);
    }
    if (members.length > 4) this._text("eg-tip-hint", `and ${members.length - 4} more tensors`);
  }

  _stub(state, stub) {
    const { scene, picture } = state;
    const members = [...picture.stubMembers(stub)];
    this._text("eg-tip-head", stubText(state, stub));
    for (const edge of members.slice(0, 4)) {
      this._text("eg-tip-name", `${scene.tensor(edge)} ${scene.shape(edge)}`);
    }
    this._text("eg-tip-hint", picture.stubIncoming(stub) ? "click to go to where it is made" : "click to go to a consumer");
  }
}
