"""Operators timed alone: each node's own model, known by operator, attributes and shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from explorer.errors import InputError, RuntimeFailure, WorkerError
from explorer.records import Record
from explorer.runtime.executor import CancelToken
from explorer.runtime.measurement import Latency
from explorer.runtime.measurer import Measurer
from explorer.runtime.progress import OnProgress, Progress, ignore_progress
from explorer.runtime.protocol import Mode, Protocol
from explorer.runtime.region import cut_out
from explorer.runtime.target import Target

if TYPE_CHECKING:
    import onnx_ir as ir

    from explorer.graph import Graph

ALONE = Protocol(
    mode=Mode.SCREENING,
    rounds=3,
    samples=5,
    sample_ns=1_000_000,
    warmup_ns=5_000_000,
    trim=0,
    budget_ns=3_000_000_000,
)
"""How an operator is timed: short, because a model has dozens of different ones."""

_FORMAT = 1
_CONTENT_UP_TO = 1024
_EMPTY = """<ir_version: 8, opset_import: ["" : 17]> empty (float[1] x) => (float[1] y) { y = Relu(x) }"""


@dataclass(frozen=True)
class OperatorTime:
    """Time of one operator alone, less that of an empty run.

    Attributes:
        op_type: the operator.
        ns: median over rounds; 0 if it costs no more than an empty run.
        low_ns: lower end of the interval.
        high_ns: upper end of the interval.
        failure: why it could not be timed alone; "" if it could.
    """

    op_type: str
    ns: float
    low_ns: float
    high_ns: float
    failure: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, data: object) -> OperatorTime:
        """Read what ``to_json`` wrote; raises InputError naming the key at fault."""
        record = Record(data, "operator time")
        numbers = {key: record.number(key) for key in ("ns", "low_ns", "high_ns")}
        return cls(record.text("op_type"), failure=record.text("failure"), **numbers)


class OperatorTimes:
    """Times operators on one target, each kind once; results are kept in the measurer's cache.

    Args:
        measurer: where to time.
        target: runtime and options.
        protocol: how.
    """

    def __init__(self, measurer: Measurer, target: Target, protocol: Protocol = ALONE) -> None:
        self._measurer, self._target, self._protocol = measurer, target, protocol
        self._known: dict[str, OperatorTime] = {}
        self._empty: OperatorTime | None = None

    def of(
        self,
        graph: Graph,
        progress: OnProgress = ignore_progress,
        cancel: CancelToken | None = None,
        *,
        only: Iterable[str] | None = None,
    ) -> dict[str, OperatorTime]:
        """Times of the operators of a graph with static shapes, by key; see ``operator_keys``.

        Args:
            graph: the graph.
            progress: called before each operator that has to be timed.
            cancel: stops when set.
            only: keys to care for; all by default.

        Raises:
            Cancelled: ``cancel`` was set.
        """
        keys = operator_keys(graph)
        wanted = set(keys.values() if only is None else only)
        examples = {key: node for node, key in keys.items() if key in wanted}
        missing = [key for key in examples if self._recall(key, cancel) is None]
        for number, key in enumerate(missing):
            node = graph.node(examples[key])
            progress(Progress(number, len(missing), f"timing {node.op_type} alone"))
            self._known[key] = self._time(graph, examples[key], cancel)
            self._measurer.cache.put(self._cache_key(key, cancel), self._known[key].to_json())
        return {key: self._known[key] for key in examples}

    def _recall(self, key: str, cancel: CancelToken | None) -> OperatorTime | None:
        if key not in self._known:
            value = self._measurer.cache.get(self._cache_key(key, cancel))
            try:
                self._known[key] = OperatorTime.from_json(value)
            except InputError:
                return None
        return self._known[key]

    def _time(self, graph: Graph, identifier: str, cancel: CancelToken | None) -> OperatorTime:
        op_type = graph.node(identifier).op_type
        try:
            found = self._latency(cut_out(graph, [identifier], f"{op_type} alone"), cancel)
        except (RuntimeFailure, WorkerError, InputError) as error:
            return OperatorTime(op_type, 0.0, 0.0, 0.0, str(error))
        empty = self._empty_run(cancel)
        return OperatorTime(
            op_type,
            max(0.0, found.ns - empty.ns),
            max(0.0, found.low_ns - empty.high_ns),
            max(0.0, found.high_ns - empty.low_ns),
        )

    def _empty_run(self, cancel: CancelToken | None) -> OperatorTime:
        """What a run costs that computes next to nothing: the framework's part, no operator's."""
        if self._empty is None:
            from explorer.graph import load

            found = self._latency(load(_empty_model(), name="an empty run"), cancel)
            self._empty = OperatorTime("", found.ns, found.low_ns, found.high_ns)
        return self._empty

    def _latency(self, part: Graph, cancel: CancelToken | None) -> Latency:
        from explorer.graph import make_feeds

        return self._measurer.latency(part, make_feeds(part), self._target, self._protocol, cancel=cancel)

    def _cache_key(self, key: str, cancel: CancelToken | None) -> dict[str, Any]:
        return {
            "kind": "operator",
            "format": _FORMAT,
            "operator": key,
            "target": str(self._target),
            "protocol": self._protocol.to_json(),
            "environment": self._measurer.environment(self._target, cancel).to_json(),
        }


def operator_keys(graph: Graph) -> dict[str, str]:
    """Node id -> what its time depends on: operator, opset, attributes, types, shapes, constants.

    Only nodes of the main graph that the runtime executes: no Constant nodes, no nodes in bodies, whose
    time is part of the node that holds them.
    """
    from explorer.graph import is_constant_node, node_id

    return {node_id(n): _key(n, graph) for n in graph.model.graph if not is_constant_node(n)}


def _key(node: ir.Node, graph: Graph) -> str:
    from explorer.graph import bodies_of, node_id

    if any(bodies_of(attribute) for attribute in node.attributes.values()):
        try:
            return f"{node.op_type} {cut_out(graph, [node_id(node)], 'part').structure_fingerprint()}"
        except RuntimeFailure:
            return f"{node.op_type} {graph.structure_fingerprint()} {node_id(node)}"
    attributes = sorted((name, _attribute(a)) for name, a in node.attributes.items())
    operands = [_operand(value) for value in node.inputs]
    outputs = [bool(value.name) for value in node.outputs]
    return repr((node.domain, node.op_type, graph.opset(node.domain), attributes, operands, outputs))


def _attribute(attribute: ir.Attr) -> str:
    import onnx_ir as ir

    from explorer.graph.fingerprint import tensor_digest

    if attribute.type == ir.AttributeType.TENSOR and not attribute.is_ref():
        return tensor_digest(attribute.value)
    return repr(attribute.value)


def _operand(value: ir.Value | None) -> object:
    from explorer.graph import constant_tensor

    if value is None:
        return None
    tensor = constant_tensor(value)
    dims = None if value.shape is None else tuple(str(d) for d in value.shape)
    if tensor is None:
        return (str(value.dtype), dims)
    return (str(tensor.dtype), tuple(int(d) for d in tensor.shape.numpy()), _content(tensor))


def _content(tensor: ir.TensorProtocol) -> str:
    """What of a constant's content a time may depend on: small integers, single floats."""
    from explorer.graph.fingerprint import tensor_digest

    if tensor.dtype.is_floating_point():
        return f"{float(np.asarray(tensor.numpy()).reshape(())):.4g}" if tensor.size == 1 else "weights"
    return tensor_digest(tensor) if tensor.size <= _CONTENT_UP_TO else "constant"


def _empty_model() -> Any:  # noqa: ANN401 (a ModelProto, read by explorer.graph.load)
    import onnx.parser

    return onnx.parser.parse_model(_EMPTY)


def count_keys(keys: Mapping[str, str]) -> dict[str, int]:
    """How often each operator occurs."""
    counts: dict[str, int] = {}
    for key in keys.values():
        counts[key] = counts.get(key, 0) + 1
    return counts
