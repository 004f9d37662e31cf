"""LBDF when every operation waits until its consumer wants the row: the strict recursion, as a reference.

From a consumer's lag to its operand's, in rows: stride * lag - (K-1)//2 + K - stride. Whatever lies
between the row made last and the oldest row some consumer still needs is kept, once per tensor.
"""

from __future__ import annotations

from explorer.fusion import Lbdf, Mode
from explorer.fusion.network import bits
from explorer.fusion.scheme import GroupCost, Growing, Scheme


class LazyLbdf(Lbdf):
    """The same scheme with consumer-driven timing."""

    def growing(self) -> Growing:
        return _Recomputed(self)

    def follows(self, node: int) -> int | None:
        return None

    def demand_bytes(self, mask: int, without: tuple[int, int] | None = None) -> int:
        assert without is None
        lag: dict[int, float] = {}
        spans: dict[int, list[tuple[float, float, float]]] = {}
        for i in sorted(bits(mask), reverse=True):
            node = self.network.nodes[i]
            own = max((lag[t] for t in node.writes if t in lag), default=0.0)
            for read in node.reads:
                if read.mode is not Mode.STREAM:
                    continue
                kernel, stride = node.kernel_rows, node.stride_rows
                start = stride * own - (kernel - 1) // 2 + kernel - stride
                lag[read.tensor] = max(lag.get(read.tensor, start), start)
                fresh = stride if kernel > 1 else 0.0
                spans.setdefault(read.tensor, []).append((start, start - max(0, kernel - stride), fresh))
        total = self.weight_bytes(mask)
        for t, found in spans.items():
            producer = self.network.tensors[t].producer
            inside = producer is not None and mask >> producer & 1
            used = found if inside else [span for span in found if span[2]]
            if used:
                rows = max(s[0] for s in used) - min(s[1] for s in used) + max(s[2] for s in used)
                total += int(min(rows, self._tables.rows[t])) * self._tables.row_bytes[t]
        return total


class _Recomputed:
    """A growing group whose cost is computed anew each time; its floor is that of the eager scheme."""

    def __init__(self, scheme: Scheme) -> None:
        self.scheme = scheme
        self.masks = [0]
        self.floors = [0]

    def add(self, mask: int) -> None:
        floor, seen = self.floors[-1], self.masks[-1]
        for i in bits(mask):
            floor += self.scheme.added_bound(i, seen)
            seen |= 1 << i
        self.masks.append(seen)
        self.floors.append(floor)

    def undo(self) -> None:
        self.masks.pop()
        self.floors.pop()

    def cost(self) -> GroupCost:
        return self.scheme.cost(self.masks[-1])

    def floor(self) -> int:
        return self.floors[-1]
