// Scenes and pictures as Python sends them (wire.py), with what is needed to find things fast.

export const KIND = { OP: 0, INPUT: 1, OUTPUT: 2, BLOCK: 3, FRAME: 4 };
export const STATUS = { KEPT: 0, ADDED: 1, REMOVED: 2, CHANGED: 3 };
const NODE_COLUMNS = 8;
const EDGE_COLUMNS = 5;
const BAND = 400; // height of a band of the spatial index, in pixels at 1:1

function bytesOf(value) {
  if (!value) return new ArrayBuffer(0);
  if (value instanceof ArrayBuffer) return value;
  return value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength);
}
export const ints = (value) => new Int32Array(bytesOf(value));
export const floats = (value) => new Float32Array(bytesOf(value));
export const flags = (value) => new Uint8Array(bytesOf(value));

/** All nodes and edges of the graph, visible or not. */
export class SceneData {
  constructor(names) {
    this.title = names.title ?? "";
    this.texts = names.texts ?? [];
    this.nodes = ints(names.nodes);
    this.edges = ints(names.edges);
    this.edgeBytes = floats(names.edge_bytes);
    this.families = names.families ?? [];
    this.marks = names.marks ?? {};
    this.count = this.nodes.length / NODE_COLUMNS;
    this.edgeCount = this.edges.length / EDGE_COLUMNS;
    this.byId = new Map();
    for (let i = 0; i < this.count; i += 1) this.byId.set(this.id(i), i);
  }

  text(node, column) {
    return this.texts[this.nodes[node * NODE_COLUMNS + column]] ?? "";
  }
  id(node) { return this.text(node, 0); }
  label(node) { return this.text(node, 1); }
  hint(node) { return this.text(node, 2); }
  name(node) { return this.text(node, 3); }
  detail(node) { return this.text(node, 4); }
  tooltip(node) { return this.text(node, 5); }
  family(node) { return this.nodes[node * NODE_COLUMNS + 6]; }
  kind(node) { return this.nodes[node * NODE_COLUMNS + 7] & 7; }
  status(node) { return this.nodes[node * NODE_COLUMNS + 7] >> 3; }
  source(edge) { return this.edges[edge * EDGE_COLUMNS]; }
  target(edge) { return this.edges[edge * EDGE_COLUMNS + 1]; }
  tensor(edge) { return this.texts[this.edges[edge * EDGE_COLUMNS + 2]] ?? ""; }
  shape(edge) { return this.texts[this.edges[edge * EDGE_COLUMNS + 3]] ?? ""; }
  captured(edge) { return (this.edges[edge * EDGE_COLUMNS + 4] & 7) === 1; }
  edgeStatus(edge) { return this.edges[edge * EDGE_COLUMNS + 4] >> 3; }

  indices(ids) {
    return (ids ?? []).map((id) => this.byId.get(id)).filter((i) => i !== undefined);
  }
}

/** Boxes, lines and stubs with positions, for the blocks that are open now. */
export class PictureData {
  constructor(picture, scene) {
    this.width = picture.width ?? 0;
    this.height = picture.height ?? 0;
    this.blocks = picture.blocks ?? [];
    this.boxes = floats(picture.boxes);
    this.info = ints(picture.box_info);
    this.lines = ints(picture.lines);
    this.points = floats(picture.points);
    this.members = ints(picture.members);
    this.stubs = ints(picture.stubs);
    this.stubPoints = floats(picture.stub_points);
    this.home = ints(picture.home);
    this.count = this.boxes.length / 4;
    this.lineCount = this.lines.length / 6;
    this.stubCount = this.stubs.length / 4;
    this.boxOfBlock = new Map();
    this.inside = new Map(); // closed block -> its nodes
    this.frames = [];
    this._indexBoxes();
    this._indexMembers(scene);
    this._indexBands();
  }

  x(box) { return this.boxes[box * 4]; }
  y(box) { return this.boxes[box * 4 + 1]; }
  w(box) { return this.boxes[box * 4 + 2]; }
  h(box) { return this.boxes[box * 4 + 3]; }
  code(box) { return this.info[box * 5]; }
  node(box) { return this.info[box * 5 + 1]; }
  block(box) { return this.blocks[this.info[box * 5 + 2]]; }
  parent(box) { return this.info[box * 5 + 3]; }
  depth(box) { return this.info[box * 5 + 4]; }
  isFrame(box) { return this.code(box) === KIND.FRAME; }
  isBlock(box) { return this.code(box) === KIND.BLOCK; }
  lineSource(line) { return this.lines[line * 6]; }
  lineTarget(line) { return this.lines[line * 6 + 1]; }
  lineMembers(line) {
    const first = this.lines[line * 6 + 4];
    return this.members.subarray(first, first + this.lines[line * 6 + 5]);
  }
  stubMembers(stub) {
    const first = this.stubs[stub * 4 + 2];
    return this.members.subarray(first, first + this.stubs[stub * 4 + 3]);
  }
  stubIncoming(stub) { return this.stubs[stub * 4 + 1] === 1; }

  /** Nodes of the scene that a box stands for. */
  nodesOf(box) {
    if (this.isFrame(box) && this.node(box) < 0) return this._nodesInFrame(box);
    return this.inside.get(box) ?? (this.node(box) >= 0 ? [this.node(box)] : []);
  }

  _nodesInFrame(frame) {
    const within = (box) => box === frame || (box >= 0 && within(this.parent(box)));
    return [...this.home.keys()].filter((node) => within(this.home[node]));
  }

  _indexBoxes() {
    for (let box = 0; box < this.count; box += 1) {
      if (this.block(box)) this.boxOfBlock.set(this.block(box).id, box);
      if (this.isFrame(box)) this.frames.push(box);
      if (this.isBlock(box)) this.inside.set(box, []);
    }
    this.home.forEach((box, node) => this.inside.get(box)?.push(node));
  }

  _indexMembers(scene) {
    this.incoming = Array.from({ length: this.count }, () => []);
    this.outgoing = Array.from({ length: this.count }, () => []);
    for (let line = 0; line < this.lineCount; line += 1) {
      this.outgoing[this.lineSource(line)].push(line);
      this.incoming[this.lineTarget(line)].push(line);
    }
    this.lineStatus = new Uint8Array(this.lineCount);
    this.lineCaptured = new Uint8Array(this.lineCount);
    for (let line = 0; line < this.lineCount; line += 1) {
      const members = [...this.lineMembers(line)];
      const first = members.length ? scene.edgeStatus(members[0]) : STATUS.KEPT;
      const same = members.every((edge) => scene.edgeStatus(edge) === first);
      this.lineStatus[line] = same ? first : STATUS.KEPT;
      this.lineCaptured[line] = members.length && members.every((edge) => scene.captured(edge));
    }
  }

  _indexBands() {
    const bands = Math.max(1, Math.ceil(this.height / BAND) + 1);
    this.boxBands = Array.from({ length: bands }, () => []);
    this.lineBands = Array.from({ length: bands }, () => []);
    this.stubBands = Array.from({ length: bands }, () => []);
    this.lineBox = new Float32Array(this.lineCount * 4); // left, top, right, bottom
    for (let box = 0; box < this.count; box += 1) {
      if (!this.isFrame(box)) this._put(this.boxBands, box, this.y(box), this.y(box) + this.h(box));
    }
    for (let line = 0; line < this.lineCount; line += 1) {
      const [left, top, right, bottom] = this._lineExtent(line);
      this.lineBox.set([left, top, right, bottom], line * 4);
      this._put(this.lineBands, line, top, bottom);
    }
    for (let stub = 0; stub < this.stubCount; stub += 1) {
      const y = this.stubPoints[stub * 2 + 1];
      this._put(this.stubBands, stub, y, y + 19);
    }
    this._stamp = new Int32Array(Math.max(this.count, this.lineCount, this.stubCount, 1));
    this._turn = 0;
  }

  _put(bands, index, top, bottom) {
    const first = Math.max(0, Math.floor(top / BAND));
    const last = Math.min(bands.length - 1, Math.floor(bottom / BAND));
    for (let band = first; band <= last; band += 1) bands[band].push(index);
  }

  _lineExtent(line) {
    const first = this.lines[line * 6 + 2];
    const count = this.lines[line * 6 + 3];
    const extent = [Infinity, Infinity, -Infinity, -Infinity];
    for (let i = first; i < first + count; i += 1) {
      const [x, y] = [this.points[i * 2], this.points[i * 2 + 1]];
      extent[0] = Math.min(extent[0], x);
      extent[1] = Math.min(extent[1], y);
      extent[2] = Math.max(extent[2], x);
      extent[3] = Math.max(extent[3], y);
    }
    return extent;
  }

  /** Numbers in the bands that a view (left, top, right, bottom) touches, each once. */
  *_within(bands, top, bottom) {
    this._turn += 1;
    const first = Math.max(0, Math.floor(top / BAND));
    const last = Math.min(bands.length - 1, Math.floor(bottom / BAND));
    for (let band = first; band <= last; band += 1) {
      for (const index of bands[band]) {
        if (this._stamp[index] === this._turn) continue;
        this._stamp[index] = this._turn;
        yield index;
      }
    }
  }

  boxesIn([left, top, right, bottom]) {
    const found = [];
    for (const box of this._within(this.boxBands, top, bottom)) {
      const [x, y] = [this.x(box), this.y(box)];
      if (x <= right && x + this.w(box) >= left && y <= bottom && y + this.h(box) >= top) {
        found.push(box);
      }
    }
    return found;
  }

  linesIn([left, top, right, bottom]) {
    const found = [];
    for (const line of this._within(this.lineBands, top, bottom)) {
      const at = line * 4;
      const [l, t, r, b] = this.lineBox.subarray(at, at + 4);
      if (l - 8 <= right && r + 8 >= left && t <= bottom && b >= top) found.push(line);
    }
    return found;
  }

  stubsIn([, top, , bottom]) {
    return [...this._within(this.stubBands, top, bottom)];
  }

  framesIn([left, top, right, bottom]) {
    return this.frames.filter((box) => {
      const [x, y] = [this.x(box), this.y(box)];
      return x <= right && x + this.w(box) >= left && y <= bottom && y + this.h(box) >= top;
    });
  }
}
