"""Switches of the runtime on the command line."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from explorer.cli import main
from tests.models import model
from tests.test_cli import fails, run_json

DISABLE = "ort:level=disable,threads=1"


@pytest.fixture
def listed(tmp_path) -> str:
    """A Conv whose weight is an input with a default, then a Relu."""
    weight = np.random.default_rng(2).standard_normal((8, 8, 3, 3)).astype("f4")
    text = "(float[1,8,9,9] x, float[8,8,3,3] w) => (float[1,8,7,7] y) { c = Conv(x, w) y = Relu(c) }"
    path = tmp_path / "net.onnx"
    onnx.save(model(text, w=weight), path)
    return str(path)


def test_switches_are_listed_with_class_and_place(capsys, listed):
    data = run_json(capsys, "candidates", listed, "--switches")
    found = {c["place"]: c for c in data["candidates"]}
    assert list(found) == [
        "switch:freeze-weights",
        "switch:level=disable",
        "switch:level=basic",
        "switch:level=extended",
        "switch:disabled+=ConvActivationFusion",
    ]
    freeze = found["switch:freeze-weights"]
    assert (freeze["numeric_class"], freeze["family"], freeze["measured"]) == ("E", "H", None)
    assert freeze["summary"].endswith("callers can no longer override 'w'")
    assert main(["candidates", listed, "--switches"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "5 switches for net on ort:level=all,threads=1"
    assert lines[4].startswith("switch:level=extended  [R]  ONNX Runtime optimises at level extended")


def test_switches_are_measured(capsys, listed):
    data = run_json(capsys, "candidates", listed, "--switches", "--measure", "--target", DISABLE)
    deltas = {c["place"]: c["measured"] for c in data["candidates"]}
    assert all(delta["low"] <= delta["ratio"] <= delta["high"] for delta in deltas.values())
    assert deltas["switch:level=basic"]["verdict"] == "IDENTICAL"
    assert deltas["switch:level=all"]["target"] == f"ort:level=all,threads=1 against {DISABLE}"


def test_one_switch_is_measured_with_both_targets_named(capsys, listed):
    argv = ["measure", listed, "--switch", "switch:level=extended", "--target", DISABLE, "--screening"]
    data = run_json(capsys, *argv)
    assert (data["target"], data["b_target"]) == (DISABLE, "ort:level=extended,threads=1")
    assert data["control"]["target"] == DISABLE
    assert data["switch"] == "switch:level=extended"
    assert main(argv) == 0
    assert f"ort:level=extended,threads=1 against {DISABLE}" in capsys.readouterr().out


def test_apply_takes_switches_and_says_how_to_load_the_result(capsys, listed, tmp_path):
    out = tmp_path / "out.onnx"
    switches = ["switch:freeze-weights", "switch:level=extended"]
    chosen = [word for place in switches for word in ("--candidate", place)]
    data = run_json(capsys, "apply", listed, *chosen, "--out", str(out))
    assert data["verified"]
    assert data["target"] == "ort:level=extended,threads=1"
    assert data["session_settings"] == {"graph_optimization_level": "ORT_ENABLE_EXTENDED"}
    assert [step["place"] for step in data["steps"]] == switches
    assert [i.name for i in onnx.load(out).graph.input] == ["x"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["candidates", "squeezenet1_1", "--switches", "--rule", "x"], "leave out --rule"),
        (["candidates", "squeezenet1_1", "--switches", "--predict"], "--predict"),
        (["measure", "squeezenet1_1", "resnet18", "--switch", "switch:level=basic"], "give one model"),
        (["measure", "squeezenet1_1", "--switch", "switch:level=fast"], "There is no 'switch:level=fast'"),
        (["measure", "squeezenet1_1", "--switch", "level=basic"], "There is no 'level=basic'"),
    ],
)
def test_bad_requests_are_refused_in_one_line(capsys, argv, words):
    assert words in fails(capsys, *argv)
