"""``Profile``: which node of a model costs what on a target, with intervals and achieved rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from explorer.records import Record
from explorer.runtime.attribution import Share, attribute, group_bytes, group_flops
from explorer.runtime.environment import Environment
from explorer.runtime.estimate import utc_now
from explorer.runtime.executed import Executed
from explorer.runtime.target import Target

if TYPE_CHECKING:
    from explorer.graph import Graph

FORMAT = 1
Rounds = Sequence[Sequence[Executed]]


@dataclass(frozen=True)
class Kernel:
    """One operator that the runtime executed.

    Attributes:
        name: the runtime's name for it.
        op_type: the runtime's operator.
        nodes: ids of the model's nodes whose work it does; () if the runtime inserted it.
        served: ids of nodes that another kernel computes and this one prepares or finishes.
        ns: median over rounds of the time of one run.
        low_ns: fastest round.
        high_ns: slowest round.
        share: part of the model's time, 0 to 1; of bodies, part of the node that holds them.
        flops: floating-point operations of its nodes; None if unknown.
        bytes: what its nodes read and write outside the kernel; None if unknown.
        note: what a reader should know, such as which nodes were fused.
        in_body: whether it runs inside an If, Loop or Scan, whose own time contains it.
    """

    name: str
    op_type: str
    nodes: tuple[str, ...]
    served: tuple[str, ...]
    ns: float
    low_ns: float
    high_ns: float
    share: float
    flops: int | None
    bytes: int | None
    note: str
    in_body: bool = False

    @property
    def gflops_per_s(self) -> float | None:
        """Achieved rate of computation."""
        return self.flops / self.ns if self.flops and self.ns else None

    @property
    def gbytes_per_s(self) -> float | None:
        """Achieved rate of moving data, if each byte is moved once."""
        return self.bytes / self.ns if self.bytes and self.ns else None

    @property
    def flops_per_byte(self) -> float | None:
        """Arithmetic intensity: where the kernel stands in a roofline diagram."""
        return self.flops / self.bytes if self.flops and self.bytes else None

    def to_json(self) -> dict[str, Any]:
        """Plain values, rates included."""
        keys = "name op_type ns low_ns high_ns share flops bytes note in_body".split()
        rates = "gflops_per_s gbytes_per_s flops_per_byte".split()
        lists = {"nodes": list(self.nodes), "served": list(self.served)}
        return {key: getattr(self, key) for key in keys} | lists | {key: getattr(self, key) for key in rates}

    @classmethod
    def from_json(cls, data: object) -> Kernel:
        """Read what ``to_json`` wrote; raises InputError naming the key at fault."""
        record = Record(data, "kernel")
        return cls(
            name=record.text("name"),
            op_type=record.text("op_type"),
            nodes=record.texts("nodes"),
            served=record.texts("served"),
            flops=_count(record, "flops"),
            bytes=_count(record, "bytes"),
            note=record.text("note"),
            in_body=bool(record.optional("in_body")),
            **{key: record.number(key) for key in ("ns", "low_ns", "high_ns", "share")},
        )


@dataclass(frozen=True)
class NodeTime:
    """What a node of the model costs: the time of its kernel and of those that serve it.

    Attributes:
        node: its id.
        ns: time of one run, of the whole group.
        share: part of the model's time, of the whole group.
        group: ids of the nodes that share this time, the node included.
        note: how the time came about.
    """

    node: str
    ns: float
    share: float
    group: tuple[str, ...]
    note: str

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "node": self.node,
            "ns": self.ns,
            "share": self.share,
            "group": list(self.group),
            "note": self.note,
        }


@dataclass(frozen=True)
class Profile:
    """Time per executed operator of one model on one target.

    Attributes:
        model: fingerprint of the graph.
        target: canonical target spec.
        kernels: in the order in which they were executed.
        total_ns: sum over the kernels that are not inside a body.
        protocol: how it was measured, in words.
        environment: where.
        measured_at: UTC time in ISO 8601; not part of equality.
    """

    model: str
    target: str
    kernels: tuple[Kernel, ...]
    total_ns: float
    protocol: str
    environment: Environment
    measured_at: str = field(compare=False)

    def top(self, count: int = 10) -> tuple[Kernel, ...]:
        """The kernels that cost most, dearest first."""
        return tuple(sorted(self.kernels, key=lambda kernel: -kernel.ns)[:count])

    def by_node(self) -> dict[str, NodeTime]:
        """Node id -> what it costs, for colours; a fused node shows the time of its group."""
        extra: dict[str, float] = {}
        for kernel in self.kernels:
            if not kernel.nodes and kernel.served:
                extra[kernel.served[0]] = extra.get(kernel.served[0], 0.0) + kernel.ns
        times = {}
        for kernel in self.kernels:
            ns = kernel.ns + sum(extra.get(node, 0.0) for node in kernel.nodes)
            share = ns / self.total_ns if self.total_ns else 0.0
            for node in kernel.nodes:
                times[node] = NodeTime(node, ns, share, kernel.nodes, kernel.note)
        return times

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "format": FORMAT,
            "model": self.model,
            "target": self.target,
            "source": "MEASURED",
            "total_ns": self.total_ns,
            "kernels": [kernel.to_json() for kernel in self.kernels],
            "nodes": [node.to_json() for node in self.by_node().values()],
            "protocol": self.protocol,
            "environment": self.environment.to_json(),
            "measured_at": self.measured_at,
        }

    @classmethod
    def from_json(cls, data: object) -> Profile:
        """Read what ``to_json`` wrote; raises InputError naming the key at fault."""
        record = Record(data, "profile")
        return cls(
            model=record.text("model"),
            target=record.text("target"),
            kernels=tuple(Kernel.from_json(kernel) for kernel in record.items("kernels")),
            total_ns=record.number("total_ns"),
            protocol=record.text("protocol"),
            environment=Environment.from_json(record.optional("environment")),
            measured_at=record.text("measured_at"),
        )


def profile_from(graph: Graph, rounds: Rounds, target: Target, environment: Environment) -> Profile:
    """The profile that the runtime's own records of several sessions amount to, made now.

    Args:
        graph: the model whose marked copy was run.
        rounds: executed operators of one session each.
        target: where.
        environment: where, in full.
    """
    times = {one.name: _times(one.name, rounds) for one in rounds[0]}
    shares = attribute(graph, rounds[0], {name: median(values) for name, values in times.items()})
    bodies = {one.name: _is_in_body(graph, shares[one.name]) for one in rounds[0]}
    total = sum(median(values) for name, values in times.items() if not bodies[name])
    kernels = tuple(
        _kernel(graph, one, shares[one.name], times[one.name], total, in_body=bodies[one.name])
        for one in rounds[0]
    )
    runs = min(len(one.durations_ns) for one in rounds[0]) if rounds[0] else 0
    text = (
        f"the runtime's own profiler, {len(rounds)} fresh sessions of {runs} runs; mean of the middle half "
        "of the runs, interval from the lowest to the highest session"
    )
    return Profile(graph.fingerprint(), str(target), kernels, total, text, environment, utc_now())


def _times(name: str, rounds: Rounds) -> list[float]:
    """One duration per round in which the operator appears."""
    found = [one for executed in rounds for one in executed if one.name == name]
    return [middle_mean(one.durations_ns) for one in found]


def middle_mean(values: Sequence[int]) -> float:
    """Mean of the middle half: unlike the median it is not bound to the profiler's whole microseconds."""
    ordered = sorted(values)
    cut = len(ordered) // 4
    return fmean(ordered[cut : len(ordered) - cut])


def _is_in_body(graph: Graph, share: Share) -> bool:
    from explorer.graph import holder_of

    return any(holder_of(graph.node(node)) is not None for node in (share.owned or share.served)[:1])


def _kernel(
    graph: Graph, one: Executed, share: Share, times: list[float], total: float, *, in_body: bool
) -> Kernel:
    ns = median(times)
    return Kernel(
        name=one.name,
        op_type=one.op_type,
        nodes=share.owned,
        served=share.served,
        ns=ns,
        low_ns=min(times),
        high_ns=max(times),
        share=ns / total if total else 0.0,
        flops=group_flops(graph, share.owned) if share.owned else None,
        bytes=group_bytes(graph, share.owned) if share.owned else None,
        note=_note(graph, share),
        in_body=in_body,
    )


def _note(graph: Graph, share: Share) -> str:
    if len(share.owned) > 1:
        return "fused: " + " + ".join(f"{graph.node(i).op_type} {i}" for i in share.owned)
    if not share.owned:
        served = ", ".join(share.served)
        return "inserted by the runtime" + (f" for {served}" if served else "")
    return ""


def _count(record: Record, key: str) -> int | None:
    return None if record.optional(key) is None else record.integer(key)
