// Tables of sites. All texts are set as text nodes: names in models are hostile.

const CLASSES = {
  E: "exact: the same bits",
  R: "re-associated: equal up to rounding",
  D: "domain-restricted: equal for finite values",
  A: "approximation",
};
// Keys that work anywhere in the app, except where people type.
const KEYS = { a: "accept", x: "reject", m: "measure", b: "compare", u: "undo", r: "redo", s: "step" };
const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
const SHOWN = 400;
const TYPING = "input, select, textarea, [contenteditable=true], canvas";

const ORDER = "In this order unless you sort: what is known to gain comes first (measured or predicted, most first), "
  + "then what is open, by its prediction or else by a rough count of work saved, "
  + "then what makes no measurable difference, then what is slower; rejected places last. Switches of the runtime, if shown, stand above.";
const KIND = `How equal the outputs stay. ${Object.entries(CLASSES).map(([key, text]) => `${key}: ${text}`).join("; ")}.`;
const BYTES = "Bytes of weights that the rewrite adds to the model (+) or frees (−).";
const PREDICTED = "Sum of isolated operator times: each operator timed alone on the target, nothing run as a whole. "
  + "The interval holds the timing's own spread and what each operator type may gain or lose inside the whole.";
const MEASURED = "Both models timed against each other on the target, with a control of the model against itself.";

const KINDS = {
  candidates: {
    noun: "candidate",
    all: "All rewrites",
    label: "Candidates; arrows select, A accept, X reject, M measure, B before and after, U undo, R redo",
    none: "No rule applies to this graph. The near misses say why.",
    columns: [
      { key: "what", title: "Rewrite", help: ORDER, sort: (r) => r.title, cell: candidateCell },
      { key: "kind", title: "Class", help: KIND, sort: (r) => "ERDA".indexOf(r.kind), cell: kindCell },
      { key: "bytes", title: "Weights", help: BYTES, sort: (r) => r.bytes, cell: (r) => make("td", "et-bytes", r.bytes_text) },
      { key: "predicted", title: "Predicted", help: PREDICTED, sort: (r) => r.predicted?.ratio ?? Infinity, cell: (r) => deltaCell(r.predicted, r.unpredicted), optional: (r) => r.predicted || r.unpredicted },
      { key: "measured", title: "Measured", help: MEASURED, sort: (r) => r.measured?.ratio ?? Infinity, cell: (r) => deltaCell(r.measured) },
    ],
  },
  "near misses": {
    noun: "near miss",
    all: "All rules",
    label: "Near misses; arrows select",
    none: "No near misses: wherever a rule's structure fits, the rule applies.",
    columns: [{ key: "what", title: "Why not here?", sort: (r) => r.title, cell: missCell }],
  },
};

function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function plural(count, noun) {
  if (count === 1) return `1 ${noun}`;
  return `${count} ${noun.endsWith("s") ? `${noun}es` : `${noun}s`}`;
}

function candidateCell(row) {
  const cell = make("td", "et-what");
  const head = make("div", "et-head");
  const summary = make("div", "et-summary");
  head.append(make("span", "et-title", row.title));
  if (row.rejected) summary.append(make("span", "et-tag", "rejected"));
  if (row.place) {
    const tag = make("span", "et-tag", row.portable ? "interface" : "runtime");
    tag.title = row.portable ? "Changes what callers of the model may feed" : "A setting of the runtime: the graph stays as it is";
    summary.append(tag);
  } else if (!row.portable) {
    const tag = make("span", "et-tag", "ORT only");
    tag.title = "Needs com.microsoft operators: runs on ONNX Runtime only";
    summary.append(tag);
  }
  if (row.absorbed) {
    const tag = make("span", "et-tag et-absorbed", "runtime does it");
    tag.title = "The target's own optimiser turns both graphs into the same one: accepting this changes no time there";
    summary.append(tag);
  }
  summary.append(document.createTextNode(row.summary));
  cell.append(head, summary);
  cell.title = `${row.title}\n${row.summary}\n${row.place || `${row.rule} at ${row.nodes.join(", ")}\nweights: ${row.bytes_text}`}`;
  return cell;
}

function missCell(row) {
  const cell = make("td", "et-what");
  const head = make("div", "et-head");
  head.append(make("span", "et-title", row.title), make("span", "et-nodes", row.nodes.join(", ")));
  cell.append(head, make("div", "et-reason", row.summary));
  cell.title = `${row.rule} at ${row.nodes.join(", ")}`;
  return cell;
}

function kindCell(row) {
  const cell = make("td", "et-kind", row.kind);
  cell.title = CLASSES[row.kind];
  return cell;
}

function deltaCell(delta, reason = "") {
  const cell = make("td", "et-delta");
  if (!delta) {
    cell.append(make("span", "et-none", reason ? "not possible" : "–"));
    cell.title = reason;
    return cell;
  }
  const kind = delta.verdict.toLowerCase();
  const value = make("div", "et-value");
  value.append(
    make("span", `et-${kind}`, `${delta.sign} ${delta.text}`),
    make("span", "et-verdict", ` ${delta.verdict_text}`),
  );
  const interval = kind === "identical" ? "same graph at run time" : delta.interval;
  const mark = delta.mark && delta.measured ? ` · ${delta.mark}` : "";
  cell.append(value, make("div", "et-interval", interval + mark));
  cell.title = `${delta.sign} ${delta.text} ${delta.verdict_text}\n${delta.interval}\n${delta.origin}`;
  return cell;
}

class Table {
  constructor(model, el) {
    this.model = model;
    this.el = el;
    this.kind = KINDS[model.get("kind")];
    this.state = { text: "", rule: "", sort: null, down: true };
    this.stops = [];
    el.classList.add("explorer-table");
    this._build();
    this._listen();
    this.refresh();
  }

  _build() {
    const bar = make("div", "et-bar");
    this.search = make("input", "et-input");
    this.search.type = "search";
    this.search.placeholder = `Filter ${plural(2, this.kind.noun).slice(2)}`;
    this.search.setAttribute("aria-label", this.search.placeholder);
    this.rules = make("select", "et-select");
    this.rules.setAttribute("aria-label", `${this.search.placeholder} by rule`);
    const here = make("label", "et-here");
    here.title = "Only what concerns the nodes selected in the graph";
    this.here = make("input");
    this.here.type = "checkbox";
    here.append(this.here, document.createTextNode("at selected nodes"));
    this.count = make("span", "et-count");
    this.count.setAttribute("aria-live", "polite");
    bar.append(this.search, this.rules, here, this.count);
    this.scroller = make("div", "et-scroller");
    this.scroller.tabIndex = 0;
    this.scroller.setAttribute("role", "group");
    this.scroller.setAttribute("aria-label", this.kind.label);
    const table = make("table");
    table.setAttribute("role", "grid");
    this.columns = make("colgroup");
    this.head = make("thead");
    this.body = make("tbody");
    table.append(this.columns, this.head, this.body);
    this.empty = make("div", "et-empty");
    this.empty.setAttribute("role", "status");
    this.scroller.append(table, this.empty);
    this.el.append(bar, this.scroller);
    this.bar = bar;
  }

  _listen() {
    const { model } = this;
    const watch = (name, handler) => {
      model.on(`change:${name}`, handler);
      this.stops.push(() => model.off(`change:${name}`, handler));
    };
    watch("rows", () => this.refresh());
    watch("state", () => this.draw());
    watch("selected", () => this.mark(true));
    watch("focus", () => model.get("only_here") && this.draw());
    watch("only_here", () => this.draw());
    this.search.addEventListener("input", () => { this.state.text = this.search.value; this.draw(); });
    this.rules.addEventListener("change", () => { this.state.rule = this.rules.value; this.draw(); });
    this.here.addEventListener("change", () => {
      model.set("only_here", this.here.checked);
      model.save_changes();
    });
    this.body.addEventListener("click", (event) => {
      const line = event.target.closest("tr");
      if (line?.dataset.id) this.select(line.dataset.id);
    });
    this.scroller.addEventListener("keydown", (event) => this._onArrow(event));
    this.bar.addEventListener("keydown", (event) => event.stopPropagation());
    if (model.get("kind") === "candidates") this._listenToApp();
  }

  /** Keys of the app: handled before JupyterLab sees them, which would edit the notebook.
   *  A button that is disabled while something runs loses the focus to the page; the app keeps the keys
   *  until the person turns to something else. */
  _listenToApp() {
    let inside = false;
    const contains = (node) => Boolean(this.el.closest(".explorer-app")?.contains(node));
    const onTurn = (event) => { inside = contains(event.target); };
    const onKey = (event) => {
      const plain = !(event.ctrlKey || event.metaKey || event.altKey);
      const here = contains(event.target) || (inside && event.target === document.body);
      if (!here || !plain || event.key.length !== 1 || event.target.closest(TYPING)) return;
      if (event.key === " ") return; // presses the focused button
      event.stopPropagation();
      if (!(event.key in KEYS)) return;
      event.preventDefault();
      if (!this.model.get("busy")) this.model.send({ command: KEYS[event.key] });
    };
    for (const [name, handler] of [["focusin", onTurn], ["pointerdown", onTurn], ["keydown", onKey]]) {
      document.addEventListener(name, handler, true);
      this.stops.push(() => document.removeEventListener(name, handler, true));
    }
  }

  _onArrow(event) {
    if (!(event.key in STEPS) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const ids = this.visible().slice(0, SHOWN).map((row) => row.id);
    if (!ids.length) return;
    const at = ids.indexOf(this.model.get("selected"));
    const to = at < 0 ? 0 : at + STEPS[event.key];
    this.select(ids[Math.min(Math.max(to, 0), ids.length - 1)]);
  }

  select(id) {
    if (this.model.get("selected") === id) return;
    this.model.set("selected", id);
    this.model.save_changes();
  }

  visible() {
    const { state, model } = this;
    const focus = new Set(model.get("focus"));
    const here = model.get("only_here");
    const words = state.text.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = model.get("rows").filter((row) => {
      if (state.rule && row.title !== state.rule) return false;
      if (here && !row.nodes.some((node) => focus.has(node))) return false;
      const hay = `${row.title} ${row.summary} ${row.rule} ${row.nodes.join(" ")}`.toLowerCase();
      return words.every((word) => hay.includes(word));
    });
    if (!state.sort) return rows;
    const { sort } = state.sort;
    const sign = state.down ? 1 : -1;
    return rows.sort((a, b) => {
      const [x, y] = [sort(a), sort(b)];
      if (x === Infinity || y === Infinity) return (x === Infinity) - (y === Infinity); // not known: last either way
      return x < y ? -sign : x > y ? sign : 0;
    });
  }

  refresh() {
    const place = () => this.visible().findIndex((row) => row.id === this.model.get("selected"));
    const before = this.place;
    this._drawRules();
    this.draw();
    this.place = place();
    if (this.place < 0 && before >= 0) this.scroller.scrollTop = 0; // it was accepted: here are other rows
    else if (this.place !== before) this.mark(true); // what is known now may have moved the selected row
  }

  draw() {
    const all = this.model.get("rows");
    const rows = this.visible();
    const offered = this.kind.columns.filter((c) => !c.optional || all.some(c.optional));
    const wide = offered.some((c) => c.key === "predicted"); // then weights are in the tooltip only
    const columns = offered.filter((c) => !wide || c.key !== "bytes");
    this.el.classList.toggle("et-wide", wide);
    this._drawHead(columns);
    this.body.replaceChildren(...rows.slice(0, SHOWN).map((row, i) => this._line(row, i, columns)));
    this.here.checked = this.model.get("only_here");
    this.count.textContent = this._countText(rows.length, all.length);
    this.empty.textContent = this._emptyText(rows.length, all.length);
    this.empty.hidden = !this.empty.textContent;
    this.mark(false);
    this.el.dataset.rows = String(rows.length);
    this.el.dataset.drawn = String(Number(this.el.dataset.drawn || 0) + 1);
  }

  _line(row, index, columns) {
    const line = make("tr", row.rejected ? "et-rejected" : "");
    line.dataset.id = row.id;
    line.dataset.place = row.place || `${row.rule}:${row.nodes.join("+")}`;
    line.id = `et-${this.model.model_id ?? "table"}-${index}`;
    line.append(...columns.map((column) => column.cell(row)));
    return line;
  }

  _countText(shown, total) {
    if (!total) return "";
    if (shown === total) return plural(total, this.kind.noun);
    return `${shown} of ${plural(total, this.kind.noun)}`;
  }

  _emptyText(shown, total) {
    if (shown > SHOWN) return `The first ${SHOWN} are shown; filter to see others.`;
    if (shown) return "";
    if (this.model.get("state") === "closed") return "Nothing is open yet.";
    if (this.model.get("state") === "loading") return "Looking for places where rules apply …";
    if (!total) return this.kind.none;
    if (this.model.get("only_here") && !this.model.get("focus").length) {
      return "Select nodes in the graph: click one, Shift + click for more, Shift + drag for a lasso.";
    }
    return "Nothing matches the filter.";
  }

  _drawHead(columns) {
    const key = columns.map((column) => column.key).join(" ");
    const { state } = this;
    const line = make("tr");
    for (const column of columns) {
      const cell = make("th");
      const button = make("button", "et-sort", column.title);
      button.type = "button";
      if (column.help) button.title = column.help;
      if (column.key === "predicted") button.append(make("span", "et-by", this._predictedBy()));
      const active = state.sort === column;
      if (active) button.append(make("span", "et-arrow", state.down ? " ▲" : " ▼"));
      cell.setAttribute("aria-sort", active ? (state.down ? "ascending" : "descending") : "none");
      button.addEventListener("click", () => this._sortBy(column));
      cell.append(button);
      line.append(cell);
    }
    this.head.replaceChildren(line);
    if (this.columns.dataset.key === key) return;
    this.columns.dataset.key = key;
    this.columns.replaceChildren(...columns.map((column) => make("col", `et-col-${column.key}`)));
  }

  /** What made the predictions, for the head of their column. */
  _predictedBy() {
    const marks = this.model.get("rows").map((row) => row.predicted?.mark).filter(Boolean);
    return marks.length ? ` ${[...new Set(marks)].join(", ")}` : "";
  }

  /** First click sorts up, second down, third puts back the order given (see ORDER). */
  _sortBy(column) {
    const { state } = this;
    if (state.sort !== column) [state.sort, state.down] = [column, true];
    else if (state.down) state.down = false;
    else state.sort = null;
    this.draw();
  }

  _drawRules() {
    const counts = new Map();
    for (const row of this.model.get("rows")) counts.set(row.title, (counts.get(row.title) ?? 0) + 1);
    if (!counts.has(this.state.rule)) this.state.rule = "";
    const options = [["", this.kind.all], ...[...counts].sort().map(([t, n]) => [t, `${t} (${n})`])];
    this.rules.replaceChildren(
      ...options.map(([value, text]) => {
        const option = make("option", "", text);
        option.value = value;
        return option;
      }),
    );
    this.rules.value = this.state.rule;
  }

  mark(scroll) {
    const selected = this.model.get("selected");
    let active = "";
    for (const line of this.body.children) {
      const is = line.dataset.id === selected;
      line.setAttribute("aria-selected", String(is));
      if (!is) continue;
      active = line.id;
      if (scroll) this._bringIntoView(line);
    }
    this.scroller.setAttribute("aria-activedescendant", active);
  }

  /** Scrolls the table alone; scrollIntoView would move the notebook too. */
  _bringIntoView(line) {
    const { scroller } = this;
    const top = line.offsetTop - this.head.offsetHeight;
    const bottom = line.offsetTop + line.offsetHeight;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (bottom > scroller.scrollTop + scroller.clientHeight) {
      scroller.scrollTop = bottom - scroller.clientHeight;
    }
  }

  close() {
    for (const stop of this.stops) stop();
    this.el.replaceChildren();
  }
}

function render({ model, el }) {
  const table = new Table(model, el);
  return () => table.close();
}

export default { render };
