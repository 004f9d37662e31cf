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
    with pytest.raises(InputError, match="validated, screening"):
        Protocol.of("quick")


def test_another_budget():
    assert Protocol.validated().with_budget(2.5).budget_ns == 2_500_000_000
