"""Which tensors are drawn as lines, and which as labelled stubs at both ends."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from explorer.ui.graphview.acyclic import forward_edges
from explorer.ui.graphview.layering import ranks_of
from explorer.ui.graphview.scene import Scene
from explorer.ui.graphview.visible import View

#: A tensor with more consumers on the screen than this is drawn as stubs.
MAX_FAN_OUT = 8
#: So is one with this many consumers if its lines together would run over so many rows,
FAN_OUT, FAN_ROWS = 4, 24
#: and a line that would run over more rows than this.
MAX_ROWS = 60
#: And the longest lines, once all of them together would pass this many rows.
MAX_BENDS = 25_000


@dataclass(frozen=True, slots=True)
class Nets:
    """Lines of a view, sorted into drawn ones and stubs.

    Attributes:
        net: For each link, the number of the tensor (or bundle of tensors) it belongs to.
        stubs: Numbers of the links that are drawn as stubs.
    """

    net: tuple[int, ...]
    stubs: frozenset[int]


def net_numbers(scene: Scene, view: View) -> tuple[int, ...]:
    """For each link, the number of the tensor (or bundle of tensors) it belongs to."""
    numbers: dict[tuple[int, str], int] = {}
    net: list[int] = []
    for link in view.links:
        whole = view.items[link.source].node is None or view.items[link.target].node is None
        tensor = "" if whole else scene.edges[link.members[0]].tensor
        net.append(numbers.setdefault((link.source, tensor), len(numbers)))
    return tuple(net)


def nets_of(view: View, net: tuple[int, ...]) -> Nets:
    """Choose the links that are drawn as stubs."""
    spans = _spans(view)
    return Nets(net, _wide(view, net, spans) | _far(spans))


def _wide(view: View, net: tuple[int, ...], spans: dict[int, int]) -> frozenset[int]:
    consumers: defaultdict[int, set[int]] = defaultdict(set)
    rows: Counter[int] = Counter()
    for number, (link, own) in enumerate(zip(view.links, net, strict=True)):
        consumers[own].add(link.target)
        rows[own] += spans.get(number, 0)
    wide = {
        own
        for own, targets in consumers.items()
        if len(targets) > MAX_FAN_OUT or (len(targets) >= FAN_OUT and rows[own] > FAN_ROWS)
    }
    nearest: dict[int, list[int]] = {}
    for number, own in enumerate(net):
        if own in wide:
            nearest.setdefault(own, []).append(number)
    stubs: set[int] = set()
    for numbers in nearest.values():
        numbers.sort(key=lambda number: (spans.get(number, 0), number))
        stubs.update(numbers[1:])  # one line to the nearest consumer keeps the picture in order
    return frozenset(stubs)


def _far(spans: dict[int, int]) -> frozenset[int]:
    far = {number for number, span in spans.items() if span > MAX_ROWS}
    kept = sorted((span, number) for number, span in spans.items() if span <= MAX_ROWS)
    total = sum(span for span, _ in kept)
    while total > MAX_BENDS:
        span, number = kept.pop()
        total -= span
        far.add(number)
    return frozenset(far)


def _spans(view: View) -> dict[int, int]:
    """Rows each link runs over, counted among the items of the frame in which it runs."""
    by_frame: defaultdict[int | None, list[tuple[int, int, int]]] = defaultdict(list)
    for number, link in enumerate(view.links):
        frame, a, b = meeting(view, link.source, link.target)
        if a != b:
            by_frame[frame].append((a, b, number))
    spans: dict[int, int] = {}
    for inside in by_frame.values():
        position = {v: i for i, v in enumerate(sorted({v for a, b, _ in inside for v in (a, b)}))}
        pairs = [(position[a], position[b]) for a, b, _ in inside]
        ranks = ranks_of(len(position), forward_edges(len(position), pairs))
        for (a, b), (_, _, number) in zip(pairs, inside, strict=True):
            spans[number] = abs(ranks[b] - ranks[a])
    return spans


def meeting(view: View, source: int, target: int) -> tuple[int | None, int, int]:
    """Innermost frame around both items, and its children that hold (or are) them.

    If one of the items is itself a frame around the other, it is the answer, and the child on its
    side is the frame itself.
    """
    up, down = chain(view, source), chain(view, target)
    common = {item: i for i, item in enumerate(up)}
    for i, item in enumerate(down):
        if item in common:
            a = up[common[item] - 1] if common[item] else item
            return item, a, down[i - 1] if i else item
    return None, up[-1], down[-1]


def chain(view: View, item: int) -> list[int]:
    """The item, the frame around it, and so on outwards."""
    found = [item]
    while (parent := view.items[found[-1]].parent) is not None:
        found.append(parent)
    return found
