from __future__ import annotations

import gc
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest

from explorer.errors import Cancelled
from explorer.runtime import Protocol, Verdict
from explorer.runtime.dummy import FakeMachine
from explorer.runtime.estimate import compare
from explorer.runtime.sampling import sample_rounds

MS = 1_000_000
VALIDATED = Protocol.validated()
SCREENING = Protocol.screening()


def openers(machine, a, b):
    return {n: partial(machine.open, t) for n, t in {"a": a, "b": b, "control": a}.items()}


def measure(machine, a, b, protocol=VALIDATED):
    rounds = sample_rounds(openers(machine, a, b), protocol, machine.clocks)
    return compare(rounds, protocol, "planted")


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (0.90, Verdict.FASTER),
        (0.96, Verdict.FASTER),
        (1.0, Verdict.WITHIN_NOISE),
        (1.005, Verdict.WITHIN_NOISE),
        (1.05, Verdict.SLOWER),
        (40.0, Verdict.SLOWER),
    ],
)
def test_planted_differences_are_found(ratio, verdict):
    machine = FakeMachine(noise=0.02, session_noise=0.003, seed=7)
    delta, control = measure(machine, 5 * MS, ratio * 5 * MS)
    assert delta.verdict is verdict
    assert delta.ratio == pytest.approx(ratio, rel=0.01)
    assert control.verdict is Verdict.WITHIN_NOISE


def test_a_drifting_clock_does_not_look_like_a_difference():
    def heating_up(now_ns):
        return 1 + now_ns / 5e9

    delta, _ = measure(FakeMachine(slowdown=heating_up), 4 * MS, 4 * MS)
    assert delta.verdict is Verdict.WITHIN_NOISE
    assert delta.ratio == pytest.approx(1, abs=0.002)
    delta, _ = measure(FakeMachine(slowdown=heating_up), 4 * MS, 3.6 * MS)
    assert delta.verdict is Verdict.FASTER
    assert delta.ratio == pytest.approx(0.9, abs=0.005)


def test_epochs_of_the_clock_do_not_look_like_a_difference():
    def epochs(now_ns):
        return 1.3 if int(now_ns / 7e8) % 2 else 1.0

    delta, control = measure(FakeMachine(slowdown=epochs, noise=0.01), 4 * MS, 4 * MS)
    assert delta.verdict is Verdict.WITHIN_NOISE
    assert control.verdict is Verdict.WITHIN_NOISE


def test_offsets_that_stick_to_sessions_are_never_claimed():
    verdicts = Counter(
        measure(FakeMachine(session_noise=0.03, noise=0.01, seed=s), MS, MS)[0].verdict for s in range(30)
    )
    assert verdicts == {Verdict.WITHIN_NOISE: 30}


def test_screening_with_three_rounds_finds_large_differences():
    delta, _ = measure(FakeMachine(noise=0.01, seed=3), 5 * MS, 4 * MS, SCREENING)
    assert delta.verdict is Verdict.FASTER
    assert delta.protocol == "screening: 3 rounds of 9 samples"


def test_samples_are_filled_with_runs():
    machine = FakeMachine()
    rounds = sample_rounds(openers(machine, 0.1 * MS, 0.11 * MS), VALIDATED, machine.clocks)
    assert [len(r["a"].samples_ns) for r in rounds] == [18] * 10
    # Similar models get the same number of runs, enough for the faster one to fill 3 ms.
    assert {s.runs for r in rounds for s in r.values()} == {30}
    assert rounds[0]["a"].samples_ns[0] == 3 * MS
    slow = sample_rounds(openers(machine, 0.1 * MS, 10 * MS), VALIDATED, machine.clocks)
    assert (slow[0]["a"].runs, slow[0]["b"].runs) == (30, 1)


def test_every_round_has_fresh_sessions_all_closed():
    machine = FakeMachine()
    sample_rounds(openers(machine, MS, MS), VALIDATED, machine.clocks)
    assert (machine.opened, machine.closed) == (30, 30)


class Recording:
    """Sessions that note who opened and who ran."""

    def __init__(self):
        self.machine, self.created, self.ran = FakeMachine(), [], []

    def opener(self, name):
        def open_one():
            self.created.append(name)
            return Recorded(self, name)

        return open_one


class Recorded:
    def __init__(self, book, name):
        self.book, self.name = book, name

    def run(self):
        self.book.ran.append(self.name)
        self.book.machine.spend(30 * MS)

    def close(self):
        pass


def test_orders_rotate_and_every_session_follows_every_other_equally_often():
    book = Recording()
    protocol = replace(VALIDATED, budget_ns=10**12)
    sample_rounds({n: book.opener(n) for n in "abc"}, protocol, book.machine.clocks)
    orders = ["".join(book.created[i : i + 3]) for i in range(0, 30, 3)]
    assert Counter(orders[:6]) == Counter(["abc", "bca", "cab", "acb", "cba", "bac"])
    first_round = book.ran[: len(book.ran) // 10]
    sampled = first_round[-54:]
    followers = Counter(pairwise([*sampled, sampled[0]]))
    assert set(followers.values()) == {9}
    assert all(before != after for before, after in followers)


def test_warm_up_lasts_and_has_at_least_two_runs():
    book = Recording()
    protocol = replace(VALIDATED, warmup_ns=100 * MS, samples=3, budget_ns=10**12)
    sample_rounds({"a": book.opener("a")}, protocol, book.machine.clocks)
    assert len(book.ran) == 10 * (4 + 3)  # 4 runs of 30 ms fill 100 ms
    book = Recording()
    protocol = replace(protocol, warmup_ns=1)
    sample_rounds({"a": book.opener("a")}, protocol, book.machine.clocks)
    assert len(book.ran) == 10 * (2 + 3)


def test_a_slow_model_gets_fewer_samples_and_stays_in_the_budget():
    machine = FakeMachine(opening_ns=200 * MS)
    rounds = sample_rounds(openers(machine, 100 * MS, 100 * MS), VALIDATED, machine.clocks)
    counts = [len(r["a"].samples_ns) for r in rounds]
    assert all(12 <= c <= 18 for c in counts)
    assert machine.now_ns <= VALIDATED.budget_ns
    assert machine.now_ns > 0.9 * VALIDATED.budget_ns


def test_a_very_slow_model_keeps_rounds_and_three_samples_and_says_so():
    machine = FakeMachine(opening_ns=2000 * MS)
    rounds = sample_rounds(openers(machine, 400 * MS, 400 * MS), VALIDATED, machine.clocks)
    assert [len(r["b"].samples_ns) for r in rounds] == [3] * 10
    delta, _ = compare(rounds, VALIDATED, "t")
    assert delta.protocol == "validated: 10 rounds of 3 samples"
    assert machine.now_ns > VALIDATED.budget_ns


def test_a_budget_lost_to_a_slow_epoch_is_saved_in_later_rounds():
    machine = FakeMachine(slowdown=lambda now_ns: 4.0 if now_ns < 20e9 else 1.0)
    rounds = sample_rounds(openers(machine, 80 * MS, 80 * MS), VALIDATED, machine.clocks)
    counts = [len(r["a"].samples_ns) for r in rounds]
    assert min(counts[:3]) < max(counts[5:])
    assert machine.now_ns <= 1.1 * VALIDATED.budget_ns


def test_progress_counts_rounds():
    machine, seen = FakeMachine(), []
    sample_rounds(openers(machine, MS, MS), SCREENING, machine.clocks, seen.append)
    assert [(p.done, p.total) for p in seen] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert seen[1].text == "round 2 of 3"


def test_stopping_from_the_progress_listener_closes_everything():
    machine = FakeMachine()

    def stop_in_second_round(progress):
        if progress.done == 1:
            raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        sample_rounds(openers(machine, MS, MS), VALIDATED, machine.clocks, stop_in_second_round)
    assert machine.opened == machine.closed == 3


def test_a_session_that_fails_to_open_closes_the_others():
    machine = FakeMachine()

    def broken():
        raise RuntimeError("no")

    sessions = {**openers(machine, MS, MS), "control": broken}
    with pytest.raises(RuntimeError):
        sample_rounds(sessions, VALIDATED, machine.clocks)
    assert machine.opened == machine.closed == 2


def test_garbage_collection_is_off_while_sampling_only():
    states = []

    class Watching(Recorded):
        def run(self):
            states.append(gc.isenabled())
            self.book.machine.spend(30 * MS)

    book = Recording()
    protocol = replace(SCREENING, rounds=1, samples=4, warmup_ns=1)
    sample_rounds({"a": lambda: Watching(book, "a")}, protocol, book.machine.clocks)
    assert states == [True, True, False, False, False, False]
    assert gc.isenabled()


class TestAdaptiveRounds:
    ADAPTIVE = Protocol.adaptive(budget_s=600)

    def rounds(self, protocol, **machine):
        planted = FakeMachine(**machine)
        found = sample_rounds(openers(planted, 5 * MS, 5 * MS), protocol, planted.clocks)
        assert planted.opened == planted.closed == 3 * len(found)
        return len(found)

    def test_a_quiet_machine_needs_no_more_than_ten(self):
        assert self.rounds(self.ADAPTIVE, noise=0.01, session_noise=0.002) == 10

    def test_a_noisy_one_gets_more_until_the_interval_is_narrow(self):
        assert 10 < self.rounds(self.ADAPTIVE, session_noise=0.012, seed=3) < 40

    def test_hopeless_noise_ends_at_the_most_rounds_or_with_the_budget(self):
        assert self.rounds(self.ADAPTIVE, session_noise=0.3, seed=3) == 40
        assert self.rounds(self.ADAPTIVE.with_budget(20), session_noise=0.3, seed=3) < 40

    def test_screening_leaves_the_third_round_out_if_opening_eats_the_budget(self):
        assert self.rounds(SCREENING, opening_ns=2_500 * MS) == 2
        assert self.rounds(SCREENING, opening_ns=100 * MS) == 3

    def test_the_words_name_the_rounds_that_were_made(self):
        machine = FakeMachine(opening_ns=2_500 * MS)
        delta, _ = measure(machine, 5 * MS, 5 * MS, SCREENING)
        assert delta.protocol.startswith("screening: 2 rounds")
        machine = FakeMachine(session_noise=0.3, seed=3)
        delta, _ = measure(machine, 5 * MS, 5 * MS, self.ADAPTIVE)
        assert delta.protocol.startswith("validated: 40 rounds")

    def test_stopping_by_width_does_not_favour_claims(self):
        short, claims = replace(self.ADAPTIVE, samples=3, warmup_ns=5 * MS), 0
        for seed in range(40):
            machine = FakeMachine(noise=0.02, session_noise=0.02, seed=seed)
            delta, _ = measure(machine, 5 * MS, 5 * MS, short)
            claims += delta.verdict is not Verdict.WITHIN_NOISE
        assert claims <= 2
