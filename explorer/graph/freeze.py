"""Freeze weights that are listed as graph inputs: they become constants, and the model's interface shrinks.

From IR version 4 on, an initializer that is also a graph input is a default that a caller may replace. A
runtime must then treat it as unknown: ONNX Runtime folds nothing into such weights and keeps Convs that read
them out of its blocked layout. (Before IR 4 every weight had to be listed; opening a model takes care of those.)
"""

from __future__ import annotations

from collections.abc import Sequence

from explorer.graph.graph import Graph

OVERRIDABLE_NOTICE = (
    "Some weights are also graph inputs (callers may override them), so they are not treated "
    "as constants and the runtime cannot fold them."
)
_SHOWN = 3


def freeze_weights(graph: Graph) -> Graph:
    """The graph with every overridable weight fixed at its default; the others are untouched.

    Inputs that have no default stay inputs. The names of the inputs that disappear are those of
    ``graph.overridable``.
    """
    gone = [str(value.name) for value in graph.overridable]
    frozen = graph.clone()
    inputs = frozen.model.graph.inputs
    kept = [value for value in inputs if not value.is_initializer()]
    inputs.clear()
    inputs.extend(kept)
    notices = [notice for notice in graph.notices if notice != OVERRIDABLE_NOTICE]
    if gone:
        weights = "1 weight is a constant" if len(gone) == 1 else f"{len(gone)} weights are constants"
        notices.append(f"{weights} now: callers can no longer override {names_text(gone)}.")
    return Graph(
        frozen.model,
        name=graph.name,
        source=graph.source,
        notices=tuple(notices),
        next_id=frozen.next_id,
        passes_checker=graph.passes_checker,
    )


def names_text(names: Sequence[str]) -> str:
    """The first of many names, quoted, and how many more there are."""
    shown = ", ".join(f"'{name}'" for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown
