"""Which blocks are open, and what is therefore on the screen."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from explorer.ui.graphview.blocks import BlockKind, Tree
from explorer.ui.graphview.scene import Scene

#: Graphs with more nodes open with blocks closed.
OPEN_NODES = 300
#: How many boxes a closed graph may show at first.
FIRST_BOXES = 80


@dataclass(frozen=True, slots=True)
class Item:
    """A box on the screen, or a frame around others.

    Attributes:
        node: Index of the node drawn as a box, or None.
        block: Index of the block drawn as a box or frame, or None.
        parent: Index of the frame around it in ``View.items``, or None.
        frame: Whether it is an open block.
    """

    node: int | None
    block: int | None
    parent: int | None
    frame: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A line between two items; ``members`` are the scene's edges it stands for."""

    source: int
    target: int
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class View:
    """Visible items (frames before their content), lines, and the item that shows each node."""

    items: tuple[Item, ...]
    links: tuple[Link, ...]
    home: tuple[int, ...]


def first_open(scene: Scene, tree: Tree) -> frozenset[str]:
    """Ids of the blocks that are open when a scene is first shown."""
    if len(scene.nodes) <= OPEN_NODES:
        return frozenset(block.id for block in tree.blocks)
    inside = tree.children()
    shown, opened = sum(map(len, inside[None])), set[int]()
    level = inside[None][0]
    while True:
        level = [i for i in level if tree.blocks[i].kind is not BlockKind.REPEAT]
        cost = {i: sum(map(len, inside[i])) - 1 for i in level}
        if level and shown + sum(cost.values()) > FIRST_BOXES and shown < FIRST_BOXES // 6:
            level = [min(level, key=lambda i: (-cost[i], i))]
        total = sum(cost[i] for i in level)
        if not level or shown + total > 2 * FIRST_BOXES or (
            shown >= FIRST_BOXES // 6 and shown + total > FIRST_BOXES
        ):  # fmt: skip
            return frozenset(tree.blocks[i].id for i in opened)
        opened |= set(level)
        shown += total
        level = [child for i in level for child in inside[i][0]]


def around(tree: Tree, nodes: Iterable[int]) -> frozenset[str]:
    """Ids of the blocks that must be open for these nodes to be boxes of their own."""
    needed: set[str] = set()
    for node in nodes:
        block = tree.home[node]
        if block is not None and tree.blocks[block].host == node:
            block = tree.blocks[block].parent
        while block is not None:
            needed.add(tree.blocks[block].id)
            block = tree.blocks[block].parent
    return frozenset(needed)


def visible(scene: Scene, tree: Tree, opened: AbstractSet[str]) -> View:
    """What is on the screen when the blocks with these ids are open (and their parents too)."""
    inside = tree.children()
    items: list[Item] = []
    home = [0] * len(scene.nodes)
    waiting: list[tuple[int | None, int | None]] = [(None, None)]
    while waiting:
        block, frame = waiting.pop(0)
        blocks, nodes = inside[block]
        for node in nodes:
            home[node] = len(items)
            items.append(Item(node, None, frame))
        for child in blocks:
            value = tree.blocks[child]
            is_open = value.id in opened
            inner = value.nodes if not is_open else ()
            for node in (*inner, *(() if value.host is None else (value.host,))):
                home[node] = len(items)
            items.append(Item(None, child, frame, is_open))
            if is_open:
                waiting.append((child, len(items) - 1))
    return View(tuple(items), _links(scene, items, home), tuple(home))


def _links(scene: Scene, items: list[Item], home: list[int]) -> tuple[Link, ...]:
    """Lines between items: one per tensor between nodes, one per pair where a block is closed."""
    found: dict[tuple[int, int, str], list[int]] = {}
    for number, edge in enumerate(scene.edges):
        source, target = home[edge.source], home[edge.target]
        if source == target:
            continue
        whole = items[source].node is None or items[target].node is None
        tensor = "" if whole else f"{edge.status}:{edge.tensor}"
        found.setdefault((source, target, tensor), []).append(number)
    return tuple(Link(s, t, tuple(members)) for (s, t, _), members in found.items())
