"""A lower bound for networks with too many order ideals: OR-Tools CP-SAT over cut edges.

Each node has a level. A fused edge joins equal levels and a cut edge leads strictly upwards, so fused
parts are convex and cannot wait for each other. Each tensor is written if one of its edges is cut, and
read once per level that needs it from outside. That is never more than the true traffic, so the solver's
bound is a bound for all plans. Buffer limits enter as cuts: where a solution fuses a set of nodes that
cannot fit together, one of the edges that hold the set together has to be cut, and it is solved again.
(A capacity per level needs a boolean per node and level; one per edge is far smaller.)
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from explorer.fusion.cuts import inner_edges
from explorer.fusion.network import FusionNetwork, bits
from explorer.fusion.scheme import Scheme
from explorer.fusion.space import Masks, PlanSpace

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

_ROUND_SECONDS = 2.0  # of the first round; doubled whenever it was too short
_BEAT_SECONDS = 0.1  # between two looks at a running solver
_CHAIN_SHARE = 0.3  # of the time, at most, to look for paths that are too large
_ROUNDING = 1e-3  # bytes; the solver reports its bound as a float
_CHAINS_PER_NODE = 20
_STEPS_PER_NODE = 200  # where nearly everything fits, paths are many and long
_MOST_READERS = 12  # beyond that many readers of a tensor, one read is charged for all of them


@dataclass(frozen=True)
class Bound:
    """A proven lower bound, and the groups of the relaxed solution it came with (they may not fit).

    ``is_exact``: the solution fits as it is and costs no more than the bound, so it is the optimum.
    """

    bound_bytes: int
    masks: Masks
    rounds: int
    seconds: float
    is_exact: bool


def bounds(
    scheme: Scheme, start: Masks, *, time_limit_seconds: float, workers: int = 1, seed: int = 0
) -> Iterator[Bound | None]:
    """Better and better bounds until the time is up or the optimum is proven. Stop iterating to cancel.

    While nothing is new, None comes several times a second, so that stopping takes no longer.

    Args:
        scheme: costs and rules.
        start: a plan, given to the solver as a hint.
        time_limit_seconds: for all rounds together.
        workers: threads of the solver; with one, the same seed gives the same search.
        seed: of the solver.
    """
    started = time.perf_counter()
    model = _Model(scheme)
    for _ in model.chains():
        yield None
        if time.perf_counter() - started > _CHAIN_SHARE * time_limit_seconds:
            break
    best, rounds, hint, patience = 0, 0, start, _ROUND_SECONDS
    while (left := time_limit_seconds - (time.perf_counter() - started)) > 0:
        solved = None
        for solved in model.solving(hint, min(left, patience), workers, seed):
            if solved is None:
                yield None
        if solved is None:
            raise AssertionError("the last item is the solution")
        rounds += 1
        masks = solved.masks
        best = max(best, solved.bound_bytes)
        if masks is None:
            yield Bound(best, start, rounds, time.perf_counter() - started, is_exact=False)
            continue
        misfits = [mask for mask in masks if not scheme.cost(mask).fits]
        fits = not misfits and sum(scheme.cost(m).dram_bytes for m in masks) <= best
        yield Bound(best, masks, rounds, time.perf_counter() - started, is_exact=fits)
        if fits or (solved.is_optimal and not misfits):
            return
        if not solved.is_optimal:
            patience *= 2
        for mask in misfits:
            model.forbid(mask)
        hint = masks if misfits else hint


def least_bytes(scheme: Scheme) -> int:
    """What every plan moves: each weight once, the network's inputs, and its outputs, in bytes."""
    network, kept = scheme.network, scheme.network.all_nodes & ~scheme.removed_mask
    elements = 0
    for tensor in network.tensors:
        if tensor.producer is None:
            elements += tensor.elements * any(kept >> c & 1 for c in tensor.consumers)
        elif kept >> tensor.producer & 1:
            elements += tensor.elements * tensor.is_output
    return elements * network.element_bytes + _constant_bytes(network, kept)


def _constant_bytes(network: FusionNetwork, kept: int) -> int:
    """Bytes of weights and tables, each constant once."""
    total = sum(network.nodes[i].weight_elements + network.nodes[i].streamed_elements for i in bits(kept))
    for readers, size in network.shared_constants:
        total -= size * max(0, (readers & kept).bit_count() - 1)
    return total * network.element_bytes


@dataclass(frozen=True)
class _Solved:
    """The groups of the best relaxed solution (None without one), its bound, whether it is optimal."""

    masks: Masks | None
    bound_bytes: int
    is_optimal: bool


class _Model:
    def __init__(self, scheme: Scheme) -> None:
        from ortools.sat.python import cp_model

        self.scheme = scheme
        self.network = scheme.network
        self.space = PlanSpace(scheme)
        self.model = cp_model.CpModel()
        self.kept = self.space.kept
        self.least_bytes = least_bytes(scheme)
        count = len(self.network.nodes)
        self.level = [self.model.new_int_var(0, count, f"level{i}") for i in range(count)]
        self.cut: dict[tuple[int, int], cp_model.IntVar] = {}
        self._edges()
        self._entries()
        self._objective()

    def chains(self) -> Iterator[None]:
        """Exclude the shortest too large paths from each node, so that few rounds are needed."""
        fusable = self.kept & ~self.scheme.rules.solo
        for start in bits(fusable):
            stack = [(start, 1 << start)]
            found = tried = 0
            while stack and found < _CHAINS_PER_NODE and tried < _STEPS_PER_NODE:
                node, mask = stack.pop()
                tried += 1
                yield
                for j in bits(self.network.succs[node] & fusable):
                    longer = mask | 1 << j
                    if self._floor(longer) < self.scheme.capacity_bytes:
                        stack.append((j, longer))
                    elif self._floor(longer & ~(1 << start)) < self.scheme.capacity_bytes:
                        self.model.add_bool_or(self._tree(longer))
                        found += 1

    def _edges(self) -> None:
        fusable = set(self.space.edges)
        for j, preds in enumerate(self.network.preds):
            for i in bits(preds):
                is_cut = self.model.new_bool_var(f"cut{i}_{j}")
                self.cut[i, j] = is_cut
                self.model.add(self.level[j] >= self.level[i] + 1).only_enforce_if(is_cut)
                self.model.add(self.level[j] == self.level[i]).only_enforce_if(is_cut.negated())
                pair = 1 << i | 1 << j
                if self.scheme.follows(j) == i:
                    self.model.add(is_cut == 0)
                elif (i, j) not in fusable or self._floor(pair) >= self.scheme.capacity_bytes:
                    self.model.add(is_cut == 1)

    def _entries(self) -> None:
        """A node that cannot begin a group is cut from what follows if it is cut from what precedes."""
        for i in bits(self.scheme.rules.no_entry & self.kept):
            joined = [self.cut[p, i].negated() for p in bits(self.network.preds[i])]
            for j in bits(self.network.succs[i]):
                self.model.add_bool_or([*joined, self.cut[i, j]])

    def _objective(self) -> None:
        terms = []
        size = self.network.element_bytes
        for tensor in self.network.tensors:
            readers = [c for c in tensor.consumers if self.kept >> c & 1]
            producer = tensor.producer
            if producer is not None and not self.kept >> producer & 1:
                continue
            cuts = {} if producer is None else {c: self.cut[producer, c] for c in readers}
            if producer is not None:
                written = self.model.new_bool_var("")
                if tensor.is_output:
                    self.model.add(written == 1)
                for is_cut in cuts.values():
                    self.model.add_implication(is_cut, written)
                terms.append(tensor.elements * size * written)
            terms += [tensor.elements * size * read for read in self._reads(readers, cuts)]
        self.model.minimize(sum(terms) + _constant_bytes(self.network, self.kept))

    def _reads(self, readers: list[int], cuts: dict[int, cp_model.IntVar]) -> list[cp_model.IntVar]:
        """One boolean per read from DRAM: a reader pays unless an earlier one is on its level."""
        found = []
        for position, reader in enumerate(readers):
            if position and len(readers) > _MOST_READERS:
                break
            alternatives = [cuts[reader].negated()] if cuts else []
            for earlier in readers[:position]:
                same = self.model.new_bool_var("")
                self.model.add(self.level[reader] == self.level[earlier]).only_enforce_if(same)
                alternatives.append(same)
            paid = self.model.new_bool_var("")
            self.model.add_bool_or([paid, *alternatives])
            found.append(paid)
        return found

    def _floor(self, mask: int) -> int:
        """A lower bound of the demand of every group that holds these nodes."""
        total = seen = 0
        for i in bits(mask):
            total += self.scheme.added_bound(i, seen)
            seen |= 1 << i
        return total

    def forbid(self, mask: int) -> None:
        """Exclude a set that does not fit: its smallest part that no group may hold, or just itself."""
        if self._floor(mask) < self.scheme.capacity_bytes:
            border = [
                self.cut[edge].negated()
                for edge in self.cut
                if (mask >> edge[0] & 1) != (mask >> edge[1] & 1)
            ]
            self.model.add_bool_or([*self._tree(mask), *border])
            return
        self.model.add_bool_or(self._tree(self._smallest(mask)))

    def _smallest(self, mask: int) -> int:
        """Drop nodes from the ends as long as the rest hangs together and still cannot fit."""
        for order in (list(bits(mask)), list(bits(mask))[::-1]):
            for i in order:
                rest = mask & ~(1 << i)
                if self.network.is_connected(rest) and self._floor(rest) >= self.scheme.capacity_bytes:
                    mask = rest
        return mask

    def _tree(self, mask: int) -> list[cp_model.IntVar]:
        """Cut variables of edges that span a connected set."""
        edges = list(inner_edges(self.network, mask))
        part, found = mask & -mask, []
        while part != mask:
            for i, j in edges:
                pair = 1 << i | 1 << j
                if (part & pair).bit_count() == 1:
                    found.append(self.cut[i, j])
                    part |= pair
        return found

    def solving(self, hint: Masks, seconds: float, workers: int, seed: int) -> Iterator[_Solved | None]:
        """Solve in a thread: None several times a second, then the result. Closing it stops the solver."""
        from ortools.sat.python import cp_model

        self._hint(hint)
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = seconds
        solver.parameters.num_workers = workers
        solver.parameters.random_seed = seed
        with ThreadPoolExecutor(1, thread_name_prefix="cp-sat") as pool:
            running: Future[cp_model.CpSolverStatus] = pool.submit(solver.solve, self.model)
            try:
                while wait([running], _BEAT_SECONDS).not_done:
                    yield None
            finally:
                while not running.done():  # a request that comes before the solver is ready is lost
                    solver.stop_search()
                    wait([running], _BEAT_SECONDS)
        status = running.result()
        bound = max(self.least_bytes, ceil(solver.best_objective_bound - _ROUNDING))
        if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
            yield _Solved(None, bound, is_optimal=False)
            return
        fused = [not solver.boolean_value(self.cut[edge]) for edge in self.space.edges]
        yield _Solved(self.space.decoded(fused), bound, status == cp_model.OPTIMAL)

    def _hint(self, masks: Masks) -> None:
        self.model.clear_hints()  # type: ignore[no-untyped-call]  # ortools annotates all but this
        owner = {i: mask for mask in masks for i in bits(mask)}
        for (i, j), is_cut in self.cut.items():
            self.model.add_hint(is_cut, owner.get(i, -1) != owner.get(j, -2))
