"""``explorer fuse`` as a stranger uses it."""

from __future__ import annotations

import onnx
import pytest

from explorer.cli import main
from explorer.commands import BENCHMARKS
from explorer.fusion import PlanFile, fusion_network, make_scheme
from explorer.graph import load
from tests.models import CASES, model
from tests.test_cli import fails, run_json

DYNAMIC = """(float[N,2,8,8] x) => (float[N,2,8,8] y) { r = Relu(x) y = Sigmoid(r) }"""
KEYS = {
    "groups", "removed", "dram_bytes", "layer_by_layer_bytes", "optimum_bytes", "optimum_proved",
    "gap_ratio", "invalid_met", "rectified", "plans", "seconds",
}  # fmt: skip


def test_resnet18_at_128_kb_has_the_known_optimum(capsys):
    data = run_json(capsys, "fuse", "resnet18", "--scheme", "lbdf", "--buffer-kb", "128", "--search", "exact")
    assert set(data) >= KEYS
    assert data["dram_bytes"] == data["optimum_bytes"] == 5973.75 * 1024
    assert data["optimum_proved"] is True
    assert data["gap_ratio"] == 0
    assert len(data["removed"]) == 14
    assert data["layer_by_layer_bytes"] > data["dram_bytes"]
    assert data["explainer"] == "none"
    assert max(group["buffer_bytes"] for group in data["groups"]) < 128 * 1024
    assert sum(group["dram_bytes"] for group in data["groups"]) == data["dram_bytes"]


@pytest.mark.parametrize("search", ["rs", "ls", "nsga2", "greedy"])
def test_searches_stay_above_the_optimum_and_repeat(capsys, search):
    argv = [
        "fuse",
        "squeezenet1_1",
        "--buffer-kb",
        "128",
        "--search",
        search,
        "--budget",
        "40",
        "--seed",
        "3",
    ]
    first, second = run_json(capsys, *argv), run_json(capsys, *argv)
    assert first["groups"] == second["groups"]
    assert first["plans"] == (1 if search == "greedy" else 40)
    assert first["gap_ratio"] == first["dram_bytes"] / first["optimum_bytes"] - 1 >= 0
    assert first["optimum_bytes"] == 2394.734375 * 1024


def test_element_size_scales_a_plan_that_fits_anyway(capsys):
    sizes = [
        run_json(capsys, "fuse", "squeezenet1_1", "--buffer-kb", "1e6", "--element-bytes", size)["dram_bytes"]
        for size in ("1", "2", "4")
    ]
    assert sizes == [sizes[0], 2 * sizes[0], 4 * sizes[0]]


def test_a_plan_written_can_be_read_again(capsys, tmp_path):
    out = tmp_path / "folder" / "plan.json"
    data = run_json(capsys, "fuse", "resnet18", "--buffer-kb", "256", "--out", str(out))
    assert data["out"] == str(out)
    scheme = make_scheme("lbdf", fusion_network(load("resnet18")), 256)
    plan = PlanFile.read(out).plan(scheme)
    assert plan.dram_bytes == data["dram_bytes"]
    assert len(plan.masks) == len(data["groups"])


def test_a_plan_that_is_given_is_weighed(capsys, tmp_path):
    out = str(tmp_path / "plan.json")
    searched = run_json(capsys, "fuse", "resnet18", "--buffer-kb", "128", "--search", "greedy", "--out", out)
    given = run_json(capsys, "fuse", "resnet18", "--plan", out)
    assert given["search"] == "given"
    assert given["groups"] == searched["groups"]
    assert (given["dram_bytes"], given["buffer_kb"]) == (searched["dram_bytes"], 128)
    larger = run_json(capsys, "fuse", "resnet18", "--plan", out, "--buffer-kb", "512")
    assert larger["optimum_bytes"] < larger["dram_bytes"]
    assert main(["fuse", "resnet18", "--plan", out]) == 0
    assert "the plan was given, not searched for" in capsys.readouterr().out


def test_a_plan_that_cannot_be_used_gets_one_sentence(capsys, tmp_path):
    out = str(tmp_path / "plan.json")
    run_json(capsys, "fuse", "squeezenet1_1", "--out", out)
    assert "made for 'squeezenet1_1', not for 'resnet18'" in fails(capsys, "fuse", "resnet18", "--plan", out)
    assert "leave out --plan or --search" in fails(
        capsys, "fuse", "squeezenet1_1", "--plan", out, "--search", "ls"
    )
    assert "split it" in fails(capsys, "fuse", "squeezenet1_1", "--plan", out, "--buffer-kb", "64")
    (tmp_path / "plan.json").write_text("[1, 2")
    assert "is not a fusion plan: it is not valid JSON" in fails(capsys, "fuse", "resnet18", "--plan", out)
    (tmp_path / "plan.json").write_text("[1, 2]")
    assert "must be a JSON object" in fails(capsys, "fuse", "resnet18", "--plan", out)
    assert "cannot be read" in fails(capsys, "fuse", "resnet18", "--plan", str(tmp_path / "none.json"))


def test_sizes_of_dimensions_are_written_with_the_plan(capsys, tmp_path):
    path, out = str(tmp_path / "dynamic.onnx"), str(tmp_path / "plan.json")
    onnx.save(model(DYNAMIC), path)
    searched = run_json(capsys, "fuse", path, "--dim", "N=3", "--out", out)
    assert run_json(capsys, "fuse", path, "--plan", out)["dram_bytes"] == searched["dram_bytes"]


def test_the_lines_say_unit_source_gap_and_removed_operations(capsys):
    assert main(["fuse", "resnet18", "--buffer-kb", "128"]) == 0
    text = capsys.readouterr().out
    assert "5,973.75 KB" in text
    assert "KB = 1024 bytes, predicted" in text
    assert "gap to the optimum: 0.00% of 5,973.75 KB (proved, ideals)" in text
    assert "14 operations fit no group, left out of all totals" in text
    assert "n68 Gemm: its weights alone" in text


def test_unknown_dims_are_named_and_can_be_given(capsys, tmp_path):
    path = str(tmp_path / "dynamic.onnx")
    onnx.save(model(DYNAMIC), path)
    assert "--dim N=1" in fails(capsys, "fuse", path)
    data = run_json(capsys, "fuse", path, "--dim", "N=3", "--buffer-kb", "64")
    assert data["dram_bytes"] == 2 * (3 * 2 * 8 * 8) * 2


def test_a_shape_behind_an_unknown_operator_can_be_given(capsys, tmp_path):
    case = str(CASES / "unknown_custom_op.onnx")
    told = fails(capsys, "fuse", case)
    assert "--shape f=1x8x8" in told
    out = str(tmp_path / "plan.json")
    data = run_json(capsys, "fuse", case, "--shape", "f=1x4x4", "--out", out)
    assert data["dram_bytes"] > 0
    assert run_json(capsys, "fuse", case, "--plan", out)["dram_bytes"] == data["dram_bytes"]
    assert "write sizes like N=1" in fails(capsys, "fuse", case, "--shape", "f=big")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["mobilenet_v3_small", "--scheme", "brr"], "squeeze-and-excite"),
        (["resnet18", "--buffer-kb", "0"], "holds nothing"),
        (["resnet18", "--buffer-kb", "nan"], "finite number"),
        (["resnet18", "--buffer-kb", "much"], "buffer-kb"),
        (["resnet18", "--dim", "Q=1"], "no unknown dimension 'Q'"),
        (["resnet18", "--element-bytes", "3"], "invalid choice"),
        (["resnet18", "--explainer", "gnne"], "gnne"),
        (["resnet18", "--search", "magic"], "magic"),
        (["resnet18", "--budget", "0"], "at least 1"),
        (["resnet18", "--time-limit", "0"], "more than 0"),
        (["nope"], "neither a file nor a sample"),
        (["resnet18", "--out", "/proc/nope/plan.json"], "cannot be written"),
    ],
)
def test_bad_input_gets_one_sentence(capsys, argv, words):
    assert words in fails(capsys, "fuse", *argv)


def test_the_benchmarks_of_fusion_and_rules_can_be_started():
    assert BENCHMARKS["fusion"] == "explorer.bench.fusion"
    assert BENCHMARKS["rules"] == "explorer.bench.rules"
