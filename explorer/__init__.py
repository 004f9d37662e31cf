"""Interactive explorer for deep-learning computation graphs.

``explorer.open("resnet18")`` shows the app in a notebook; ``explorer.Session("resnet18")`` does
everything the app can do without a screen. Importing this package loads neither onnxruntime nor torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Graph", "Session", "__version__", "load", "open"]

_HOMES = {
    "Graph": ("explorer.graph", "Graph"),
    "load": ("explorer.graph", "load"),
    "Session": ("explorer.session", "Session"),
    "open": ("explorer.ui", "open_app"),
}

if TYPE_CHECKING:
    from explorer.graph import Graph, load
    from explorer.session import Session
    from explorer.ui import open_app as open  # noqa: A004 (the verb a notebook user expects)


def __getattr__(name: str) -> Any:  # noqa: ANN401 (a lazy module attribute can be anything)
    """Load a public name on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'explorer' has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)
