"""Create nodes and constants inside a graph that is being rewritten, under fresh names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from explorer.graph import Graph

MICROSOFT = "com.microsoft"


class Builder:
    """Collects the new nodes of one rewrite and registers its new constants.

    Args:
        draft: the private copy that is being rewritten.
        home: the main graph or body the matched nodes live in; new nodes and constants go there.
    """

    def __init__(self, draft: Graph, home: ir.Graph) -> None:
        self.draft = draft
        self.home = home
        self.opset = draft.opset() or 0
        self.nodes: list[ir.Node] = []
        self._names = _all_names(draft)

    def op(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        attributes: Mapping[str, object] | None = None,
        *,
        like: ir.Value | None = None,
        dtype: ir.DataType | None = None,
        shape: Sequence[int | str | None] | None = None,
        domain: str = "",
    ) -> ir.Value:
        """Add a node with one output and return that.

        Args:
            op_type: operator name; inputs, attributes: as ONNX defines them.
            inputs: operands; None for an omitted one.
            attributes: plain Python values or arrays (which become tensors).
            like: a value whose type and shape the output has.
            dtype: element type, where ``like`` does not say it.
            shape: dims, where ``like`` does not say them; left to shape inference if neither does.
            domain: "com.microsoft" for contrib operators; its import is added.
        """
        (output,) = self.ops(op_type, inputs, attributes, outputs=1, domain=domain)
        if like is not None:
            output.type, output.shape = like.type, like.shape.copy() if like.shape is not None else None
        if dtype is not None:
            output.type = ir.TensorType(dtype)
        if shape is not None:
            output.shape = ir.Shape(shape)
        return output

    def ops(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        attributes: Mapping[str, object] | None = None,
        *,
        outputs: int,
        domain: str = "",
    ) -> tuple[ir.Value, ...]:
        """Add a node with several outputs, whose shapes are left to inference."""
        if domain and domain not in self.draft.model.opset_imports:
            self.draft.model.opset_imports[domain] = 1
        given = [(k, v) for k, v in (attributes or {}).items() if v is not None]
        node = ir.node(
            op_type,
            inputs=list(inputs),
            attributes={k: _attribute_value(v) for k, v in given},
            domain=domain,
            num_outputs=outputs,
            name=self.fresh(op_type.lower()),
        )
        for output in node.outputs:
            output.name = self.fresh(f"{op_type.lower()}_out")
        self.nodes.append(node)
        return tuple(node.outputs)

    def constant(self, array: np.ndarray, hint: str = "const") -> ir.Value:
        """Register a new initializer under a fresh name; existing tensors are never edited (G2)."""
        name = self.fresh(hint)
        tensor = ir.tensor(np.ascontiguousarray(array) if array.ndim else array, name=name)
        value = ir.Value(
            name=name, shape=ir.Shape(array.shape), type=ir.TensorType(tensor.dtype), const_value=tensor
        )
        self.home.register_initializer(value)
        return value

    def ints(self, values: Sequence[int], hint: str = "ints") -> ir.Value:
        """Register a 1-D int64 constant (axes, sizes, a shape)."""
        return self.constant(np.array(values, dtype=np.int64), hint)

    def fresh(self, hint: str) -> str:
        """A name that no value or node of the model has."""
        stem, number = hint or "value", 0
        name = stem
        while name in self._names:
            number += 1
            name = f"{stem}_{number}"
        self._names.add(name)
        return name


def attributes_of(node: ir.Node, *without: str, **changed: object) -> dict[str, object]:
    """A node's attributes as plain values, to build a similar node: some left out, some changed."""
    kept = {k: a.value for k, a in node.attributes.items() if k not in without}
    return {**kept, **changed}


def _attribute_value(value: Any) -> Any:  # noqa: ANN401 (whatever ONNX allows as an attribute)
    if isinstance(value, np.ndarray):
        return ir.tensor(value)
    return list(value) if isinstance(value, tuple) else value


def _all_names(draft: Graph) -> set[str]:
    names = {value.name or "" for value in draft.initializers()}
    for graph in draft.model.graphs():
        names.update(value.name or "" for value in graph.inputs)
    for node in draft.nodes:
        names.add(node.name or "")
        names.update(output.name or "" for output in node.outputs)
    return names
