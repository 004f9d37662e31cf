"""``Chart``: a plotly figure that follows the theme.

plotly's own ``FigureWidget`` takes seconds to import where Jupyter is installed (it loads nbformat and all
behind it), keeps closed figures alive, and does not follow the theme. This widget hands plain traces to the
same plotly.js, which comes with the plotly package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from explorer.errors import ExplorerError

_FOLDER = Path(__file__).parent
Figure = tuple[list[dict[str, Any]], dict[str, Any]]
Clicked = Callable[[Any], None]


class Chart(anywidget.AnyWidget):
    """A chart; make it when it is first shown, because it brings 5 MB of plotly.js.

    Args:
        label: what it shows, for screen readers.
        height: height in pixels.

    Attributes:
        traces: plotly traces. Colours may be names of the page's: ``"var(--ec-blue)"`` (see chart.css).
        layout_: plotly layout; fonts, backgrounds and grids are the page's.
    """

    # anywidget drops all news of a widget whose module takes more than two seconds to load, and a busy page
    # needs longer for plotly.js: the module is small, and fetches plotly.js from the state.
    _esm = _FOLDER / "chart.js"
    _css = _FOLDER / "chart.css"
    _plotly = traitlets.Unicode().tag(sync=True)

    label = traitlets.Unicode().tag(sync=True)
    height = traitlets.Int(240).tag(sync=True)
    traces = traitlets.List(traitlets.Dict()).tag(sync=True)
    layout_ = traitlets.Dict().tag(sync=True)

    @traitlets.default("_plotly")
    def _bundle(self) -> str:
        return plotly_text()

    def __init__(self, label: str, *, height: int = 240) -> None:
        super().__init__(label=label, height=height)
        self._clicked: list[Clicked] = []
        self.on_msg(self._on_message)

    def __repr__(self) -> str:
        return f"Chart({self.label!r}, {len(self.traces)} traces)"

    def show(self, figure: Figure) -> None:
        """Draw traces and layout in place of what is shown."""
        traces, layout = figure
        with self.hold_sync():
            self.traces, self.layout_ = traces, layout

    def on_click(self, callback: Clicked, *, remove: bool = False) -> None:
        """Call with the ``customdata`` of a point that is clicked; ``remove`` undoes it."""
        self._clicked.remove(callback) if remove else self._clicked.append(callback)

    def _on_message(self, _widget: object, content: Mapping[str, Any], _buffers: Sequence[object]) -> None:
        if content.get("kind") == "click":
            for callback in tuple(self._clicked):
                callback(content.get("customdata"))


@cache
def plotly_text() -> str:
    """plotly.js as a module that leaves the page's global names alone.

    Raises:
        ExplorerError: plotly is not installed.
    """
    found = find_spec("plotly")  # importing it is not needed
    if found is None or not found.submodule_search_locations:
        raise ExplorerError("Charts need plotly; install it with: pip install plotly")
    bundle = Path(found.submodule_search_locations[0]) / "package_data" / "plotly.min.js"
    script = bundle.read_text(encoding="utf-8")
    return f"const module = {{ exports: {{}} }};\n{script}\nexport default module.exports;\n"
