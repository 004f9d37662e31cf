"""A canonical hash of a graph that names, node order and ids do not change.

Each value gets a hash from what computes it (upward pass); each node then also from what reads it
(downward pass), so that a shared node and two equal copies of it are told apart. The graph's hash covers
the sorted node hashes, the inputs and the outputs. Constant nodes and initializers with the same
content count as the same thing.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx_ir as ir

from explorer.graph.graph import bodies_of, constant_tensor, is_constant_node

_DIGEST = "explorer.digest"
_SMALL_ELEMENTS = 1024
_LARGE_BYTES = 1 << 16
_AS_IN_MEMORY = {
    ir.DataType.FLOAT,
    ir.DataType.DOUBLE,
    ir.DataType.FLOAT16,
    ir.DataType.INT64,
    ir.DataType.INT32,
}
_FLOATS = {ir.AttributeType.FLOAT, ir.AttributeType.FLOATS}
_INTS = {ir.AttributeType.INT, ir.AttributeType.INTS}


def tensor_digest(tensor: ir.TensorProtocol) -> str:
    """Hex hash of a tensor's type, shape and content; cached on the tensor, which is immutable."""
    cached = tensor.meta.get(_DIGEST)
    if cached is None:
        cached = tensor.meta[_DIGEST] = _content_digest(tensor)
    return str(cached)


def graph_digest(model: ir.Model, *, weights_by_content: bool = True) -> str:
    """Canonical hash (hex, 32 characters) of a model with topologically sorted nodes.

    Args:
        model: the model.
        weights_by_content: if False, float tensors and large tensors count by type and shape only,
            so that two folds that differ in the last bits give the same hash; single floats count to
            four digits, because they choose a kernel's way.
    """
    if weights_by_content:
        _digest_in_parallel(model)
    return _Hasher(model, weights_by_content=weights_by_content).digest()


def _digest_in_parallel(model: ir.Model) -> None:
    """Making seeded weights and hashing them both release the interpreter lock."""
    tensors = [v.const_value for g in model.graphs() for v in g.initializers.values()]
    large = [t for t in tensors if t is not None and t.nbytes > _LARGE_BYTES and _DIGEST not in t.meta]
    if len(large) > 1:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(tensor_digest, large))


def _content_digest(tensor: ir.TensorProtocol) -> str:
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((tensor.dtype, _plain_shape(tensor.shape))).encode())
    if tensor.dtype == ir.DataType.STRING:
        digest.update(repr(tensor.numpy().tolist()).encode())
    else:
        digest.update(_stored_bytes(tensor))
    return digest.hexdigest()


def _stored_bytes(tensor: ir.TensorProtocol) -> bytes | memoryview:
    """What ``tobytes`` gives, without a copy where the elements lie in memory as ONNX stores them."""
    if tensor.dtype not in _AS_IN_MEMORY or sys.byteorder != "little":
        return tensor.tobytes()
    return np.ascontiguousarray(tensor.numpy()).reshape(-1).view(np.uint8).data


def _hash(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _plain_shape(shape: ir.ShapeProtocol | None) -> tuple[object, ...] | None:
    if shape is None:
        return None
    return tuple(d if isinstance(d, int) else getattr(d, "value", None) for d in shape)


def _rounded_scalar(tensor: ir.TensorProtocol) -> str | None:
    """A single float to four digits: kernels choose their way by it, as Pow does by its exponent."""
    if tensor.size != 1 or not tensor.dtype.is_floating_point():
        return None
    return f"{float(np.asarray(tensor.numpy()).reshape(())):.4g}"


class _Hasher:
    def __init__(self, model: ir.Model, *, weights_by_content: bool) -> None:
        self.model = model
        self.weights_by_content = weights_by_content
        self.values: dict[ir.Value, str] = {}
        self.dimensions: dict[str, int] = {}
        self.depth = 0

    def digest(self) -> str:
        inputs = [self._input(i, value) for i, value in enumerate(self.model.graph.inputs)]
        up = self._visit_graph(self.model.graph)
        used = {node.domain for node in self.model.graph.all_nodes()}
        imports = {"" if d == "ai.onnx" else d: v for d, v in self.model.opset_imports.items()}
        return _hash(inputs, up, sorted((d, v) for d, v in imports.items() if d in used))

    def _visit_body(self, body: ir.Graph) -> str:
        """A body's inputs are known by depth and position; what they hold is decided outside."""
        self.depth += 1
        for position, value in enumerate(body.inputs):
            self.values[value] = _hash("body input", self.depth, position)
        digest = _hash(len(body.inputs), self._visit_graph(body))
        self.depth -= 1
        return digest

    def _visit_graph(self, graph: ir.Graph) -> str:
        unused = []
        for value in graph.initializers.values():
            if value.is_graph_input() or value.const_value is None:
                continue
            self.values[value] = _hash("constant", self._tensor(value.const_value))
            if not value.uses() and not value.is_graph_output():
                unused.append(self.values[value])
        nodes = [n for n in graph if not is_constant_node(n) or self._constant(n)]
        up = [self._visit_node(node) for node in nodes]
        outputs = [self.values.get(value, "?") for value in graph.outputs]
        down = self._downward(nodes, graph.outputs)
        return _hash(outputs, sorted(up), sorted(down), sorted(unused))

    def _constant(self, node: ir.Node) -> bool:
        """Hash a Constant node like an initializer; True if it must count as an ordinary node."""
        tensor = constant_tensor(node.outputs[0])
        if tensor is None:
            return True
        self.values[node.outputs[0]] = _hash("constant", self._tensor(tensor))
        return False

    def _input(self, position: int, value: ir.Value) -> str:
        default = self._tensor(value.const_value) if value.const_value is not None else None
        shape = None if value.shape is None else [self._dimension(d) for d in value.shape]
        self.values[value] = _hash("input", position, value.type, shape, default)
        return self.values[value]

    def _dimension(self, dim: int | ir.SymbolicDim) -> object:
        if isinstance(dim, int):
            return dim
        if dim.value is None:
            return None
        return ("symbol", self.dimensions.setdefault(dim.value, len(self.dimensions)))

    def _visit_node(self, node: ir.Node) -> str:
        attributes = sorted((name, self._attribute(a)) for name, a in node.attributes.items())
        inputs = [None if v is None else self.values.get(v, "?") for v in node.inputs]
        present = [bool(output.name) for output in node.outputs]
        own = _hash(node.domain, node.op_type, node.overload, attributes, inputs, present)
        for index, output in enumerate(node.outputs):
            self.values[output] = _hash(own, index)
        return own

    def _attribute(self, attribute: ir.Attr) -> object:
        bodies = bodies_of(attribute)
        if bodies:
            return [self._visit_body(body) for body in bodies]
        value = attribute.value
        if attribute.is_ref():
            return ("reference", attribute.ref_attr_name)
        if attribute.type in _FLOATS:  # a file keeps 32 bits of a number that Python computed with 64
            return np.asarray(value, dtype=np.float32).tolist()
        if attribute.type in _INTS:
            return np.asarray(value, dtype=np.int64).tolist()
        if attribute.type == ir.AttributeType.TENSOR:
            return self._tensor(value)
        if attribute.type == ir.AttributeType.TENSORS:
            return [self._tensor(t) for t in value]
        return repr(value)

    def _tensor(self, tensor: ir.TensorProtocol) -> str:
        by_content = self.weights_by_content or (
            tensor.size <= _SMALL_ELEMENTS and not tensor.dtype.is_floating_point()
        )
        if by_content:
            return tensor_digest(tensor)
        return _hash(tensor.dtype, _plain_shape(tensor.shape), _rounded_scalar(tensor))

    def _downward(self, nodes: list[ir.Node], outputs: Iterable[ir.Value]) -> list[str]:
        """Hash each node together with everything that (transitively) reads it."""
        readers: dict[ir.Value, list[object]] = defaultdict(list)
        for position, value in enumerate(outputs):
            readers[value].append(("output", position))
        hashes = []
        for node in reversed(nodes):
            seen = [sorted(map(repr, readers[output])) for output in node.outputs]
            own = _hash(*(self.values[o] for o in node.outputs), seen)
            hashes.append(own)
            for position, operand in enumerate(node.inputs):
                if operand is not None:
                    readers[operand].append((own, position))
            for captured in _captured(node):
                readers[captured].append((own, "captured"))
        return hashes


def _captured(node: ir.Node) -> set[ir.Value]:
    """Values from outside that the bodies of a control-flow node read."""
    return {
        value
        for attribute in node.attributes.values()
        for body in bodies_of(attribute)
        for inner in body.all_nodes()
        for value in inner.inputs
        if value is not None and value.graph is node.graph
    }
