// Search by operator, name or id over all nodes, those in closed blocks included.

import { element } from "./controls.js";

export class Search {
  constructor(parent, actions) {
    this.actions = actions;
    this.found = [];
    this.at = -1;
    this.input = element("input", "eg-input", parent);
    this.input.type = "search";
    this.input.placeholder = "Find a node  ( / )";
    this.input.title = "By operator, name or id";
    this.input.setAttribute("aria-label", "Find a node by operator, name or id");
    this.previous = this._button(parent, "‹", "Previous match (Shift+Enter)", -1);
    this.next = this._button(parent, "›", "Next match (Enter)", 1);
    this.count = element("span", "eg-found", parent);
    this.count.setAttribute("role", "status");
    this.input.addEventListener("input", () => this._search());
    this.input.addEventListener("keydown", (event) => this._onKey(event));
  }

  _button(parent, text, title, step) {
    const node = element("button", "eg-button", parent, text);
    node.type = "button";
    node.title = title;
    node.setAttribute("aria-label", title);
    node.addEventListener("click", () => this.move(step));
    return node;
  }

  _onKey(event) {
    event.stopPropagation(); // or JupyterLab takes letters for commands
    if (event.key === "Enter") {
      event.preventDefault();
      this.move(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      event.preventDefault();
      this.clear();
      this.actions.leave();
    }
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  clear() {
    this.input.value = "";
    this._search();
  }

  _search() {
    const wanted = this.input.value.trim().toLowerCase();
    this.found = wanted ? matching(this.actions.scene(), wanted) : [];
    this.at = -1;
    this._show();
    this.actions.matches(this.found, -1);
  }

  /** Search again after the scene has changed. */
  refresh() {
    if (this.input.value) this._search();
  }

  move(step) {
    if (!this.found.length) return;
    const count = this.found.length;
    this.at = this.at < 0 ? (step > 0 ? 0 : count - 1) : (this.at + step + count) % count;
    this._show();
    this.actions.matches(this.found, this.found[this.at]);
  }

  _show() {
    const count = this.found.length;
    this.previous.disabled = this.next.disabled = !count;
    if (!this.input.value.trim()) this.count.textContent = "";
    else if (!count) this.count.textContent = "none";
    else this.count.textContent = this.at < 0 ? `${count} found` : `${this.at + 1} of ${count}`;
  }
}

/** Nodes that match, exact ids and operators first, in the order of the graph otherwise. */
function matching(scene, wanted) {
  const exact = [];
  const partial = [];
  for (let node = 0; node < scene.count; node += 1) {
    const texts = [scene.id(node), scene.label(node), scene.name(node)].map((t) => t.toLowerCase());
    if (texts[0] === wanted || texts[1] === wanted) exact.push(node);
    else if (texts.some((text) => text.includes(wanted))) partial.push(node);
  }
  return exact.concat(partial);
}
