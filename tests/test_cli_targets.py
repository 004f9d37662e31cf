"""Commands about targets, on small models."""

from __future__ import annotations

import json

import pytest

from explorer.cli import main
from tests.models import CASES
from tests.test_cli import fails, run_json

CASE = str(CASES / "conv_shared_weight_two_bn.onnx")
DISABLE = "ort:level=disable,threads=1"


def test_a_profile_lists_kernels_nodes_and_rates(capsys):
    found = run_json(capsys, "profile", CASE, "--target", DISABLE)
    assert found["target"] == DISABLE
    assert found["source"] == "MEASURED"
    assert set(found["kernels"][0]) >= {"nodes", "ns", "low_ns", "high_ns", "flops", "bytes", "gflops_per_s"}
    shares = [kernel["share"] for kernel in found["kernels"]]
    assert sum(shares) == pytest.approx(1)
    assert found["roofs"] is None


def test_the_top_of_a_profile_is_readable(capsys):
    assert main(["profile", CASE, "--top", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert "GFLOP/s" in lines[1]
    assert "fresh sessions" in lines[-1]


def test_the_runtimes_view_names_fused_nodes_and_absorbed_candidates(capsys):
    found = run_json(capsys, "runtime-view", CASE, "--absorbed")
    assert found["ops"]
    assert set(found) >= {"nodes", "vanished", "unfused", "absorbed"}
    assert set(found["absorbed"].values()) <= {True, False}


def test_candidates_can_be_predicted(capsys):
    found = run_json(capsys, "candidates", CASE, "--predict", "--target", DISABLE)
    predicted = [row["predicted"] for row in found["candidates"] if row["predicted"]]
    assert predicted
    assert {delta["source"] for delta in predicted} == {"PREDICTED"}
    assert all(delta["protocol"].startswith("sum of isolated operator times") for delta in predicted)


def test_the_matrix_has_a_cell_per_row_and_column(capsys):
    found = run_json(
        capsys, "portability", CASE, "--targets", DISABLE, "ort:level=basic", "--budget", "1", "--screening"
    )
    assert len(found["cells"]) == 3 * 2
    assert found["columns"] == [DISABLE, "ort:level=basic,threads=1"]
    assert found["rows"][-1] == f"operator-sum@{DISABLE}"


def test_the_report_is_a_page_beside_the_json(capsys, tmp_path):
    page = tmp_path / "travel.html"
    arguments = ("--targets", DISABLE, "--columns", "ort:level=basic", "--sums", "--budget", "1")
    found = run_json(capsys, "portability", CASE, *arguments, "--screening", "--report", str(page))
    assert found["columns"] == ["ort:level=basic,threads=1"]
    (cell,) = found["cells"]
    text = page.read_text()
    assert "<caption>conv_shared_weight_two_bn</caption>" in text
    assert f" {cell['delta']['ratio']:.3f}</div>" in text


def test_calibration_reports_shares_and_goes_on(capsys, tmp_path):
    record = str(tmp_path / "trials.jsonl")
    arguments = ("calibrate", "--models", CASE, "--pairs", "1", "--planted", "0", "--mode", "screening")
    first = run_json(capsys, *arguments, "--record", record)
    again = run_json(capsys, *arguments, "--record", record)
    assert first["trials"] == again["trials"]
    assert first["pairs"] == 1
    assert first["power"][0]["found"] is None


def test_measurements_leave_and_arrive(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path / "here"))
    run_json(capsys, "profile", CASE)
    written = run_json(capsys, "exchange", "export", str(tmp_path / "out.jsonl"))
    assert written["results"] >= 1
    line = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert line["key"]["environment"]["versions"]
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path / "there"))
    assert (
        run_json(capsys, "exchange", "import", str(tmp_path / "out.jsonl"))["results"] == written["results"]
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("profile", CASE, "--target", "ort:disabled=Nonsense"), "there is no 'Nonsense'"),
        (("profile", CASE, "--device", "board"), "--scheduler"),
        (("portability", CASE, "--targets", "ort", "ort:level=all"), "once"),
        (("portability", CASE, "--targets", "ort", "--report", "travel.pdf"), "ends in .html"),
        (("exchange", "import", "/nowhere.jsonl"), "/nowhere.jsonl"),
        (("calibrate", "--models", "no_such_model"), "no_such_model"),
        (("optimize", CASE, "--scout", "oracle"), "no cost model 'oracle'"),
        (("optimize", CASE, "--scout", "measured"), "predicts"),
    ],
)
def test_bad_input_is_one_line(capsys, arguments, words):
    assert words in fails(capsys, *arguments)


def test_a_search_by_operator_sum_is_confirmed_by_measuring(capsys, tmp_path):
    trajectory = tmp_path / "t.json"
    arguments = ("optimize", CASE, "--cost", "operator-sum", "--budget", "3", "--target", DISABLE)
    found = run_json(capsys, *arguments, "--trajectory", str(trajectory))
    assert found["settings"]["cost"] == "operator-sum"
    assert found["delta"]["source"] == "MEASURED"
    assert {one["delta"]["source"] for one in found["evaluated"]} <= {"PREDICTED"}
    assert all(step["measured"] is None for step in found["steps"])


def test_a_search_may_look_ahead_by_operator_sums(capsys):
    arguments = ("optimize", CASE, "--scout", "operator-sum", "--budget", "2", "--target", DISABLE)
    found = run_json(capsys, *arguments)
    assert found["settings"]["cost"] == "measured"
    assert found["settings"]["scout"] == "operator-sum"
    assert {one["delta"]["source"] for one in found["evaluated"]} == {"MEASURED"}
