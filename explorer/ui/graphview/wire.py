"""Scenes and drawings as the canvas reads them: flat arrays, and every text once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.ui.graphview.blocks import Block, BlockKind, Tree
from explorer.ui.graphview.layout import Drawing
from explorer.ui.graphview.palette import ADDED, CHANGED, FAMILIES, REMOVED
from explorer.ui.graphview.scene import EdgeStyle, Kind, Scene, Status
from explorer.ui.graphview.visible import Item

_KINDS = {kind: i for i, kind in enumerate(Kind)}
_STATUS = {status: i for i, status in enumerate(Status)}
_STYLES = {style: i for i, style in enumerate(EdgeStyle)}
_FAMILIES = {key: i for i, key in enumerate(FAMILIES)}
#: Codes of boxes; the first three are those of ``Kind``.
BLOCK, FRAME = 3, 4


class _Texts:
    """Numbers texts in order of appearance."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.number.setdefault(text, len(self.number))


def scene_wire(scene: Scene) -> dict[str, Any]:
    """All texts of a scene, and int32 columns that point to them.

    ``nodes`` has 8 columns: id, label, hint, name, detail, tooltip, family, kind + 8 * status.
    ``edges`` has 5: source, target, tensor, shape, style + 8 * status; ``edge_bytes`` is float32.
    """
    text = _Texts()
    nodes = [
        (
            text(n.id), text(n.label), text(n.hint), text(n.name), text(n.detail),
            text("\n".join(n.tooltip)), _FAMILIES.get(n.family, _FAMILIES["other"]),
            _KINDS[n.kind] + 8 * _STATUS[n.status],
        )
        for n in scene.nodes
    ]  # fmt: skip
    edges = [
        (e.source, e.target, text(e.tensor), text(e.shape), _STYLES[e.style] + 8 * _STATUS[e.status])
        for e in scene.edges
    ]
    sizes = [np.nan if e.bytes is None else float(e.bytes) for e in scene.edges]
    return {
        "title": scene.title,
        "texts": list(text.number),
        "nodes": np.asarray(nodes, dtype=np.int32).tobytes(),
        "edges": np.asarray(edges, dtype=np.int32).tobytes(),
        "edge_bytes": np.asarray(sizes, dtype=np.float32).tobytes(),
        "families": [{"label": label, "colour": colour} for label, colour in FAMILIES.values()],
        "marks": {"added": ADDED, "removed": REMOVED, "changed": CHANGED},
    }


def picture_wire(scene: Scene, tree: Tree, drawing: Drawing) -> dict[str, Any]:
    """Positions of everything visible.

    ``boxes`` is float32 (x, y, width, height); ``box_info`` int32 (code, node, block, parent,
    depth), -1 for none. ``lines`` is int32 (source, target, first point, points, first member,
    members), ``points`` float32 pairs. ``stubs`` is int32 (box, incoming, first member, members)
    with float32 pairs in ``stub_points``. ``home`` is the box of every node of the scene.
    """
    blocks: list[dict[str, Any]] = []
    info = [_box_info(scene, tree, box.item, box.depth, blocks) for box in drawing.boxes]
    lines, points, stubs, members = _lines_wire(drawing)
    return {
        "width": drawing.width,
        "height": drawing.height,
        "blocks": blocks,
        "boxes": _floats([(b.x, b.y, b.width, b.height) for b in drawing.boxes]),
        "box_info": np.asarray(info, dtype=np.int32).tobytes(),
        "lines": np.asarray(lines, dtype=np.int32).tobytes(),
        "points": _floats(points),
        "members": np.asarray(members, dtype=np.int32).tobytes(),
        "stubs": np.asarray(stubs, dtype=np.int32).tobytes(),
        "stub_points": _floats([(s.x, s.y) for s in drawing.stubs]),
        "home": np.asarray(drawing.home, dtype=np.int32).tobytes(),
    }


def _floats(rows: list[tuple[float, ...]]) -> bytes:
    array: NDArray[np.float32] = np.asarray(rows, dtype=np.float32)
    return array.tobytes()


def _box_info(
    scene: Scene, tree: Tree, item: Item, depth: int, blocks: list[dict[str, Any]]
) -> tuple[int, int, int, int, int]:
    parent = -1 if item.parent is None else item.parent
    if item.node is not None:
        return _KINDS[scene.nodes[item.node].kind], item.node, -1, parent, depth
    block = tree.blocks[item.block or 0]
    blocks.append(_block_wire(scene, block))
    host = -1 if block.host is None else block.host
    return FRAME if item.frame else BLOCK, host, len(blocks) - 1, parent, depth


def _block_wire(scene: Scene, block: Block) -> dict[str, Any]:
    ops = Counter(scene.nodes[node].label for node in block.nodes)
    common = ", ".join(f"{op} ×{n}" if n > 1 else op for op, n in ops.most_common(4))
    return {
        "id": block.id,
        "title": block.title or BlockKind(block.kind).value,
        "count": len(block.nodes),
        "contents": common + (" …" if len(ops) > 4 else ""),
    }


def _lines_wire(
    drawing: Drawing,
) -> tuple[list[tuple[int, ...]], list[tuple[float, ...]], list[tuple[int, ...]], list[int]]:
    lines: list[tuple[int, ...]] = []
    points: list[tuple[float, ...]] = []
    stubs: list[tuple[int, ...]] = []
    members: list[int] = []
    for line in drawing.lines:
        lines.append(
            (
                line.source, line.target, len(points), len(line.points),
                len(members), len(line.members),
            )
        )  # fmt: skip
        points += line.points
        members += line.members
    for stub in drawing.stubs:
        stubs.append((stub.box, int(stub.incoming), len(members), len(stub.members)))
        members += stub.members
    return lines, points, stubs, members
