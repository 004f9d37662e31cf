from __future__ import annotations

import json
from functools import partial

import pytest

from explorer.errors import InputError
from explorer.runtime import Latency, Measurement, Protocol, Target
from explorer.runtime.dummy import PLANTED, FakeMachine
from explorer.runtime.environment import Environment, cpu_model, system_name
from explorer.runtime.estimate import identical, latency_from, measurement_from
from explorer.runtime.sampling import sample_rounds

TARGET = Target.parse("ort:level=basic")
PROTOCOL = Protocol.screening()


@pytest.fixture
def pair():
    machine = FakeMachine(noise=0.02)
    openers = {n: partial(machine.open, t) for n, t in {"a": 5e6, "b": 4e6, "control": 5e6}.items()}
    rounds = sample_rounds(openers, PROTOCOL, machine.clocks)
    return measurement_from(rounds, ("fa", "fb"), TARGET, PROTOCOL, PLANTED, elapsed_ns=9)


@pytest.fixture
def alone():
    machine = FakeMachine(noise=0.02)
    rounds = sample_rounds({"a": partial(machine.open, 5e6)}, PROTOCOL, machine.clocks)
    return latency_from(rounds, "fa", TARGET, PROTOCOL, PLANTED, elapsed_ns=9)


def test_a_measurement_survives_one_line_of_json(pair):
    line = json.dumps(pair.to_json())
    assert "\n" not in line
    back = Measurement.from_json(json.loads(line))
    assert back == pair
    assert (back.measured_at, back.elapsed_ns) == (pair.measured_at, pair.elapsed_ns)
    assert back.rounds[2]["control"].samples_ns == pair.rounds[2]["control"].samples_ns


def test_json_has_the_keys_of_the_command_line(pair):
    data = pair.to_json()
    assert {"a", "b", "delta", "control", "samples"} <= set(data)
    assert (data["a"], data["b"]) == ("fa", "fb")
    assert data["delta"]["target"] == "ort:level=basic,threads=1"
    assert set(data["samples"][0]) == {"a", "b", "control"}
    assert data["a_ns"] == pytest.approx(5e6, rel=0.02)
    assert data["protocol"]["mode"] == "screening"


def test_an_identical_measurement_survives_json():
    result = identical(("fa", "fb"), TARGET, PROTOCOL, PLANTED)
    assert Measurement.from_json(json.loads(json.dumps(result.to_json()))) == result


def test_two_targets_are_named_in_the_measurement_and_its_delta(pair):
    other = TARGET.replace(level="all")
    timed = measurement_from(pair.rounds, ("f", "f"), TARGET, PROTOCOL, PLANTED, elapsed_ns=1, b_target=other)
    same = identical(("f", "f"), TARGET, PROTOCOL, PLANTED, other)
    for found in (timed, same):
        assert (found.target, found.b_target) == (str(TARGET), str(other))
        assert found.delta.target == f"{other} against {TARGET}"
        assert Measurement.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert timed.control.target == str(TARGET)
    assert "b_target" not in pair.to_json()


def test_a_latency_survives_json(alone):
    back = Latency.from_json(json.loads(json.dumps(alone.to_json())))
    assert back == alone
    assert back.low_ns <= back.ns <= back.high_ns


def test_equality_ignores_when_and_how_long(pair):
    data = {**pair.to_json(), "measured_at": "2001-01-01T00:00:00+00:00", "elapsed_ns": 1}
    assert Measurement.from_json(data) == pair


def damage(data, path, value):
    *parents, last = path
    for key in parents:
        data = data[key]
    data[last] = value


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (["format"], 99, "format 1"),
        (["delta"], None, "delta must be a JSON object"),
        (["delta", "ratio"], 0.2, "within its interval"),
        (["control"], None, "IDENTICAL"),
        (["samples"], {}, "'samples'"),
        (["samples"], [], "IDENTICAL"),
        (["samples", 0, "b"], None, "series 'b'"),
        (["samples", 0, "a", "samples_ns"], [1, 2], "same number"),
        (["samples", 0, "a", "samples_ns"], [1.5] * 9, "'samples_ns'"),
        (["samples", 0, "a", "samples_ns"], [0] * 9, "positive"),
        (["samples", 0, "a", "runs"], 0, "'runs'"),
        (["protocol", "mode"], "best", "validated, screening"),
        (["environment", "versions"], {"onnxruntime": 1}, "'versions'"),
        (["environment", "threads"], 0, "'threads'"),
        (["elapsed_ns"], -1, "'elapsed_ns'"),
    ],
)
def test_damaged_json_is_refused_with_the_reason(pair, path, value, words):
    data = json.loads(json.dumps(pair.to_json()))
    damage(data, path, value)
    with pytest.raises(InputError, match=words):
        Measurement.from_json(data)


def test_a_damaged_latency_is_refused(alone):
    with pytest.raises(InputError, match="within its interval"):
        Latency.from_json({**alone.to_json(), "ns": 1.0})
    with pytest.raises(InputError, match="JSON object"):
        Latency.from_json("latency")


def test_the_environment_names_this_machine():
    environment = Environment(cpu_model(), system_name(), {"x": "1"}, 2, "perf_counter_ns", {})
    assert environment.cpu_model
    assert Environment.from_json(environment.to_json()) == environment
