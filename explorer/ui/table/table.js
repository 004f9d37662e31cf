// The candidate table. All texts are set as text nodes: names in models are hostile.
const COLUMNS = [
  { key: "title", title: "Rewrite", sort: (r) => r.title },
  { key: "kind", title: "Class", sort: (r) => "ERDA".indexOf(r.kind) },
  { key: "bytes", title: "Weights", sort: (r) => r.bytes },
  { key: "predicted", title: "Predicted", sort: (r) => (r.predicted ? r.predicted.ratio : Infinity) },
  { key: "measured", title: "Measured", sort: (r) => (r.measured ? r.measured.ratio : Infinity) },
];
const CLASSES = {
  E: "exact: the same bits",
  R: "re-associated: equal up to rounding",
  D: "domain-restricted: equal for finite values",
  A: "approximation",
};
const KEYS = { a: "accept", x: "reject", m: "measure", u: "undo", r: "redo" };
const SHOWN = 400;

function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function deltaCell(delta) {
  const cell = make("td", "et-delta");
  if (!delta) {
    cell.append(make("span", "et-none", "–"));
    return cell;
  }
  const value = make("span", `et-value et-${delta.verdict.toLowerCase()}`, `${delta.sign} ${delta.text}`);
  cell.append(value, make("span", "et-interval", delta.interval), make("span", "et-verdict", delta.verdict_text));
  cell.title = delta.origin;
  return cell;
}

function rowOf(row, model) {
  const line = make("tr", row.rejected ? "et-rejected" : "");
  line.dataset.id = row.id;
  line.setAttribute("aria-selected", String(model.get("selected") === row.id));
  const what = make("td", "et-what");
  what.append(make("span", "et-title", row.title), make("span", "et-summary", row.summary));
  if (row.rejected) what.append(make("span", "et-tag", "rejected"));
  if (!row.portable) what.append(make("span", "et-tag", "ONNX Runtime only"));
  what.title = `${row.rule} at ${row.nodes.join(", ")}`;
  const kind = make("td", "et-kind", row.kind);
  kind.title = CLASSES[row.kind];
  line.append(what, kind, make("td", "et-bytes", row.bytes_text), deltaCell(row.predicted), deltaCell(row.measured));
  return line;
}

function render({ model, el }) {
  el.classList.add("explorer-table");
  const state = { text: "", rule: "", sort: null, down: true, here: false };
  const bar = make("div", "et-bar");
  const search = make("input", "et-input");
  search.type = "search";
  search.placeholder = "Filter candidates";
  search.setAttribute("aria-label", "Filter candidates by text");
  const rules = make("select", "et-select");
  rules.setAttribute("aria-label", "Filter candidates by rewrite");
  const here = make("label", "et-here");
  const box = make("input");
  box.type = "checkbox";
  here.append(box, document.createTextNode(" at selected nodes"));
  const count = make("span", "et-count");
  count.setAttribute("aria-live", "polite");
  bar.append(search, rules, here, count);
  const scroller = make("div", "et-scroller");
  scroller.tabIndex = 0;
  scroller.setAttribute("role", "group");
  scroller.setAttribute("aria-label", "Candidates; arrows select, A accept, X reject, M measure, U undo, R redo");
  const table = make("table");
  const head = make("thead");
  const body = make("tbody");
  table.append(head, body);
  scroller.append(table);
  el.append(bar, scroller);

  function visible() {
    const focus = new Set(model.get("focus"));
    const words = state.text.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = model.get("rows").filter((row) => {
      if (state.rule && row.title !== state.rule) return false;
      if (state.here && focus.size && !row.nodes.some((n) => focus.has(n))) return false;
      const haystack = `${row.title} ${row.summary} ${row.rule} ${row.nodes.join(" ")}`.toLowerCase();
      return words.every((word) => haystack.includes(word));
    });
    if (state.sort) {
      const sign = state.down ? 1 : -1;
      const by = state.sort.sort;
      rows.sort((a, b) => (by(a) < by(b) ? -sign : by(a) > by(b) ? sign : 0));
    }
    return rows;
  }

  function drawHead() {
    const line = make("tr");
    for (const column of COLUMNS) {
      const cell = make("th");
      const button = make("button", "et-sort", column.title);
      const active = state.sort === column;
      if (active) button.append(make("span", "", state.down ? " ↓" : " ↑"));
      cell.setAttribute("aria-sort", active ? (state.down ? "ascending" : "descending") : "none");
      button.addEventListener("click", () => {
        state.down = active ? !state.down : true;
        state.sort = column;
        draw();
      });
      cell.append(button);
      line.append(cell);
    }
    head.replaceChildren(line);
  }

  function drawRules() {
    const titles = [...new Set(model.get("rows").map((row) => row.title))].sort();
    if (!titles.includes(state.rule)) state.rule = "";
    const options = ["", ...titles].map((title) => {
      const total = model.get("rows").filter((row) => row.title === title).length;
      const option = make("option", "", title ? `${title} (${total})` : "All rewrites");
      option.value = title;
      return option;
    });
    rules.replaceChildren(...options);
    rules.value = state.rule;
  }

  function draw() {
    drawHead();
    const rows = visible();
    body.replaceChildren(...rows.slice(0, SHOWN).map((row) => rowOf(row, model)));
    const total = model.get("rows").length;
    const shown = rows.length > SHOWN ? `first ${SHOWN} of ${rows.length}` : `${rows.length}`;
    count.textContent = rows.length === total ? `${shown} candidates` : `${shown} of ${total} candidates`;
    if (!total) body.append(emptyLine("No rule applies to this graph. Look at the near misses for reasons."));
    else if (!rows.length) body.append(emptyLine("Nothing matches the filter."));
    el.dataset.rows = String(rows.length);
    el.dataset.drawn = String(Number(el.dataset.drawn || 0) + 1);
  }

  function emptyLine(text) {
    const line = make("tr");
    const cell = make("td", "et-empty", text);
    cell.colSpan = COLUMNS.length;
    line.append(cell);
    return line;
  }

  function mark() {
    const selected = model.get("selected");
    for (const line of body.children) {
      const is = line.dataset.id !== undefined && line.dataset.id === selected;
      line.setAttribute("aria-selected", String(is));
      if (is) line.scrollIntoView({ block: "nearest" });
    }
  }

  function select(id) {
    if (model.get("selected") === id) return;
    model.set("selected", id);
    model.save_changes();
  }

  function move(step) {
    const ids = visible().slice(0, SHOWN).map((row) => row.id);
    if (!ids.length) return;
    const at = ids.indexOf(model.get("selected"));
    select(ids[Math.min(Math.max(at + step, 0), ids.length - 1)]);
  }

  body.addEventListener("click", (event) => {
    const line = event.target.closest("tr");
    if (line && line.dataset.id) select(line.dataset.id);
  });
  scroller.addEventListener("keydown", (event) => {
    event.stopPropagation();
    const plain = !(event.ctrlKey || event.metaKey || event.altKey);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
    if (event.key in steps) move(steps[event.key]);
    else if (plain && event.key in KEYS && !model.get("busy")) model.send({ command: KEYS[event.key] });
    else return;
    event.preventDefault();
  });
  bar.addEventListener("keydown", (event) => event.stopPropagation());
  search.addEventListener("input", () => { state.text = search.value; draw(); });
  rules.addEventListener("change", () => { state.rule = rules.value; draw(); });
  box.addEventListener("change", () => { state.here = box.checked; draw(); });

  const refresh = () => { drawRules(); draw(); mark(); };
  const focus = () => { if (state.here) { draw(); mark(); } };
  model.on("change:rows", refresh);
  model.on("change:selected", mark);
  model.on("change:focus", focus);
  refresh();
  return () => {
    model.off("change:rows", refresh);
    model.off("change:selected", mark);
    model.off("change:focus", focus);
  };
}

export default { render };
