"""The command line as a stranger uses it: JSON on stdout, one line on stderr when something is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from explorer.cli import main
from explorer.graph import load, save
from tests.models import CASES, model

CASE = str(CASES / "conv_shared_weight_two_bn.onnx")


def run_json(capsys, *argv: str) -> dict:
    """Run a command with --json; returns the document."""
    code = main([*argv, "--json"])
    output = capsys.readouterr()
    assert code == 0, output.err
    return json.loads(output.out)


def fails(capsys, *argv: str) -> str:
    """Run a command that must refuse its input: exit code 2, one line, no traceback."""
    try:
        code = main(list(argv))
    except SystemExit as stop:
        code = stop.code
    output = capsys.readouterr()
    assert code == 2
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert "Traceback" not in output.err
    return output.err


def test_inspect_counts_what_is_there(capsys):
    data = run_json(capsys, "inspect", "resnet18")
    assert data["nodes"] == 69
    assert data["ops"]["Conv"] == 20
    assert data["parameters"] == 11_699_112
    assert data["inputs"][0] == {"name": "input", "dtype": "float", "shape": [1, 3, 224, 224]}
    assert data["opset"] == {"": 17}
    assert data["flops"] == pytest.approx(3.64e9, rel=0.01)
    assert any("seed 0" in warning for warning in data["warnings"])


def test_candidates_have_ids_that_apply_takes(capsys, tmp_path):
    listed = run_json(capsys, "candidates", CASE, "--rule", "fold-batchnorm-into-conv", "--rejections")
    assert [c["rule"] for c in listed["candidates"]] == ["fold-batchnorm-into-conv"] * 2
    first, second = (c["id"] for c in listed["candidates"])
    out = tmp_path / "folded.onnx"
    done = run_json(capsys, "apply", CASE, "--candidate", first, "--candidate", second, "--out", str(out))
    assert done["verified"]
    assert done["nodes_after"] == done["nodes_before"] - 2
    assert [step["rule"] for step in done["steps"]] == ["fold-batchnorm-into-conv"] * 2
    onnx.checker.check_model(out)
    assert_same_outputs(CASE, str(out))


def assert_same_outputs(a: str, b: str) -> None:
    """Both files give the same outputs on a random input."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    sessions = [ort.InferenceSession(path, options) for path in (a, b)]
    rng = np.random.default_rng(0)
    feeds = {i.name: rng.standard_normal(i.shape).astype("f4") for i in sessions[0].get_inputs()}
    for x, y in zip(*(session.run(None, feeds) for session in sessions), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)


def test_optimize_reports_steps_interval_control_and_check(capsys, tmp_path):
    trajectory, out = tmp_path / "t.json", tmp_path / "o.onnx"
    options = ["--target", "ort:level=disable,threads=1", "--budget", "2"]
    data = run_json(capsys, "optimize", CASE, *options, "--trajectory", str(trajectory), "--out", str(out))
    assert data["verified"]
    assert {"ratio", "low", "high", "verdict", "target", "source"} <= set(data["delta"])
    assert {"ratio", "low", "high"} <= set(data["control"])
    assert data["initial_ns"] > 0
    assert data["final_ns"] > 0
    assert bool(data["steps"]) == (data["delta"]["verdict"] == "FASTER")
    assert 1 <= len(data["evaluated"]) <= 2
    again = run_json(capsys, "replay", str(trajectory))
    assert again["steps"] == data["steps"]
    assert_same_outputs(CASE, str(out))


def test_measure_one_and_two_models(capsys, tmp_path):
    other = save(load(CASE), tmp_path / "copy.onnx")
    one = run_json(capsys, "measure", CASE, "--screening")
    assert one["low_ns"] <= one["ns"] <= one["high_ns"]
    pair = run_json(capsys, "measure", CASE, str(other), "--screening")
    assert pair["delta"]["verdict"] == "IDENTICAL"
    assert pair["a"] == CASE


def test_rules_lists_the_library(capsys):
    rules = {rule["name"]: rule for rule in run_json(capsys, "rules")["rules"]}
    assert rules["fold-batchnorm-into-conv"]["numeric_class"] == "R"
    assert rules["merge-parallel-convs"]["inverse"] == "split-merged-conv"
    assert not rules["merge-conv-groups"]["default"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["inspect", "nope"], "neither a file nor a sample"),
        (["inspect", __file__], "not an ONNX model"),
        (["candidates", "resnet18", "--rule", "nope"], "No rule is called 'nope'"),
        (["candidates", "resnet18", "--target", "ort:level=fast"], "level=fast"),
        (["candidates", "resnet18", "--target", "abacus"], "abacus"),
        (["apply", CASE, "--candidate", "x", "--out", "/tmp/x.onnx"], "No candidate 'x'"),
        (["optimize", CASE, "--budget", "0"], "at least 1"),
        (["optimize", CASE, "--budget", "x"], "--budget: must be a whole number, at least 1, not 'x'"),
        (["fuse", CASE, "--buffer-kb", "much"], "--buffer-kb: must be a finite number, not 'much'"),
        (["optimize", CASE, "--strategy", "magic"], "magic"),
        (["replay", "/nope.json"], "cannot be read"),
        (["measure", CASE, "resnet18", "--screening"], "different inputs"),
        (["inspect", "resnet18", "--dim", "N"], "N=4"),
        ([], "required"),
    ],
)
def test_bad_input_gets_one_sentence(capsys, argv, words):
    assert words in fails(capsys, *argv)


def test_an_unknown_operator_is_inspected_but_not_measured(capsys):
    path = str(CASES / "unknown_custom_op.onnx")
    data = run_json(capsys, "inspect", path)
    assert data["ops"]["vendor.ops::FancyGate"] == 1
    assert data["flops"] is None
    code = main(["measure", path, "--screening"])
    error = capsys.readouterr().err
    assert code == 1
    assert "vendor.ops::FancyGate" in error
    assert error.count("\n") == 1


def test_dynamic_dims_can_be_set(capsys, tmp_path):
    path = tmp_path / "dynamic.onnx"
    onnx.save(model("(float[N,4] x) => (float[N,4] y) { y = Relu(x) }"), path)
    assert run_json(capsys, "measure", str(path), "--screening", "--dim", "N=7")["ns"] > 0
    assert run_json(capsys, "inspect", str(path))["flops"] is None
    sized = run_json(capsys, "inspect", str(path), "--dim", "N=7")
    assert (sized["flops"], sized["outputs"][0]["shape"]) == (28, [7, 4])
    assert "no unknown dimension 'M'" in fails(capsys, "inspect", str(path), "--dim", "M=7")


@pytest.mark.parametrize("stream", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_are_not_missed(stream, tmp_path):
    out = tmp_path / "plan.json"
    command = f"'{sys.executable}' -m explorer fuse squeezenet1_1 --search greedy --out '{out}' {stream}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr.count("explorer:")) == (0, 0), done.stderr
    assert json.loads(out.read_text())


@pytest.mark.parametrize("command", ["inspect squeezenet1_1", "rules --json"])
def test_a_full_disk_behind_stdout_is_said_in_one_line(command):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    shell = f"'{sys.executable}' -m explorer {command} > /dev/full"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert done.stderr == "explorer: the output cannot be written: No space left on device.\n"


def test_a_size_for_a_dim_that_no_input_has_is_refused(capsys, tmp_path):
    graph = load(model("(float[N,4,T] x) => (float[N,4,T] y) { y = Relu(x) }"))
    dynamic, fixed = str(save(graph, tmp_path / "m.onnx")), str(CASES / "pad_before_pools.onnx")
    for command in ("candidates", "profile", "measure"):
        assert "'m' have no dim 'n'; it has N, T." in fails(capsys, command, dynamic, "--dim", "n=3")
    assert "have no dim 'N'; all their dims are fixed" in fails(capsys, "candidates", fixed, "--dim", "N=3")
    assert main(["candidates", dynamic, "--dim", "T=3"]) == 0
