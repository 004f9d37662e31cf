"""What a model file must satisfy before anything else looks at it.

Whatever ONNX Runtime runs passes. What is refused here runs nowhere, or would crash, hang or exhaust the
memory of the code behind; the message says which node or tensor is at fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import onnx
import onnx.defs

from explorer.errors import ModelError
from explorer.graph.names import node_label, quoted
from explorer.graph.stored import check_stored_tensor

MAX_NODES = 200_000
MAX_ITEMS = 4_000_000
MAX_DEPTH = 30
_Attribute = onnx.AttributeProto
_Holder = onnx.GraphProto | onnx.FunctionProto
_TYPES = {"tensor_type", "sequence_type", "optional_type", "sparse_tensor_type", None}
_KINDS = {
    number: getattr(onnx.defs.OpSchema.AttrType, kind)
    for kind, number in _Attribute.AttributeType.items()
    if kind != "UNDEFINED"
}
_SINGLE = onnx.defs.OpSchema.FormalParameterOption.Single


def check_contents(model: onnx.ModelProto, what: str) -> None:
    """Check size, depth, text, types and stored tensors of the graph, its bodies and all functions.

    Args:
        model: the parsed file.
        what: the file, as messages name it.

    Raises:
        ModelError: names the file and the node or tensor at fault.
    """
    _check_text(_model_texts(model), what)
    nodes = items = 0
    for holder in holders(model, what):
        nodes += len(holder.node)
        if nodes > MAX_NODES:
            raise ModelError(f"{quoted(what)} has more than {MAX_NODES:,} nodes, too many to explore.")
        items += sum(len(n.input) + len(n.output) + len(n.attribute) for n in holder.node)
        if items > MAX_ITEMS:
            raise ModelError(f"{quoted(what)} has more than {MAX_ITEMS:,} operands, too many to explore.")
        if isinstance(holder, onnx.GraphProto):
            _check_graph_contents(holder, what)
        for node in holder.node:
            _check_node_contents(node, what)
        for tensor, node in stored_tensors(holder):
            _check_text((tensor.name, tensor.doc_string), what)
            owner = "" if node is None else f" of {_label(node)}"
            check_stored_tensor(tensor, f"{quoted(what)}: tensor {quoted(tensor.name)}{owner}")


def check_structure(model: onnx.ModelProto, what: str) -> None:
    """Check that every tensor has one origin, and that standard operators have the operands they need.

    Args:
        model: the parsed file, without model-local functions.
        what: the file, as messages name it.

    Raises:
        ModelError: names the file and the node or tensor at fault.
    """
    versions = {_domain(item.domain): item.version for item in model.opset_import}
    if any(version < 1 for version in versions.values()):
        raise ModelError(f"{quoted(what)} names an operator set below 1; export the model again.")
    for value in model.graph.input:
        if not _has_type(value.type):
            raise ModelError(
                f"{quoted(what)}: input {quoted(value.name)} has no type; export the model again."
            )
    _Structure(what, versions).check(model.graph, [])


def holders(model: onnx.ModelProto, what: str) -> Iterator[_Holder]:
    """The main graph, all functions and all bodies of control-flow nodes."""
    stack: list[tuple[_Holder, int]] = [(model.graph, 0), *((f, 0) for f in model.functions)]
    while stack:
        holder, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise ModelError(f"{quoted(what)} nests If, Loop or Scan more than {MAX_DEPTH} deep.")
        yield holder
        stack.extend((body, depth + 1) for node in holder.node for body in bodies(node))


def stored_tensors(holder: _Holder) -> Iterator[tuple[onnx.TensorProto, onnx.NodeProto | None]]:
    """Initializers, and tensors in attributes with their node; without those of bodies."""
    if isinstance(holder, onnx.GraphProto):
        yield from ((tensor, None) for tensor in holder.initializer)
    for node in holder.node:
        for attribute in node.attribute:
            if attribute.type == _Attribute.TENSOR:
                yield attribute.t, node
            yield from ((tensor, node) for tensor in attribute.tensors)


def bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The bodies of a control-flow node."""
    for attribute in node.attribute:
        if attribute.type == _Attribute.GRAPH:
            yield attribute.g
        elif attribute.type == _Attribute.GRAPHS:
            yield from attribute.graphs


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def _check_text(texts: Iterable[object], what: str) -> None:
    """Protobuf hands out bytes where a file holds text that is not UTF-8."""
    for text in texts:
        if not isinstance(text, str):
            raise ModelError(f"{quoted(what)} holds a name that is not UTF-8 text: {quoted(text)}.")


def _model_texts(model: onnx.ModelProto) -> Iterator[object]:
    yield from (model.producer_name, model.producer_version, model.domain, model.doc_string)
    yield from (text for entry in model.metadata_props for text in (entry.key, entry.value))
    imports = [*model.opset_import, *(item for f in model.functions for item in f.opset_import)]
    yield from (item.domain for item in imports)
    yield from (text for f in model.functions for text in (f.name, f.domain, f.overload, *f.input, *f.output))


def _check_graph_contents(graph: onnx.GraphProto, what: str) -> None:
    if graph.sparse_initializer:
        raise ModelError(f"{quoted(what)} holds sparse weights, which are not supported; save them as dense.")
    _check_text((graph.name, graph.doc_string), what)
    for value in (*graph.input, *graph.output, *graph.value_info):
        _check_text((value.name, value.doc_string), what)
        if not _is_supported(value.type):
            raise ModelError(
                f"{quoted(what)}: {quoted(value.name)} is a map or opaque value, which is not supported; "
                "export the model with tensors (for scikit-learn: zipmap=False)."
            )


def _has_type(type_: onnx.TypeProto) -> bool:
    kind = type_.WhichOneof("value")
    if kind in {"sequence_type", "optional_type"}:
        return _has_type(getattr(type_, kind).elem_type)
    return kind is not None and getattr(type_, kind).elem_type != onnx.TensorProto.UNDEFINED


def _is_supported(type_: onnx.TypeProto) -> bool:
    kind = type_.WhichOneof("value")
    if kind in {"sequence_type", "optional_type"}:
        return _is_supported(getattr(type_, kind).elem_type)
    return kind in _TYPES


def _check_node_contents(node: onnx.NodeProto, what: str) -> None:
    _check_text((node.name, node.op_type, node.domain, node.doc_string, *node.input, *node.output), what)
    for attribute in node.attribute:
        _check_text((attribute.name,), what)
        place = f"attribute {quoted(attribute.name)} of {_label(node)}"
        if attribute.type in {_Attribute.SPARSE_TENSOR, _Attribute.SPARSE_TENSORS}:
            raise ModelError(f"{quoted(what)}: {place} is sparse, which is not supported; save it as dense.")
        if attribute.type == _Attribute.UNDEFINED and not attribute.ref_attr_name:
            raise ModelError(f"{quoted(what)}: {place} has no type; export the model again.")


@lru_cache(maxsize=4096)
def _schema(op_type: str, version: int, domain: str) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return None


class _Structure:
    """A walk through nested scopes: what a body does not define, it takes from around it."""

    def __init__(self, what: str, versions: dict[str, int]) -> None:
        self.what = quoted(what)
        self.versions = versions

    def check(self, graph: onnx.GraphProto, outer: list[set[str]]) -> None:
        scopes = [*outer, self._defined(graph)]
        for node in graph.node:
            for name in node.input:
                if name and not any(name in scope for scope in scopes):
                    self._fail(f"{_label(node)} reads {quoted(name)}, which nothing computes")
            self._check_operands(node)
            for body in bodies(node):
                self.check(body, scopes)
        for output in graph.output:
            if output.name not in scopes[-1]:
                place = f"body {quoted(graph.name)}" if outer else "the graph"
                hint = " (a value from outside needs an Identity node)" if outer else ""
                self._fail(f"{place} returns {quoted(output.name)}, which none of its nodes computes{hint}")

    def _defined(self, graph: onnx.GraphProto) -> set[str]:
        names: set[str] = set()
        for value in graph.input:
            if value.name in names:
                self._fail(f"two inputs are called {quoted(value.name)}")
            names.add(value.name)
        names.update(tensor.name for tensor in graph.initializer)
        for node in graph.node:
            for name in filter(None, node.output):
                if name in names:
                    self._fail(f"{_label(node)} computes {quoted(name)}, which exists already")
                names.add(name)
        return names

    def _check_operands(self, node: onnx.NodeProto) -> None:
        domain = _domain(node.domain)
        version = self.versions.get(domain)
        if version is None:
            if domain == "":
                self._fail("no version of the standard operator set is named")
            return
        schema = _schema(node.op_type, version, domain)
        if schema is None:
            return
        for kind, found, low, high in (
            ("inputs", len(node.input), schema.min_input, schema.max_input),
            ("outputs", len(node.output), schema.min_output, schema.max_output),
        ):
            if not low <= found <= high:
                self._fail(f"{_label(node)} has {found} {kind}, its operator takes {_range(low, high)}")
        for name, formal in zip(node.input, schema.inputs, strict=False):
            if not name and formal.option == _SINGLE:
                self._fail(f"{_label(node)} lacks its input {quoted(formal.name)}")
        self._check_attributes(node, schema)

    def _check_attributes(self, node: onnx.NodeProto, schema: onnx.defs.OpSchema) -> None:
        given = {attribute.name: attribute.type for attribute in node.attribute}
        for name, formal in schema.attributes.items():
            if name in given and _KINDS.get(given[name]) != formal.type:
                self._fail(f"attribute {quoted(name)} of {_label(node)} has the wrong type")
            if name not in given and formal.required:
                self._fail(f"{_label(node)} lacks its attribute {quoted(name)}")

    def _fail(self, problem: str) -> None:
        raise ModelError(f"{self.what} is not a valid model: {problem}; export it again.")


def _label(node: onnx.NodeProto) -> str:
    return node_label(node.name, node.op_type, node.domain)


def _range(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"{low} or more" if high > 1000 else f"{low} to {high}"
