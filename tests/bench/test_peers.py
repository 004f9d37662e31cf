"""The comparison with other optimisers, on a small model and with one of them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from explorer.bench.peers import OURS, TARGETS, check_cases, compare
from explorer.graph import load
from explorer.runtime import Verdict
from explorer.runtime.dummy import PlantedMeasurer
from tests.models import CASES
from tests.session.planted import planted_ns, saved_model

NEEDS_ONNXSLIM = pytest.mark.skipif(find_spec("onnxslim") is None, reason="onnxslim is not installed")


def test_ours_are_equal_smaller_and_timed(tmp_path: Path):
    with PlantedMeasurer(planted_ns) as measurer:
        rows = compare(load(saved_model(tmp_path)), measurer, tools=())
    assert rows["original"]["nodes"] == 6
    exact, loose = (rows[name] for name in OURS)
    assert (exact["nodes"], loose["nodes"]) == (6, 2)
    for row in (exact, loose, rows["explorer measured"]):
        assert row["equal"], row["problem"]
    measured = rows["explorer measured"]["deltas"][TARGETS[0]]
    assert measured["ratio"] == pytest.approx(20 / 24, rel=1e-3)
    assert measured["verdict"] == Verdict.FASTER.name
    assert {"onnxruntime at basic", "onnxruntime at disable"} < set(rows)


@NEEDS_ONNXSLIM
def test_a_peer_runs_in_a_process_of_its_own(tmp_path: Path):
    with PlantedMeasurer(planted_ns) as measurer:
        rows = compare(load(saved_model(tmp_path)), measurer, tools=("onnxslim",))
    assert rows["onnxslim"]["equal"], rows["onnxslim"]["problem"]
    assert rows["onnxslim"]["nodes"] == 4  # it folds the normalisations


def test_a_peer_that_fails_says_why(tmp_path: Path):
    with PlantedMeasurer(planted_ns) as measurer:
        rows = compare(load(saved_model(tmp_path)), measurer, tools=("no-such-tool",))
    assert "no-such-tool" in rows["no-such-tool"]["failed"]


def test_we_keep_the_outputs_of_a_case(tmp_path: Path):
    case = next(path for path in sorted(CASES.glob("*.onnx")) if "bn" in path.stem)
    (tmp_path / case.name).write_bytes(case.read_bytes())
    wrong = check_cases(tmp_path)
    assert {name: wrong[name] for name in OURS} == {name: {} for name in OURS}
