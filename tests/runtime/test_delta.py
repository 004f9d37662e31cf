from __future__ import annotations

import json
from dataclasses import replace

import pytest

from explorer.errors import InputError
from explorer.runtime import Delta, Source, Verdict

FASTER = Delta(0.9, 0.88, 0.93, Verdict.FASTER, Source.MEASURED, "ort:level=all,threads=1", "p")


def test_json_has_the_keys_of_the_command_line_and_reads_back():
    data = FASTER.to_json()
    assert data == {
        "ratio": 0.9,
        "low": 0.88,
        "high": 0.93,
        "verdict": "FASTER",
        "target": "ort:level=all,threads=1",
        "source": "MEASURED",
        "protocol": "p",
    }
    assert Delta.from_json(json.loads(json.dumps(data))) == FASTER


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ratio": "0.9"}, "'ratio'"),
        ({"ratio": True}, "'ratio'"),
        ({"low": None}, "'low'"),
        ({"verdict": "GREAT"}, "FASTER, SLOWER, WITHIN_NOISE, IDENTICAL"),
        ({"source": "GUESSED"}, "MEASURED, PREDICTED"),
        ({"target": 3}, "'target'"),
        ({"ratio": float("nan")}, "finite"),
        ({"ratio": -1.0}, "positive"),
        ({"ratio": 0.95}, "within its interval"),
        ({"verdict": "SLOWER"}, "cannot be called SLOWER"),
        ({"high": 1.01}, "cannot be called FASTER"),
        ({"verdict": "IDENTICAL"}, "cannot be called IDENTICAL"),
    ],
)
def test_damaged_json_is_refused_with_the_reason(change, words):
    with pytest.raises(InputError, match=words):
        Delta.from_json({**FASTER.to_json(), **change})


@pytest.mark.parametrize("key", list(FASTER.to_json()))
def test_a_missing_key_is_named(key):
    data = FASTER.to_json()
    del data[key]
    with pytest.raises(InputError, match=f"'{key}'"):
        Delta.from_json(data)


def test_something_else_than_an_object_is_refused():
    with pytest.raises(InputError, match="JSON object, not list"):
        Delta.from_json([])


def test_identical_is_exactly_one():
    delta = Delta.identical("ort:level=all,threads=1", "not timed")
    assert (delta.low, delta.ratio, delta.high) == (1.0, 1.0, 1.0)
    assert delta.verdict is Verdict.IDENTICAL
    assert delta.percent == 0


def test_percent_and_words():
    assert FASTER.percent == pytest.approx(-10)
    assert Verdict.WITHIN_NOISE.text == "within noise"
    noise = replace(FASTER, high=1.1, verdict=Verdict.WITHIN_NOISE)
    assert Delta.from_json(noise.to_json()) == noise
