"""Looking ahead: what predictions find is measured as one move, and taken apart where it does not gain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from explorer.cost import Delta, Source, Verdict
from explorer.graph import Graph
from explorer.rewrite import default_rules
from explorer.search import Evaluated, LeftOut, Proposed, Scout, Scouted, Scouting, Taken
from explorer.search.ahead import Part, join
from explorer.search.greedy import Answer, Greedy
from explorer.search.moves import Move
from tests.rewrite.harness import graph_of, ops
from tests.search.test_greedy import search

RULES = default_rules().only(["fuse-conv-activation", "split-hardswish", "div-to-mul"])


@dataclass(frozen=True)
class Planted:
    """A cost that predicts what it is told to."""

    time_ns: Callable[[Graph], float]
    name: str = "planted"
    target: str = "planted"

    def compare(self, base: Graph, other: Graph, *, careful: bool = False) -> Delta:
        ratio = self.time_ns(other) / self.time_ns(base)
        verdict = (
            Verdict.FASTER if ratio < 0.999 else Verdict.SLOWER if ratio > 1.001 else Verdict.WITHIN_NOISE
        )
        return Delta(ratio, ratio, ratio, verdict, Source.PREDICTED, self.target, "planted")


def three_sites() -> Graph:
    """A site of each rule, which neither open nor close each other."""
    return graph_of(
        """(float[1,4,8,8] x) => (float[1,4,6,6] y) {
            c = Conv(x, w)
            r = Relu(c)
            h = HardSwish(r)
            y = Div(h, k)
        }""",
        w=np.random.default_rng(0).standard_normal((4, 4, 3, 3)).astype("f4"),
        k=np.full(1, 4.0, dtype="f4"),
    )


def done(graph: Graph) -> tuple[bool, bool, bool]:
    """Which of fusing, splitting and multiplying were done."""
    now = ops(graph)
    return "FusedConv" in now, "HardSwish" not in now, "Div" not in now


def saving(*shares: float) -> Callable[..., float]:
    """A time that each of the three shortens by its share (lengthens, if negative)."""
    return lambda graph, _target=None: (
        1e7 * (1 - sum(s for s, is_done in zip(shares, done(graph), strict=True) if is_done))
    )


def together_ns(graph: Graph, _target: object = None) -> float:
    """Gains only where all three are done: each alone, and any two, is within noise."""
    return 1e7 * (0.9 if all(done(graph)) else 1 - 1e-3 * sum(done(graph)))


ALL_GAIN = saving(0.1, 0.1, 0.1)


def scouted(run_ns: Callable[..., float], predicted: Callable[..., float] = ALL_GAIN, **settings) -> Greedy:
    return search(three_sites(), run_ns, RULES, scout=Scout(Planted(predicted)), **settings)


def test_a_gain_that_only_shows_together_is_found_by_looking_ahead():
    plain = search(three_sites(), together_ns, RULES)
    assert [e for e in plain.events() if isinstance(e, Taken)] == []

    greedy = scouted(together_ns, budget=6)
    events = list(greedy.events())
    first = next(event for event in events if isinstance(event, Evaluated))
    assert set(first.move.rules) == {"fuse-conv-activation", "split-hardswish", "div-to-mul"}
    assert first.delta.ratio == pytest.approx(0.9)
    assert first.delta.source is Source.MEASURED
    (taken,) = [event for event in events if isinstance(event, Taken)]
    assert len(taken.candidates) == 3
    assert all(done(greedy.position.graph))


def test_predictions_come_first_are_told_as_such_and_cost_no_comparison():
    greedy = scouted(together_ns, budget=6)
    events = list(greedy.events())
    ahead = [type(event) for event in events[: [type(event) for event in events].index(Scouted)]]
    assert set(ahead) == {Scouting}
    (told,) = [event for event in events if isinstance(event, Scouted)]
    assert told.moves == 3
    assert told.move == next(event.move for event in events if isinstance(event, Evaluated))
    assert told.spent == len(ahead)
    assert told.delta is not None
    assert told.delta.source is Source.PREDICTED
    assert told.delta.ratio == pytest.approx(0.7)
    assert told.sentence == f"3 moves found by {told.spent} predictions, to be measured together"
    assert greedy.spent <= 6


def test_where_nothing_is_predicted_to_gain_the_search_is_the_plain_one():
    def told(greedy: Greedy) -> list[object]:
        return [(e.move, e.delta) for e in greedy.events() if isinstance(e, Evaluated | Taken)]

    gains = saving(0.05, -0.02, 0.03)
    assert told(scouted(gains, saving(0, 0, 0))) == told(search(three_sites(), gains, RULES))
    (ahead,) = [e for e in scouted(gains, saving(0, 0, 0)).events() if isinstance(e, Scouted)]
    assert ahead.move is None
    assert ahead.moves == 0
    assert ahead.delta is None
    assert "nothing is predicted to gain" in ahead.sentence


@pytest.mark.parametrize("shares", [(0.05, -0.3, 0.01), (-0.3, 0.05, 0.01), (0.01, 0.05, -0.3)])
def test_a_path_that_is_slower_is_halved_until_what_gains_is_found(shares: tuple[float, ...]):
    greedy = scouted(saving(*shares), budget=12)
    compared = [event for event in greedy.events() if isinstance(event, Evaluated)]
    assert len(compared[0].move.chain) == 3
    assert compared[0].delta.verdict is Verdict.SLOWER
    assert done(greedy.position.graph) == tuple(share > 0 for share in shares)


@pytest.mark.parametrize("shares", [(0.3, -0.05, 0.1), (0.3, 0.1, -0.05), (-0.05, 0.3, 0.1)])
def test_what_costs_something_is_left_out_of_a_path_that_gains(shares: tuple[float, ...]):
    greedy = scouted(saving(*shares), predicted=saving(*(0.1 if s > 0 else 0.05 for s in shares)), budget=20)
    events = list(greedy.events())
    first = next(event for event in events if isinstance(event, Evaluated))
    assert first.delta.ratio == pytest.approx(1 - sum(shares))
    (left_out,) = [event for event in events if isinstance(event, LeftOut) and event.is_better]
    assert len(left_out.without) == 1
    (taken,) = [event for event in events if isinstance(event, Taken)]
    assert taken.delta.ratio == pytest.approx(1 - 0.4)
    assert done(greedy.position.graph) == tuple(share > 0 for share in shares)


def test_a_path_can_be_overridden_and_is_not_proposed_again():
    greedy = scouted(together_ns, budget=20)
    events, answer, proposed = greedy.events(), None, []
    while True:
        try:
            event = events.send(answer)
        except StopIteration:
            break
        answer = Answer.SKIP if isinstance(event, Proposed) else None
        proposed += [event.move] if isinstance(event, Proposed) else []
    assert len(proposed) == len(set(proposed))
    assert not any(done(greedy.position.graph))


def test_banned_places_are_not_looked_ahead_to():
    banned = frozenset({"div-to-mul:n3"})
    greedy = scouted(ALL_GAIN, banned=banned)
    seen = [event.move for event in greedy.events() if isinstance(event, Scouting | Evaluated | Taken)]
    assert all(banned.isdisjoint(one.places) for move in seen for one in move.chain)
    assert done(greedy.position.graph) == (True, True, False)


def test_a_search_that_looks_ahead_is_the_same_every_time():
    def told() -> list[tuple[type, Move | None]]:
        greedy = scouted(together_ns, budget=8)
        return [(type(event), getattr(event, "move", None)) for event in greedy.events()]

    assert told() == told()


def test_parts_that_do_not_apply_are_left_out_of_a_path():
    graph = three_sites()
    multiply = Part(Move("div-to-mul", ("div-to-mul:n3", "nowhere")), 0.9)
    gone = Part(Move("split-hardswish", ("nowhere",)), 0.5)
    path = join(graph, [gone, multiply], RULES)
    assert path is not None
    assert path.parts == (multiply,)
    assert path.ratio == pytest.approx(0.9)
    assert path.applied.move == Move("div-to-mul", ("div-to-mul:n3",))
    assert join(graph, [gone], RULES) is None
