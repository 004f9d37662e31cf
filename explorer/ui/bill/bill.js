// The bill of a fusion group. All texts are set as text nodes: names in models are hostile.

function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

class BillView {
  constructor(model, el) {
    this.model = model;
    el.classList.add("explorer-bill");
    this.el = el;
    this.changed = () => this.draw();
    model.on("change:bill", this.changed);
    this.draw();
  }

  draw() {
    const bill = this.model.get("bill");
    const open = this.el.dataset.demand ? this.showsBlame : false;
    this.el.replaceChildren();
    this.el.dataset.demand = bill.demand ?? "";
    if (!bill.lines) return;
    this.el.append(this._head(bill), this._bar(bill), this._legend(bill));
    this._lists(bill, open);
  }

  _head(bill) {
    const head = make("div", `eb-head ${bill.fits ? "eb-fits" : "eb-over"}`);
    const share = Math.round((1000 * bill.demand_bytes) / bill.capacity_bytes) / 10;
    head.append(
      make("b", "", bill.fits ? "✓ fits" : "✕ does not fit"),
      make("span", "", ` ${bill.demand} of ${bill.capacity} (${share} %)`),
    );
    return head;
  }

  /** Segments from left to right, the buffer as a frame; what lies beyond it does not fit. */
  _bar(bill) {
    const bar = make("div", "eb-bar");
    bar.setAttribute("role", "img");
    bar.setAttribute("aria-label", `${bill.demand} on chip, the buffer holds ${bill.capacity}`);
    const scale = 100 / (Math.max(bill.demand_bytes, bill.capacity_bytes) * 1.001);
    const frame = make("div", "eb-frame");
    frame.style.width = `${bill.capacity_bytes * scale}%`;
    bar.append(frame);
    for (const line of bill.lines) {
      const part = make("button", `eb-part eb-${line.kind}`);
      part.style.width = `${line.bytes * scale}%`;
      part.title = `${line.title}: ${line.text}, ${line.share}\n${line.detail}`;
      part.setAttribute("aria-label", part.title);
      part.dataset.nodes = line.nodes.join(" ");
      part.addEventListener("click", () => this._click(line));
      bar.append(part);
    }
    const mark = make("div", "eb-mark");
    mark.style.left = `${bill.capacity_bytes * scale}%`;
    bar.append(mark);
    return bar;
  }

  _legend(bill) {
    const legend = make("div", "eb-legend");
    for (const kind of bill.kinds) {
      const item = make("span", "eb-kind");
      item.append(make("i", `eb-swatch eb-${kind.kind}`), make("span", "", `${kind.title} ${kind.text}`));
      legend.append(item);
    }
    const free = bill.capacity_bytes - bill.demand_bytes;
    legend.append(make("span", "eb-kind", `${free >= 0 ? "free" : "too much"} ${this._kb(Math.abs(free))}`));
    return legend;
  }

  _kb(bytes) {
    return `${(bytes / 1024).toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })} KB`;
  }

  _lists(bill, showsBlame) {
    const tabs = make("div", "eb-tabs");
    const body = make("div", "eb-list");
    const lists = [
      [`Bill (${bill.lines.length})`, () => this._billTable(bill)],
      [`Blame (${bill.blame.length})`, () => this._blameTable(bill)],
    ];
    const buttons = lists.map(([title], i) => {
      const button = make("button", "eb-tab", title);
      button.addEventListener("click", () => choose(i));
      return button;
    });
    const choose = (chosen) => {
      this.showsBlame = chosen === 1;
      buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === chosen)));
      body.replaceChildren(lists[chosen][1]());
    };
    tabs.append(...buttons, make("span", "eb-hint", "click a line to see it in the graph"));
    choose(showsBlame ? 1 : 0);
    this.el.append(tabs, body);
  }

  _billTable(bill) {
    return this._table(["what", "on chip", "of the buffer"], bill.lines, (line) => {
      const what = make("td", "eb-what");
      what.append(make("i", `eb-swatch eb-${line.kind}`), make("span", "", line.title));
      what.title = `${line.title}\n${line.detail}`;
      return [what, make("td", "eb-number", line.text), make("td", "eb-number", line.share.replace(" of the buffer", ""))];
    });
  }

  _blameTable(bill) {
    if (!bill.has_blame) return make("p", "eb-hint", "Too many operations to blame each: choose a smaller group.");
    return this._table(["without it the group …", "needs less by", "or, cut there, by"], bill.blame, (line) => {
      const what = make("td", "eb-what", line.title);
      what.title = `${line.kind} ${line.title}: it keeps ${line.held} on chip; cut there, the larger part needs ${line.relief} less than the whole`;
      return [what, make("td", "eb-number", line.held), make("td", "eb-number", line.relief)];
    });
  }

  _table(heads, lines, cells) {
    const table = make("table", "");
    const head = make("tr", "");
    head.append(...heads.map((text) => make("th", "", text)));
    table.append(head);
    for (const line of lines) {
      const row = make("tr", "eb-row");
      row.tabIndex = 0;
      row.append(...cells(line));
      row.addEventListener("click", () => this._click(line));
      row.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        event.stopPropagation();
        this._click(line);
      });
      table.append(row);
    }
    return table;
  }

  _click(line) {
    this.model.send({ nodes: line.nodes, label: `${line.title}: ${line.text ?? line.relief}` });
  }

  close() {
    this.model.off("change:bill", this.changed);
    this.el.replaceChildren();
  }
}

function render({ model, el }) {
  const view = new BillView(model, el);
  return () => view.close();
}

export default { render };
