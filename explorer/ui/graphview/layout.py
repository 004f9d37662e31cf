"""From a scene and its open blocks to a drawing: boxes, frames, lines and stubs with positions.

Deterministic, and cached by structure: names and shapes do not matter, so that a comparison or a new
colouring of the same graph never moves a box.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from explorer.ui.graphview.arrange import Arrangement, Point, Step, Vertex, arrange
from explorer.ui.graphview.layering import Engine
from explorer.ui.graphview.nets import Nets, chain, meeting, net_numbers, nets_of
from explorer.ui.graphview.routing import Anchors, smooth
from explorer.ui.graphview.scene import Kind, Scene
from explorer.ui.graphview.visible import Item, View

#: Sizes in pixels at 1:1: an operator, an input or output, a closed block.
BOX, PILL, BLOCK = (172.0, 46.0), (150.0, 34.0), (212.0, 58.0)
#: Title bar of a frame, and the free space inside its border (sides, bottom).
TITLE, PADDING, FOOT = 30.0, 18.0, 12.0
#: Height of the label of one stub; more than ``MAX_STUBS`` on one side share the last label.
STUB, MAX_STUBS = 19.0, 3


@dataclass(frozen=True, slots=True)
class Box:
    """An item with its place: upper left corner, size, and depth of nesting."""

    item: Item
    x: float
    y: float
    width: float
    height: float
    depth: int


@dataclass(frozen=True, slots=True)
class Line:
    """A link with its control points; consecutive points are joined by vertical tangents."""

    link: int
    source: int
    target: int
    members: tuple[int, ...]
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Stub:
    """Label that stands for a tensor at a box: above it (``incoming``) or below it."""

    box: int
    incoming: bool
    x: float
    y: float
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """Everything with its position, in pixels at 1:1; boxes are in the order of ``View.items``."""

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    stubs: tuple[Stub, ...]
    home: tuple[int, ...]
    width: float
    height: float


_Path = list[tuple[int | None, Step]]
#: Frame around, step in it, port on the border, and whether the line comes out there.
_Passage = tuple[int | None, Step, Vertex, bool]


@lru_cache(maxsize=64)
def _cached(view: View, kinds: tuple[Kind, ...], net: tuple[int, ...], engine: Engine | None) -> Drawing:
    return _Builder(view, kinds, nets_of(view, net), engine).drawing()


def draw(scene: Scene, view: View, engine: Engine | None = None) -> Drawing:
    """Lay out what is visible of a scene."""
    kinds = tuple(node.kind for node in scene.nodes)
    return _cached(view, kinds, net_numbers(scene, view), engine)


class _Builder:
    def __init__(self, view: View, kinds: tuple[Kind, ...], nets: Nets, engine: Engine | None) -> None:
        self.view, self.kinds, self.nets, self.engine = view, kinds, nets, engine
        self.stubs_of = self._stubs()
        self.paths: dict[int, _Path] = {}
        self.steps: defaultdict[int | None, set[Step]] = defaultdict(set)
        self.through: defaultdict[int, set[_Passage]] = defaultdict(set)
        self.touches: defaultdict[int | None, dict[Step, Point]] = defaultdict(dict)
        for number, link in enumerate(view.links):
            if number not in nets.stubs:
                path = self._path(link.source, link.target, nets.net[number])
                self.paths[number] = path
                self._note_path(path)
        self.content: dict[int | None, Arrangement] = {}
        self.boxes: list[Box] = []

    def drawing(self) -> Drawing:
        """Innermost frames first, then positions from the outside in."""
        frames = [i for i, item in enumerate(self.view.items) if item.frame]
        children: defaultdict[int | None, list[int]] = defaultdict(list)
        for i, item in enumerate(self.view.items):
            children[item.parent].append(i)
        for frame in (*reversed(frames), None):
            self.content[frame] = self._arrange(frame, children[frame])
            if frame is not None:
                self._note_touches(frame)
        self._position()
        whole = self.content[None]
        return Drawing(
            tuple(self.boxes),
            tuple(self._lines()),
            tuple(self._stub_labels()),
            self.view.home,
            whole.width,
            whole.height,
        )

    def _stubs(self) -> dict[tuple[int, bool], dict[int, list[int]]]:
        """Links that are stubs, by box and side, bundled by tensor."""
        found: defaultdict[tuple[int, bool], dict[int, list[int]]] = defaultdict(dict)
        for number in sorted(self.nets.stubs):
            link, net = self.view.links[number], self.nets.net[number]
            found[link.source, False].setdefault(net, []).append(number)
            found[link.target, True].setdefault(net, []).append(number)
        return found

    def _path(self, source: int, target: int, net: int) -> _Path:
        """The frames a line runs through, from source to target, with its step in each."""
        frame, a, b = meeting(self.view, source, target)
        out, into = Vertex("out", net), Vertex("in", net)
        path: _Path = []
        for inner, outer in self._climb(source, frame):
            path.append((outer, (Vertex("item", inner), out)))
        if frame is not None and source == frame:
            path.append((frame, (into, Vertex("item", b))))
        elif frame is not None and target == frame:
            path.append((frame, (Vertex("item", a), out)))
        else:
            path.append((frame, (Vertex("item", a), Vertex("item", b))))
        for inner, outer in reversed(self._climb(target, frame)):
            path.append((outer, (into, Vertex("item", inner))))
        return path

    def _climb(self, item: int, frame: int | None) -> list[tuple[int, int]]:
        """Pairs (item, frame around it) from an item outwards, up to below ``frame``."""
        if item == frame:
            return []
        found = chain(self.view, item)
        stop = found.index(frame) if frame is not None else len(found)
        inside = found[:stop]
        return list(itertools.pairwise(inside))

    def _arrange(self, frame: int | None, children: Iterable[int]) -> Arrangement:
        sizes: dict[Vertex, Point] = {Vertex("item", i): self._slot(i) for i in children}
        for step in self.steps[frame]:
            for vertex in step:
                sizes.setdefault(vertex, (0.0, 0.0))
        return arrange(sizes, self.steps[frame], self.touches[frame], self.engine)

    def _note_path(self, path: _Path) -> None:
        """Remember the steps in each frame, and where the path goes through a frame's border."""
        for frame, step in path:
            self.steps[frame].add(step)
        for (a, before), (b, after) in itertools.pairwise(path):
            if before[1].role == "out" and a is not None:
                self.through[a].add((b, after, before[1], True))
            elif after[0].role == "in" and b is not None:
                self.through[b].add((a, before, after[0], False))

    def _note_touches(self, frame: int) -> None:
        """Tell the frame around this one where lines go through its border."""
        found = self.content[frame]
        middle = found.width / 2
        for outer, step, port, is_source in sorted(self.through[frame], key=repr):
            offset = found.lanes[port] - middle
            start, stop = self.touches[outer].get(step, (0.0, 0.0))
            self.touches[outer][step] = (offset, stop) if is_source else (start, offset)

    def _size(self, index: int) -> Point:
        item = self.view.items[index]
        if item.frame:
            inside = self.content[index]
            return (
                max(inside.width + 2 * PADDING, BLOCK[0]),
                inside.height + TITLE + PADDING + FOOT,
            )
        if item.node is None:
            return BLOCK
        return BOX if self.kinds[item.node] is Kind.OP else PILL

    def _slot(self, index: int) -> Point:
        """Size of a box with the labels of its stubs."""
        width, height = self._size(index)
        return width, height + self._room(index, True) + self._room(index, False)

    def _room(self, index: int, incoming: bool) -> float:
        return STUB * min(len(self.stubs_of.get((index, incoming), ())), MAX_STUBS)

    def _origin(self, frame: int | None) -> Point:
        """Where a frame's content starts."""
        if frame is None:
            return 0.0, 0.0
        box = self.boxes[frame]
        spare = box.width - self.content[frame].width
        return box.x + spare / 2, box.y + TITLE + PADDING / 2

    def _position(self) -> None:
        for index, item in enumerate(self.view.items):
            left, top = self._origin(item.parent)
            x, y = self.content[item.parent].at[Vertex("item", index)]
            depth = 0 if item.parent is None else self.boxes[item.parent].depth + 1
            above = self._room(index, True)
            self.boxes.append(Box(item, left + x, top + y + above, *self._size(index), depth))

    def _lines(self) -> list[Line]:
        inner = {number: self._inner_points(number) for number in self.paths}
        anchors = Anchors([(b.x, b.y, b.width, b.height) for b in self.boxes])
        for number, points in inner.items():
            link, path, net = self.view.links[number], self.paths[number], self.nets.net[number]
            # Between a node and its own body a line starts or ends at the frame, where it already is.
            source = link.source if path[0][1][0].role == "item" else None
            target = link.target if path[-1][1][1].role == "item" else None
            anchors.add(number, net, source, target, points)
        lines: list[Line] = []
        for number, (first, last) in anchors.ends().items():
            link = self.view.links[number]
            path_points = smooth((*first, *inner[number], *last))
            lines.append(Line(number, link.source, link.target, link.members, path_points))
        return lines

    def _inner_points(self, number: int) -> list[Point]:
        """All bends of a line, through every frame, without its two ends."""
        points: list[Point] = []
        for frame, step in self.paths[number]:
            left, top = self._origin(frame)
            inside = self.content[frame]
            points += self._port_points(frame, step[0])
            points += [(left + x, top + y) for x, y in inside.routes[step]]
            points += self._port_points(frame, step[1])[::-1]
        return points

    def _port_points(self, frame: int | None, vertex: Vertex) -> list[Point]:
        """From the border of the frame to the port (nothing for an item)."""
        if vertex.role == "item" or frame is None:
            return []
        left, top = self._origin(frame)
        inside, box = self.content[frame], self.boxes[frame]
        lane = left + inside.lanes[vertex]
        border = box.y if vertex.role == "in" else box.y + box.height
        return [(lane, border), (lane, top + inside.at[vertex][1])]

    def _stub_labels(self) -> list[Stub]:
        labels: list[Stub] = []
        for (index, incoming), by_net in sorted(self.stubs_of.items()):
            box = self.boxes[index]
            bundles = list(by_net.values())
            shown, rest = bundles[: MAX_STUBS - 1], bundles[MAX_STUBS - 1 :]
            groups = [*shown, [n for bundle in rest for n in bundle]] if rest else shown
            for place, numbers in enumerate(groups):
                y = box.y - STUB * (place + 1) if incoming else box.y + box.height + STUB * place
                members = tuple(m for n in numbers for m in self.view.links[n].members)
                labels.append(Stub(index, incoming, box.x, y, members))
        return labels
