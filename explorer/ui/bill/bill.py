"""``Bill``: what a group keeps on chip against the buffer; lines can be pointed at and clicked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from explorer.session.fusion_values import Choice
from explorer.ui.bill.wire import Names, bill_wire

_FOLDER = Path(__file__).parent
Clicked = Callable[[tuple[str, ...], str], None]


class Bill(anywidget.AnyWidget):
    """The bar, the lines of the bill, and the blame of operations and edges.

    Attributes:
        bill: what is shown (see ``wire.bill_wire``); empty for nothing.
    """

    _esm = _FOLDER / "bill.js"
    _css = _FOLDER / "bill.css"

    bill = traitlets.Dict().tag(sync=True)

    def __init__(self) -> None:
        super().__init__()
        self._clicked: list[Clicked] = []
        self.on_msg(self._on_message)

    def __repr__(self) -> str:
        return f"Bill({self.bill.get('demand', 'nothing')!r})"

    def show(self, choice: Choice | None, names: Names) -> None:
        """Show the bill of a choice; nothing if there is none or it is no group."""
        self.bill = bill_wire(choice, names)

    def on_click(self, callback: Clicked) -> None:
        """Call with the nodes of a line that is clicked, and what it says."""
        self._clicked.append(callback)

    def _on_message(self, _widget: object, content: Mapping[str, Any], _buffers: object) -> None:
        nodes = tuple(str(node) for node in content.get("nodes", ()))
        for callback in tuple(self._clicked):
            callback(nodes, str(content.get("label", "")))
