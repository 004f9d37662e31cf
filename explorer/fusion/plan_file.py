"""Plans as JSON: what is written, and what is read from a file that anybody may have changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from explorer.errors import InputError
from explorer.fusion.dims import Size, recorded_dims
from explorer.fusion.network import KB, FusionNetwork, bits
from explorer.fusion.plan import Plan
from explorer.fusion.scheme import Scheme
from explorer.records import Record, read_json

_VERSION = 1
_WHAT = "fusion plan"


@dataclass(frozen=True)
class PlanFile:
    """A plan as it stands in a file: not yet checked against a network.

    Attributes:
        model: name of the model it was made for.
        network: digest of the fusion network it was made for.
        scheme: such as "lbdf".
        capacity_bytes: the buffer.
        element_bytes: bytes per element.
        dims: sizes that were given to unknown dimensions.
        groups: ids of graph nodes, group by group.
    """

    model: str
    network: str
    scheme: str
    capacity_bytes: int
    element_bytes: int
    dims: tuple[tuple[str, Size], ...]
    groups: tuple[tuple[str, ...], ...]

    @classmethod
    def read(cls, path: str | Path) -> PlanFile:
        """A plan from a JSON file; raises InputError in one sentence if it is not one."""
        return cls.of(read_json(path, _WHAT))

    @classmethod
    def of(cls, document: object) -> PlanFile:
        """A plan from parsed JSON; raises InputError for what is missing or of the wrong type."""
        record = Record(document, _WHAT)
        version = record.integer("version")
        if version != _VERSION:
            raise InputError(f"The plan has format {version}; this version reads plans of format {_VERSION}.")
        groups = []
        for group in record.items("groups"):
            if not isinstance(group, list) or not all(isinstance(name, str) for name in group):
                raise InputError("The plan's 'groups' must be a list of lists of node ids; export it again.")
            groups.append(tuple(group))
        return cls(
            model=record.text("model"),
            network=record.text("network"),
            scheme=record.text("scheme"),
            capacity_bytes=record.integer("capacity_bytes", minimum=1),
            element_bytes=record.integer("element_bytes", minimum=1),
            dims=recorded_dims(record, "dims") if "dims" in record else (),
            groups=tuple(groups),
        )

    @property
    def buffer_kb(self) -> float:
        """The buffer, in KB of 1024 bytes."""
        return self.capacity_bytes / KB

    def check(self, network: FusionNetwork) -> None:
        """Raise InputError unless the plan was made for this very network."""
        if self.network == network.digest:
            return
        if self.model != network.name:
            raise InputError(
                f"The plan was made for '{self.model}', not for '{network.name}'; open that model."
            )
        raise InputError(
            f"The plan was made for another state of '{network.name}': rewritten, or with other sizes of "
            "dimensions or elements; open that one, or search for a plan of this one."
        )

    def plan(self, scheme: Scheme) -> Plan:
        """The plan under a scheme of its network; every group is checked again.

        Raises:
            InputError: a group is not connected, not convex, or does not fit.
        """
        return Plan.of(scheme, self.groups)


def plan_json(plan: Plan, dims: Mapping[str, Size] | None = None) -> dict[str, object]:
    """A plan as plain values, to be read again by ``PlanFile``."""
    network = plan.scheme.network
    return {
        "version": _VERSION,
        "model": network.name,
        "network": network.digest,
        "element_bytes": network.element_bytes,
        "dims": dict(dims or {}),
        "scheme": plan.scheme.name,
        "capacity_bytes": plan.scheme.capacity_bytes,
        "groups": [list(network.ids(mask)) for mask in plan.masks],
        "removed": [network.nodes[i].id for i in bits(plan.scheme.removed_mask)],
        "dram_bytes": plan.dram_bytes,
    }
