"""The whole picture as SVG, written in Python for reports; names are escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from explorer.ui.graphview.blocks import Tree
from explorer.ui.graphview.layout import Box, Drawing, Line, Stub
from explorer.ui.graphview.palette import ADDED, CHANGED, FAMILIES, GREY, REMOVED
from explorer.ui.graphview.scene import Kind, Scene, SceneNode, Status

MARGIN = 28.0
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
_MARKS = {Status.ADDED: (ADDED, "+"), Status.REMOVED: (REMOVED, "−"), Status.CHANGED: (CHANGED, "~")}
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class _Theme:
    background: str
    text: str
    muted: str
    line: str
    frame: str
    edge: str
    tint: float


_LIGHT = _Theme("#ffffff", "#16191d", "#667080", "#9a9fa6", "#f8f9fa", "#dde1e6", 0.09)
_DARK = _Theme("#14171b", "#eceff3", "#9aa5b3", "#6d747d", "#1d2126", "#3a4048", 0.2)


def svg_of(scene: Scene, tree: Tree, drawing: Drawing, *, dark: bool = False) -> str:
    """A self-contained SVG document of a drawing at 1:1."""
    theme = _DARK if dark else _LIGHT
    width, height = drawing.width + 2 * MARGIN, drawing.height + 2 * MARGIN
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="{-MARGIN:g} {-MARGIN:g} {width:.0f} {height:.0f}" font-family="{_FONT}">'
        ),
        f"<title>{_text(scene.title or 'graph')}</title>",
        f'<rect x="{-MARGIN:g}" y="{-MARGIN:g}" width="100%" height="100%" fill="{theme.background}"/>',
        *(_frame(tree, box, theme) for box in drawing.boxes if box.item.frame),
        *(_line(scene, line, theme) for line in drawing.lines),
        *(p for box in drawing.boxes if not box.item.frame for p in _box(scene, tree, box, theme)),
        *(_stub(scene, stub, theme) for stub in drawing.stubs),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _text(text: str, limit: int = 200) -> str:
    """Escaped for XML; characters that XML forbids are replaced."""
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    return escape(_FORBIDDEN.sub("\ufffd", shown))


def _mix(colour: str, ground: str, share: float) -> str:
    pairs = ((int(colour[i : i + 2], 16), int(ground[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(b + (a - b) * share):02x}" for a, b in pairs)


def _frame(tree: Tree, box: Box, theme: _Theme) -> str:
    block = tree.blocks[box.item.block or 0]
    return (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="12" fill="{theme.frame}" stroke="{theme.edge}"/>'
        f'<text x="{box.x + 14:.1f}" y="{box.y + 20:.1f}" font-size="12" font-weight="600" '
        f'fill="{theme.muted}">{_text(block.title, 60)}</text>'
    )


def _line(scene: Scene, line: Line, theme: _Theme) -> str:
    edges = [scene.edges[i] for i in line.members]
    status = edges[0].status if len({edge.status for edge in edges}) == 1 else Status.KEPT
    colour = _MARKS[status][0] if status in _MARKS else theme.line
    dash = ' stroke-dasharray="7 5"' if status is Status.REMOVED else ""
    (x, y), *rest = line.points
    path = [f"M{x:.1f} {y:.1f}"]
    for nx, ny in rest:
        pull = (ny - y) * 0.55
        straight = abs(nx - x) < 0.5
        path.append(
            f"L{nx:.1f} {ny:.1f}"
            if straight
            else f"C{x:.1f} {y + pull:.1f} {nx:.1f} {ny - pull:.1f} {nx:.1f} {ny:.1f}"
        )
        x, y = nx, ny
    up = 1 if y >= line.points[-2][1] else -1
    names = ", ".join(dict.fromkeys(f"{edge.tensor} {edge.shape}".strip() for edge in edges[:4]))
    return (
        f'<g><title>{_text(names)}</title><path d="{"".join(path)}" fill="none" stroke="{colour}" '
        f'stroke-width="1.4"{dash}/><path d="M{x:.1f} {y:.1f}l-4 {-7.5 * up:.1f}h8z" '
        f'fill="{colour}"/></g>'
    )


def _box(scene: Scene, tree: Tree, box: Box, theme: _Theme) -> Iterator[str]:
    if box.item.node is not None:
        node = scene.nodes[box.item.node]
        yield from _node(node, box, theme)
        return
    block = tree.blocks[box.item.block or 0]
    for shift in (6, 3, 0):
        yield (
            f'<rect x="{box.x + shift:.1f}" y="{box.y + shift:.1f}" '
            f'width="{box.width - 2 * shift:.1f}" height="{box.height:.1f}" rx="8" '
            f'fill="{theme.frame}" stroke="{_mix(GREY, theme.background, 0.5)}"/>'
        )
    yield _label(box.x + 14, box.y + 21, block.title, 13, 650, theme.text, 28)
    yield _label(box.x + 14, box.y + 38, f"{len(block.nodes)} nodes", 11, 400, theme.muted, 30)


def _node(node: SceneNode, box: Box, theme: _Theme) -> Iterator[str]:
    colour = FAMILIES.get(node.family, FAMILIES["other"])[1]
    mark = _MARKS.get(node.status)
    border = mark[0] if mark else _mix(colour, theme.background, 0.45)
    dash = ' stroke-dasharray="8 5"' if node.status is Status.REMOVED else ""
    pill = node.kind is not Kind.OP
    yield (
        f"<g data-id={quoteattr(_FORBIDDEN.sub('?', node.id))}>"
        f"<title>{_text(f'{node.label} {node.id} {node.name}')}</title>"
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="{box.height / 2 if pill else 8:.0f}" fill="{_mix(colour, theme.background, theme.tint)}" '
        f'stroke="{border}" stroke-width="{2.6 if mark else 1.1}"{dash}/></g>'
    )
    if pill:
        middle = box.x + box.width / 2
        yield _label(middle, box.y + 15, node.label, 12, 600, theme.text, 18, "middle")
        yield _label(middle, box.y + 27, node.detail, 10.5, 400, theme.muted, 24, "middle")
        return
    yield (
        f'<path d="M{box.x + 5.5:.1f} {box.y:.1f}v{box.height:.1f}a8 8 0 0 1 -5.5 -8'
        f'v{16 - box.height:.1f}a8 8 0 0 1 5.5 -8z" fill="{colour}"/>'
    )
    yield _label(box.x + 15, box.y + 21, node.label, 13, 650, theme.text, 20, hint=node.hint)
    yield _label(box.x + 15, box.y + 38, node.detail, 11, 400, theme.muted, 26)
    if mark:
        x, y = box.x + box.width - 2, box.y + 1
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="10" fill="{mark[0]}"/>'
        yield _label(x, y + 5.5, mark[1], 16, 700, "#ffffff", 2, "middle")


def _label(
    x: float, y: float, text: str, size: float, weight: int, colour: str, limit: int,
    anchor: str = "start", hint: str = "",
) -> str:  # fmt: skip
    room = limit - len(text)
    more = (
        f'<tspan font-size="11" font-weight="400"> {_text(hint, room)}</tspan>' if hint and room > 2 else ""
    )
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" font-weight="{weight}" '
        f'text-anchor="{anchor}" fill="{colour}">{_text(text, limit)}{more}</text>'
    )


def _stub(scene: Scene, stub: Stub, theme: _Theme) -> str:
    tensors = list(dict.fromkeys(scene.edges[i].tensor for i in stub.members))
    name = tensors[0].rsplit("/", 1)[-1] or "tensor"
    text = f"↳ {name}" if stub.incoming else f"{name} → {len(stub.members)}"
    shown = text if len(tensors) == 1 else f"{len(tensors)} more tensors"
    return _label(stub.x + 14, stub.y + 13, shown, 10.5, 500, theme.muted, 22)
