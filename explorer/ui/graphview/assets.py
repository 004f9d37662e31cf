"""The JavaScript and style of the view, joined when the package is imported; no build step.

The parts under ``js/`` are ordinary ES modules that also load one by one in a browser. A widget has
to be one module, so their imports of each other and the word ``export`` are dropped here.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

# Whole-line comments and indentation are left out: the module is saved with every notebook.
_COMMENT = re.compile(r"\s*(//.*|/\*\*.*\*/)?")
_FOLDER = Path(__file__).parent
#: In order of use: a part may only use what stands before it at load time.
PARTS = (
    "units", "theme", "data", "camera", "texts", "looks", "lines", "boxes", "hulls", "labels",
    "painter", "minimap", "recorder", "export", "controls", "search", "tooltip", "pointer",
    "keyboard", "state", "framing", "actions", "arrival", "view",
)  # fmt: skip


@cache
def module_text() -> str:
    """One ES module whose default export makes the ``{ render }`` of one widget."""
    return "\n".join(_part(name) for name in PARTS)


def _part(name: str) -> str:
    text = (_FOLDER / "js" / f"{name}.js").read_text(encoding="utf-8")
    text = re.sub(r"^import\s[^;]*?from\s+\"\./[\w.]+\";\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^export (?!default)", "", text, flags=re.MULTILINE)
    return "\n".join(line.lstrip() for line in text.splitlines() if not _COMMENT.fullmatch(line))


@cache
def style_text() -> str:
    """The style sheet; every rule is below ``.explorer-graph``."""
    return (_FOLDER / "graphview.css").read_text(encoding="utf-8")
