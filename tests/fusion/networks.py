"""Fusion networks for tests: from ONNX text with weights given by shape, from samples, and random ones."""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np

from explorer.fusion import (
    FusionGroup,
    FusionNetwork,
    FusionNode,
    FusionTensor,
    Lbdf,
    Mode,
    OpClass,
    Read,
    fusion_network,
)
from explorer.graph import Graph, load
from explorer.graph.dims import Dims
from tests.models import model

BIG = 1 << 40


def graph_of(text: str, *, opset: int = 17, **weights: tuple[int, ...]) -> Graph:
    """``(inputs) => (outputs) { nodes }``; each keyword is a float weight of that shape."""
    arrays = {name: np.ones(shape, np.float32) for name, shape in weights.items()}
    return load(model(text, opset=opset, **arrays), name="tested")


def network_of(
    text: str,
    *,
    element_bytes: int = 2,
    opset: int = 17,
    dims: Dims | None = None,
    **weights: tuple[int, ...],
) -> FusionNetwork:
    """The fusion network of such a graph."""
    graph = graph_of(text, opset=opset, **weights)
    return fusion_network(graph, element_bytes=element_bytes, dims=dims)


@cache
def sample(name: str) -> FusionNetwork:
    """The fusion network of a sample model, 2 bytes per element."""
    return fusion_network(load(name))


def everything(network: FusionNetwork) -> FusionGroup:
    """All operations of a network as one group."""
    return FusionGroup.of(network, network.all_nodes)


def bill(network: FusionNetwork, *nodes: str) -> dict[tuple[str, str], int]:
    """The lines of the LBDF bill of a group, by kind and by tensor (weights: by node)."""
    group = FusionGroup.of(network, nodes) if nodes else everything(network)
    report = Lbdf(network, BIG).demand(group)
    found: dict[tuple[str, str], int] = {}
    for term in report.terms:
        key = (term.kind.value, term.tensor or term.node)
        found[key] = found.get(key, 0) + term.bytes
    assert sum(found.values()) == report.demand_bytes
    return found


def random_network(seed: int, size: int, *, whole: bool = True) -> FusionNetwork:
    """A random directed acyclic network: windows, activations, joins, strides, full reads, two inputs."""
    rng = Random(seed)
    tensors = [_Draft(rng, None), _Draft(rng, None)]
    nodes = []
    for index in range(size):
        arity = 2 if rng.random() < 0.35 else 1
        recent = range(max(0, len(tensors) - 4), len(tensors))
        read = sorted({rng.choice(recent) for _ in range(arity)})
        modes = [Mode.WHOLE if whole and rng.random() < 0.08 else Mode.STREAM for _ in read]
        kernel = rng.choice([1, 1, 3, 5]) if len(read) == 1 else 1
        is_plain = kernel == 1 and rng.random() < 0.5
        weights = 0 if is_plain or len(read) > 1 else rng.randrange(1, 400)
        source = tensors[read[0]]
        for t in read:
            tensors[t].consumers.append(index)
        tensors.append(_Draft(rng, index, source if is_plain else None))
        nodes.append(
            FusionNode(
                index=index,
                id=f"n{index}",
                covers=(f"n{index}",),
                op_type="Conv" if weights else "Relu",
                op_class=OpClass.WINDOWED if kernel > 1 else OpClass.ELEMENTWISE,
                reads=tuple(Read(t, mode) for t, mode in zip(read, modes, strict=True)),
                writes=(len(tensors) - 1,),
                weight_elements=weights,
                streamed_elements=0,
                constants=((f"w{index}", weights),) if weights else (),
                window=None,
                kernel_rows=kernel,
                stride_rows=2.0 if kernel > 1 and rng.random() < 0.2 else 1.0,
                pad_rows=0,
                is_matrix=bool(weights),
                is_pool=False,
                channel_groups=1,
            )
        )
    finished = tuple(t.finished(f"t{i}", rng) for i, t in enumerate(tensors))
    return FusionNetwork(f"random{seed}", tuple(nodes), finished, 2)


class _Draft:
    def __init__(self, rng: Random, producer: int | None, like: _Draft | None = None) -> None:
        self.rows = like.rows if like else rng.choice([4, 8])
        self.row_elements = like.row_elements if like else rng.choice([4, 8, 16, 32])
        self.producer = producer
        self.consumers: list[int] = []

    def finished(self, name: str, rng: Random) -> FusionTensor:
        is_output = self.producer is not None and (not self.consumers or rng.random() < 0.1)
        return FusionTensor(
            name=name,
            dims=(1, self.row_elements, self.rows, 1),
            elements=self.rows * self.row_elements,
            rows=self.rows,
            row_elements=self.row_elements,
            producer=self.producer,
            consumers=tuple(dict.fromkeys(self.consumers)),
            is_output=is_output,
        )
