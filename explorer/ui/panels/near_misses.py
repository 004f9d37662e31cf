"""Where rules almost apply, and which condition fails there: "why not here?"."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets as widgets

from explorer.rewrite import all_rules
from explorer.session import Snapshot
from explorer.ui.panels.parts import column, muted
from explorer.ui.table import NearMissTable


class NearMissPanel:
    """The near misses.

    Args:
        select: called with the nodes and the rule of the selected near miss, and with no nodes for none.
    """

    def __init__(self, select: Callable[[tuple[str, ...], str], None]) -> None:
        self._select = select
        self._titles = {rule.name: rule.title for rule in all_rules()}
        self.table = NearMissTable()
        self.table.observe(self._on_select, "selected")
        self.box = column(
            widgets.HTML(
                muted("Places that look like a rule's pattern, and the condition that fails there.")
            ),
            self.table,
        )

    def render(self, snapshot: Snapshot) -> None:
        """Show the near misses of the current graph."""
        self.table.show(snapshot.rejections, self._titles, ready=snapshot.is_ready)

    def focus(self, nodes: tuple[str, ...]) -> None:
        """Note which nodes are selected in the graph: the table can be filtered by them."""
        self.table.focus = list(nodes)

    def _on_select(self, change: dict[str, str]) -> None:
        row = next((row for row in self.table.rows if row["id"] == change["new"]), None)
        if row is None:
            self._select((), "")
        else:
            self._select(tuple(row["nodes"]), row["rule"])
