"""``GraphView``: the graph on a canvas, in any Jupyter front end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from explorer.ui.graphview.assets import module_text, style_text
from explorer.ui.graphview.blocks import Tree, build_tree
from explorer.ui.graphview.colouring import Colouring, by_operator
from explorer.ui.graphview.diff import changes, compare
from explorer.ui.graphview.layout import Drawing, draw
from explorer.ui.graphview.overlays import EdgeClasses, EdgeValues, Group, groups_wire
from explorer.ui.graphview.scene import Scene
from explorer.ui.graphview.visible import View, around, first_open, visible
from explorer.ui.graphview.wire import picture_wire, scene_wire

SelectCallback = Callable[[tuple[str, ...]], None]
ActivateCallback = Callable[[str], None]


class GraphView(anywidget.AnyWidget):
    """A graph to look at: zoom, pan, search, collapse, select, compare, export.

    Python writes every trait but ``selection``, which the canvas writes when people click (and
    ``select`` when Python does). All names are drawn as text.

    Args:
        scene: What to show; may be replaced with ``show``.
        colourings: What can be chosen in "Colour by", besides operator families.
        height: Height in pixels.

    Attributes:
        names: Texts and structure of the scene (see ``wire.scene_wire``).
        picture: Positions of what is visible (see ``wire.picture_wire``).
        colourings: Colourings on offer. ``colour_by`` is the key of the one in use.
        highlighted: Nodes of a site, with label; the rest of the graph is dimmed.
        groups: Hulls. ``edge_values``: widths and colours of edges.
        comparison: Titles and mode where two graphs are compared, else empty.
        selection: Ids of the selected nodes.
        height: Height in pixels.
    """

    _esm = module_text()
    _css = style_text()

    names = traitlets.Dict().tag(sync=True)
    picture = traitlets.Dict().tag(sync=True)
    colourings = traitlets.List(traitlets.Dict()).tag(sync=True)
    colour_by = traitlets.Unicode("op").tag(sync=True)
    highlighted = traitlets.Dict().tag(sync=True)
    groups = traitlets.List(traitlets.Dict()).tag(sync=True)
    edge_values = traitlets.Dict().tag(sync=True)
    comparison = traitlets.Dict().tag(sync=True)
    selection = traitlets.List(traitlets.Unicode()).tag(sync=True)
    height = traitlets.Int(560, min=160).tag(sync=True)

    def __init__(
        self, scene: Scene | None = None, *, colourings: Sequence[Colouring] = (), height: int = 560
    ) -> None:
        self._scene = scene or Scene()
        self._tree = build_tree(self._scene)
        self._open: frozenset[str] = frozenset()
        self._offered: tuple[Colouring, ...] = tuple(colourings)
        self._callbacks: list[SelectCallback] = []
        self._activated: list[ActivateCallback] = []
        self._serial = 0
        super().__init__(height=height)
        self.on_msg(self._on_message)
        self.observe(self._on_selection, names="selection")
        self.show(self._scene)

    def __repr__(self) -> str:
        shown = len(self._scene.nodes)
        return f"GraphView({self._scene.title!r}, {shown} nodes, {len(self._open)} blocks open)"

    @property
    def scene(self) -> Scene:
        """What is shown, all of it."""
        return self._scene

    @property
    def opened(self) -> frozenset[str]:
        """Ids of the open blocks."""
        return self._open

    @property
    def tree(self) -> Tree:
        """The blocks of the scene."""
        return self._tree

    @property
    def drawing(self) -> Drawing:
        """The layout of what is visible."""
        return draw(self._scene, self._view())

    def show(self, scene: Scene, *, keep_open: bool = False) -> None:
        """Show a scene; the selection and everything laid over the old one is dropped.

        Args:
            scene: What to show.
            keep_open: Keep blocks open that are open now, where they still exist, and stay at the
                same place: for another version of the same graph.
        """
        self._show(scene, {}, self._open_before() if keep_open else None, stay=keep_open)

    def compare(
        self,
        before: Scene,
        after: Scene,
        *,
        changed: Collection[str] = (),
        mode: str = "split",
        titles: tuple[str, str] = ("Before", "After"),
    ) -> None:
        """Show two versions of a graph, with what was added, removed and changed marked.

        Args:
            before: The graph as it was.
            after: The graph as it is, or would be.
            changed: Ids of nodes that stay but have other attributes or weights.
            mode: ``"split"`` for two linked pictures side by side, ``"merged"`` for one.
            titles: What stands above them.

        Raises:
            ValueError: The mode is not known.
        """
        if mode not in {"split", "merged"}:
            raise ValueError(f"mode {mode!r} is neither 'split' nor 'merged'")
        merged = compare(before, after, changed)
        comparison = {"mode": mode, "before": titles[0], "after": titles[1]}
        self._show(merged, comparison, self._open_before(), reveal=changes(merged))

    def _open_before(self) -> frozenset[str] | None:
        """What is open now; None if there was nothing to open, so that it says nothing."""
        return self._open if self._tree.blocks else None

    def _show(
        self,
        scene: Scene,
        comparison: Mapping[str, str],
        opened: frozenset[str] | None,
        *,
        reveal: Iterable[str] = (),
        stay: bool = False,
    ) -> None:
        self._scene, self._tree = scene, build_tree(scene)
        known = {block.id for block in self._tree.blocks}
        if opened is None or (opened and not opened & known):
            opened = first_open(scene, self._tree)
        self._open = (opened & known) | around(self._tree, self._indices(reveal))
        with self.hold_sync():
            self.names = {**scene_wire(scene), "stay": stay}
            self.comparison = dict(comparison)
            self.highlighted, self.groups, self.edge_values = {}, [], {}
            self.selection = []
            self._send_colourings()
            self._send_picture()

    def _view(self) -> View:
        return visible(self._scene, self._tree, self._open)

    def _send_picture(self) -> None:
        self.picture = picture_wire(self._scene, self._tree, self.drawing)

    def _send_colourings(self) -> None:
        offered = (by_operator(self._scene), *self._offered)
        self.colourings = [colouring.wire(self._scene) for colouring in offered]
        if self.colour_by not in {colouring.key for colouring in offered}:
            self.colour_by = "op"

    def _indices(self, ids: Iterable[str]) -> list[int]:
        return [self._scene.index[i] for i in ids if i in self._scene.index]

    @property
    def offered(self) -> tuple[Colouring, ...]:
        """What "Colour by" offers besides operator families."""
        return self._offered

    def offer(self, *colourings: Colouring) -> None:
        """Replace what "Colour by" offers besides operator families."""
        self._offered = colourings
        with self.hold_sync():
            self._send_colourings()

    def colour(self, key: str) -> None:
        """Colour by one of the offered colourings.

        Raises:
            ValueError: No such colouring is offered.
        """
        known = ["op", *(colouring.key for colouring in self._offered)]
        if key not in known:
            raise ValueError(f"no colouring {key!r}; offered are {', '.join(known)}")
        self.colour_by = key

    def highlight(self, nodes: Iterable[str], label: str = "", *, dim: bool = True) -> None:
        """Outline a site, dim the rest, open the blocks around it and bring it into view.

        Args:
            nodes: Ids; unknown ones are left out.
            label: What stands on the outline, such as the name of a rule.
            dim: Whether to draw everything else faintly.
        """
        ids = [i for i in nodes if i in self._scene.index]
        self._serial += 1
        with self.hold_sync():
            self._open_to(self._open | around(self._tree, self._indices(ids)))
            self.highlighted = {"nodes": ids, "label": label, "dim": dim, "serial": self._serial}

    def clear_highlight(self) -> None:
        """Draw the whole graph plainly again."""
        self.highlighted = {}

    def set_groups(self, groups: Sequence[Group]) -> None:
        """Draw these groups as coloured hulls; an empty sequence removes them."""
        self.groups = groups_wire(groups)

    def set_edge_values(self, values: EdgeValues | EdgeClasses | None) -> None:
        """Draw edges by these values, or in these classes; None removes them."""
        self.edge_values = values.wire(self._scene) if values is not None else {}

    def select(self, nodes: Iterable[str]) -> None:
        """Select nodes, open the blocks around them and bring them into view."""
        ids = [i for i in nodes if i in self._scene.index]
        self._serial += 1
        with self.hold_sync():
            self._open_to(self._open | around(self._tree, self._indices(ids)))
            self.selection = ids
        self.send({"command": "show", "nodes": ids})

    def on_select(self, callback: SelectCallback, *, remove: bool = False) -> None:
        """Call with the ids of the selected nodes whenever they change; ``remove`` undoes it."""
        self._callbacks.remove(callback) if remove else self._callbacks.append(callback)

    def on_activate(self, callback: ActivateCallback, *, remove: bool = False) -> None:
        """Call with the id of a node that is double-clicked; ``remove`` undoes it."""
        self._activated.remove(callback) if remove else self._activated.append(callback)

    def expand(self, block: str) -> None:
        """Open a block (and the bodies of a node); unknown ids are ignored."""
        ids = {b.id for b in self._tree.blocks}
        inner = {b.id for b in self._tree.blocks if b.id.startswith(f"{block}/body:")}
        self._open_to((self._open | {block} | inner) & ids)

    def collapse(self, block: str) -> None:
        """Close a block, and what is open inside it."""
        self._open_to(frozenset(i for i in self._open if i != block and not i.startswith(f"{block}/")))

    def toggle(self, block: str) -> None:
        """Open a closed block, close an open one."""
        self.collapse(block) if block in self._open else self.expand(block)

    def expand_all(self) -> None:
        """Open every block."""
        self._open_to(frozenset(block.id for block in self._tree.blocks))

    def collapse_all(self) -> None:
        """Close every block."""
        self._open_to(frozenset())

    def reveal(self, node: str) -> None:
        """Open the blocks around a node."""
        self._open_to(self._open | around(self._tree, self._indices([node])))

    def _open_to(self, opened: frozenset[str]) -> None:
        if opened != self._open:
            self._open = opened
            self._send_picture()

    def to_svg(self, *, dark: bool = False) -> str:
        """The whole picture as a self-contained SVG document, names escaped."""
        from explorer.ui.graphview.svg import svg_of

        return svg_of(self._scene, self._tree, self.drawing, dark=dark)

    def to_html(self, path: str | Path | None = None) -> str:
        """The view as a self-contained page that works without a kernel and without a network.

        Args:
            path: Where to write it as well, if anywhere.
        """
        from explorer.ui.graphview.page import page_of

        text = page_of(self)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def _on_selection(self, change: Mapping[str, Any]) -> None:
        ids = tuple(str(i) for i in change["new"])
        for callback in tuple(self._callbacks):
            callback(ids)

    def _on_message(self, _: object, content: Mapping[str, Any], __: object) -> None:
        """What people do on the canvas that only Python can answer."""
        command, argument = content.get("command"), str(content.get("argument", ""))
        if command == "toggle":
            self.toggle(argument)
        elif command == "reveal":
            self.reveal(argument)
        elif command == "expand_all":
            self.expand_all()
        elif command == "collapse_all":
            self.collapse_all()
        elif command == "colour":
            self.colour(argument)
        elif command == "activate":
            for callback in tuple(self._activated):
                callback(argument)
