from __future__ import annotations

import json
from dataclasses import replace

import pytest

from explorer.errors import InputError
from explorer.runtime import Mode, Protocol


def test_the_validated_protocol_has_the_validated_numbers():
    protocol = Protocol.validated()
    assert (protocol.mode, protocol.rounds, protocol.samples) == (Mode.VALIDATED, 10, 18)
    assert (protocol.sample_ns, protocol.warmup_ns) == (3_000_000, 60_000_000)
    assert (protocol.trim, protocol.floor_ratio, protocol.budget_ns) == (1, 0.01, 60_000_000_000)


def test_screening_is_shorter_and_says_so():
    protocol = Protocol.screening()
    assert (protocol.mode, protocol.rounds, protocol.trim) == (Mode.SCREENING, 3, 0)
    assert protocol.budget_ns == 10_000_000_000
    assert protocol.describe() == "screening: 3 rounds of 9 samples"
    assert protocol.describe((3, 9)) == "screening: 3 rounds of 3-9 samples"


@pytest.mark.parametrize("protocol", [Protocol.validated(budget_s=5), Protocol.screening()])
def test_json_round_trip(protocol):
    assert Protocol.from_json(json.loads(json.dumps(protocol.to_json()))) == protocol


@pytest.mark.parametrize(
    "change",
    [{"rounds": 9}, {"trim": 0}, {"floor_ratio": 0.005}, {"min_samples": 2}],
)
def test_weaker_numbers_may_not_be_called_validated(change):
    with pytest.raises(InputError, match="screening"):
        replace(Protocol.validated(), **change)
    assert replace(Protocol.validated(), mode=Mode.SCREENING, **change).mode is Mode.SCREENING


@pytest.mark.parametrize(
    "change",
    [
        {"rounds": 0},
        {"min_samples": 19},
        {"min_samples": 0},
        {"trim": 5},
        {"trim": -1},
        {"sample_ns": 0},
        {"budget_ns": -1},
        {"floor_ratio": 0.0},
    ],
)
def test_numbers_without_sense_are_refused(change):
    with pytest.raises(InputError):
        replace(Protocol.validated(), **change)


def test_modes_by_name():
    assert Protocol.of("validated") == Protocol.validated()
    assert Protocol.of(Mode.SCREENING) == Protocol.screening()
    own = Protocol.screening(budget_s=1)
    assert Protocol.of(own) is own
    with pytest.raises(InputError, match="validated, screening, adaptive"):
        Protocol.of("quick")


def test_another_budget():
    assert Protocol.validated().with_budget(2.5).budget_ns == 2_500_000_000


class TestRounds:
    def test_screening_may_end_after_two(self):
        protocol = Protocol.screening()
        assert (protocol.fewest_rounds, protocol.rounds, protocol.most_rounds) == (2, 3, 3)

    def test_validated_ones_never_end_before_ten(self):
        assert Protocol.validated().fewest_rounds == Protocol.adaptive().fewest_rounds == 10
        with pytest.raises(InputError, match="screening"):
            replace(Protocol.validated(), min_rounds=9)

    def test_more_rounds_allow_more_trim_at_the_same_confidence(self):
        protocol = Protocol.adaptive()
        trims = {rounds: protocol.trim_of(rounds) for rounds in (10, 11, 14, 20, 40)}
        assert trims == {10: 1, 11: 1, 14: 2, 20: 4, 40: 12}

    def test_fewer_rounds_than_planned_keep_an_interval(self):
        assert Protocol.screening().trim_of(2) == 0
        assert replace(Protocol.validated(), mode=Mode.SCREENING, min_rounds=3).trim_of(3) == 1

    def test_several_threads_get_a_wider_floor_that_is_said(self):
        wide = Protocol.validated().for_threads(2)
        assert wide.floor_ratio == 0.05
        assert wide.describe() == "validated: 10 rounds of 18 samples, nothing up to 5 % claimed"
        assert Protocol.validated().for_threads(1) == Protocol.validated()
        assert wide.for_threads(4) is wide

    def test_protocols_written_by_earlier_versions_are_read(self):
        data = Protocol.validated().to_json()
        for name in ("min_rounds", "max_rounds", "enough_ratio"):
            del data[name]
        assert Protocol.from_json(data) == Protocol.validated()
