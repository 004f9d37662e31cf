"""From a graph to its fusion network: merge what moves no data, fold, classify, count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from explorer.errors import InputError
from explorer.fusion.constants import Weights, weights_of
from explorer.fusion.network import FusionNetwork, FusionNode, FusionTensor, Read
from explorer.fusion.operators import streaming_of
from explorer.fusion.reading import RawGraph, RawOp, read
from explorer.fusion.streaming import Case, Streaming, View, default_axis, reshaped_axis
from explorer.fusion.window import CONVOLUTIONS, POOLS, Window, window_of
from explorer.graph import Graph
from explorer.graph.dims import Dims

ELEMENT_BYTES = (1, 2, 4)
_DATA_LESS = {"Identity", "Dropout", "Flatten", "Reshape", "Squeeze", "Unsqueeze"}
_MATRIX = CONVOLUTIONS | {"Gemm", "MatMul", "FusedMatMul", "MatMulInteger", "QLinearMatMul"}
_ALL_POOLS = POOLS | {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}


def fusion_network(graph: Graph, *, element_bytes: int = 2, dims: Dims | None = None) -> FusionNetwork:
    """Build the fusion network of a graph.

    Args:
        graph: any graph; it is not changed.
        element_bytes: bytes per element of every tensor, 1, 2 or 4.
        dims: sizes for unknown dimensions, such as ``{"N": 1}`` (see ``explorer.graph.dims``).

    Raises:
        InputError: an option is wrong, or a dimension is unknown (the message names tensor and dim).
    """
    if element_bytes not in ELEMENT_BYTES:
        raise InputError(f"An element of {element_bytes} bytes is not supported; choose 1, 2 or 4.")
    return _Builder(read(graph, dims), element_bytes).network()


@dataclass
class _Draft:
    """A node under construction."""

    op: RawOp
    streaming: Streaming
    reads: tuple[Read, ...]
    writes: tuple[int, ...]
    weights: Weights
    window: Window | None
    covers: list[str] = field(default_factory=list)


@dataclass
class _Tensor:
    """A tensor under construction; ``key`` is the value whose name it carries."""

    key: int
    view: View
    producer: int | None
    is_output: bool = False


class _Builder:
    def __init__(self, raw: RawGraph, element_bytes: int) -> None:
        self.raw = raw
        self.element_bytes = element_bytes
        self.drafts: list[_Draft] = []
        self.tensors: list[_Tensor] = []
        self.tensor_of: dict[int, int] = {}
        self.views: dict[int, View] = {}
        self.waiting: dict[int, list[str]] = {}
        self.placed: set[str] = set()
        self.readers = _readers(raw)
        self.samples = _samples(raw)

    def network(self) -> FusionNetwork:
        for op in self.raw.ops:
            self._add(op)
        for key in self.raw.outputs:
            if self.raw.is_data(key):
                self.tensors[self._tensor(key)].is_output = True
        consumers: list[dict[int, None]] = [{} for _ in self.tensors]
        for index, draft in enumerate(self.drafts):
            for item in draft.reads:
                consumers[item.tensor][index] = None
        placed = {identifier for draft in self.drafts for identifier in draft.covers}
        return FusionNetwork(
            name=self.raw.name,
            nodes=tuple(self._node(i, draft) for i, draft in enumerate(self.drafts)),
            tensors=tuple(self._finished(t, tuple(consumers[i])) for i, t in enumerate(self.tensors)),
            element_bytes=self.element_bytes,
            unplaced=tuple(i for op in self.raw.ops for i in op.ids if i not in placed),
        )

    def _add(self, op: RawOp) -> None:
        data = [key for key in (*op.operands, *op.captured) if key is not None and self.raw.is_data(key)]
        if op.is_constant:
            ids = [i for key in op.operands if key is not None for i in self.waiting.get(key, ())]
            ids += op.ids
            self.waiting.update((key, ids) for key in op.results)
        elif self._is_data_less(op, data):
            self._merge(op, data[0])
        elif not self._fold(op, data):
            self._append(op, data)

    def _is_data_less(self, op: RawOp, data: list[int]) -> bool:
        is_one = op.domain == "" and op.op_type in _DATA_LESS and data == [op.operands[0]]
        return is_one and not any(self.readers.get(key) or key in self.raw.outputs for key in op.results[1:])

    def _merge(self, op: RawOp, source: int) -> None:
        """The result is the operand's tensor, seen with other dims."""
        tensor = self._tensor(source)
        view, result = self.views[source], op.results[0]
        self.tensor_of[result] = tensor
        same = self.raw.dims(result) == view.dims
        self.views[result] = view if same else reshaped_axis(view, self.raw.dims(result))
        producer = self.tensors[tensor].producer
        if producer is None:
            self.waiting[result] = [*self.waiting.get(source, ()), *op.ids]
        else:
            self.drafts[producer].covers += [*self._constant_ids(op), *op.ids]

    def _fold(self, op: RawOp, data: list[int]) -> bool:
        """Fold a BatchNormalization into the convolution that only it reads."""
        if op.op_type != "BatchNormalization" or op.domain or data != [op.operands[0]]:
            return False
        source = data[0]
        producer = self.tensors[self._tensor(source)].producer
        if producer is None or op.integer("training_mode", 0):
            return False
        draft = self.drafts[producer]
        is_alone = self.readers[source] == 1 and source not in self.raw.outputs
        if draft.op.op_type not in CONVOLUTIONS or draft.op.results[0] != source or not is_alone:
            return False
        draft.covers += [*self._constant_ids(op), *op.ids]
        draft.weights = draft.weights.folded(self.raw.dims(source)[1], op.ids[0])
        tensor = self.tensor_of[source]
        self.tensors[tensor].key = op.results[0]
        self.tensor_of[op.results[0]], self.views[op.results[0]] = tensor, self.views[source]
        return True

    def _append(self, op: RawOp, data: list[int]) -> None:
        keys = list(dict.fromkeys(data))
        results = [key for key in op.results if self.readers.get(key) or key in self.raw.outputs] or list(
            op.results[:1]
        )
        sources = [self._tensor(key) for key in keys]
        case = self._case(op, keys, results)
        streaming = streaming_of(case)
        index = len(self.drafts)
        constants = self._constant_ids(op)
        reads = {t: Read(t, mode) for t, mode in zip(sources, streaming.modes, strict=True)}
        rows = None if streaming.axes[0] is None else case.result[streaming.axes[0]]
        draft = _Draft(
            op=op,
            streaming=streaming,
            reads=tuple(reads.values()),
            writes=tuple(range(len(self.tensors), len(self.tensors) + len(results))),
            weights=weights_of(op, self.raw, streaming.axes[0], rows),
            window=case.window,
            covers=[*op.ids, *constants],
        )
        self.drafts.append(draft)
        for key, axis in zip(results, streaming.axes, strict=False):
            self.tensor_of[key] = len(self.tensors)
            self.views[key] = View(self.raw.dims(key), axis)
            self.tensors.append(_Tensor(key, self.views[key], index))

    def _case(self, op: RawOp, keys: list[int], results: list[int]) -> Case:
        constant = tuple(
            None if key is None or self.raw.is_data(key) else self.raw.values[key].static_dims
            for key in op.operands
        )
        views = tuple(self.views[key] for key in keys)
        weight = None
        if len(op.operands) > 1 and op.operands[1] is not None:
            weight = self.raw.values[op.operands[1]].static_dims
        return Case(
            op=op,
            positions=tuple(op.operands.index(key) if key in op.operands else -1 for key in keys),
            views=views,
            results=tuple(self.raw.dims(key) for key in results),
            window=window_of(op, views[0].dims, weight) if views else None,
            constant_dims=constant,
            values=lambda position: _values(self.raw, op, position),
        )

    def _tensor(self, key: int) -> int:
        """The tensor of a value; an input of the network gets one when it is first read."""
        if key not in self.tensor_of:
            dims = self.raw.dims(key)
            axis = 2 if len(dims) == 3 and self._feeds_window(key) else default_axis(dims)
            self.tensor_of[key] = len(self.tensors)
            self.views[key] = View(dims, axis)
            self.tensors.append(_Tensor(key, self.views[key], None))
        return self.tensor_of[key]

    def _feeds_window(self, key: int) -> bool:
        return any(op.op_type in CONVOLUTIONS | _ALL_POOLS and key in op.operands[:1] for op in self.raw.ops)

    def _constant_ids(self, op: RawOp) -> list[str]:
        """Nodes that only prepare this node's operands and belong to no other operation yet."""
        found = []
        for key in (*op.operands, *op.captured):
            for identifier in self.waiting.pop(key, ()) if key is not None else ():
                if identifier not in self.placed:
                    self.placed.add(identifier)
                    found.append(identifier)
        return found

    def _node(self, index: int, draft: _Draft) -> FusionNode:
        op, streaming = draft.op, draft.streaming
        return FusionNode(
            index=index,
            id=op.ids[0],
            covers=tuple(dict.fromkeys(draft.covers)),
            op_type=f"{op.domain}::{op.op_type}" if op.domain else op.op_type,
            op_class=streaming.op_class,
            reads=draft.reads,
            writes=draft.writes,
            weight_elements=draft.weights.resident,
            streamed_elements=draft.weights.streamed,
            constants=draft.weights.constants,
            window=draft.window,
            kernel_rows=streaming.kernel_rows,
            stride_rows=streaming.stride_rows,
            pad_rows=streaming.pad_rows,
            is_matrix=op.op_type in _MATRIX and draft.weights.resident > 0,
            is_pool=op.op_type in _ALL_POOLS,
            channel_groups=1 if draft.window is None else op.integer("group", 1),
        )

    def _finished(self, tensor: _Tensor, consumers: tuple[int, ...]) -> FusionTensor:
        dims, axis = tensor.view.dims, tensor.view.axis
        has_samples = axis is not None and axis > 0 and len(dims) > 2 and dims[0] == self.samples
        apart = (axis, 0) if has_samples else (axis,)
        return FusionTensor(
            name=self.raw.values[tensor.key].name,
            dims=dims,
            elements=prod(dims),
            rows=tensor.view.rows,
            row_elements=prod(d for a, d in enumerate(dims) if a not in apart),
            producer=tensor.producer,
            consumers=consumers,
            is_output=tensor.is_output,
        )


def _samples(raw: RawGraph) -> int | None:
    """The batch size, one sample of which is on chip at a time: the first dim of the first input."""
    shapes = (raw.values[key].static_dims for key in raw.inputs)
    return next((dims[0] for dims in shapes if dims and len(dims) > 1), None)


def _readers(raw: RawGraph) -> Mapping[int, int]:
    """How many operands read each value."""
    found: dict[int, int] = {}
    for op in raw.ops:
        for key in (*op.operands, *op.captured):
            if key is not None:
                found[key] = found.get(key, 0) + 1
    return found


def _values(raw: RawGraph, op: RawOp, position: int) -> tuple[int, ...] | None:
    key = op.operands[position] if position < len(op.operands) else None
    return None if key is None else raw.values[key].values
