"""The tables of ``explorer bench fusion``: the right cells, and rows that agree with the searches."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from explorer.bench import fusion as bench
from explorer.bench.fusion_page import page


def test_the_cells_are_those_of_the_papers_tables() -> None:
    cells = bench.cases()
    assert Counter(case.table for case in cells) == {"II": 9, "III": 8, "IV": 8}
    table_2 = {(c.network, c.search): (c.buffer_kb, c.budget, c.paper_mb) for c in cells if c.table == "II"}
    assert table_2["resnet152", "nsga2"] == (256, 5000, 77.205)
    small = {(c.table, c.scheme, c.network): c.paper_mb for c in cells if c.table != "II"}
    assert small["III", "lbdf", "resnet18"] == 5.974
    assert small["IV", "brr", "squeezenet1_1"] == 10.249


def test_a_row_has_spread_over_seeds_beside_optimum_and_paper() -> None:
    case = next(c for c in bench.cases() if (c.table, c.scheme, c.network) == ("III", "lbdf", "resnet18"))
    row = bench._Bench(30, 5).row(case)
    assert len(row["dram_mb"]["values"]) == 5
    assert row["dram_mb"]["min"] <= row["dram_mb"]["mean"] <= row["dram_mb"]["max"]
    assert row["optimum_mb"] == 5.97375
    assert row["optimum_proved"] is True
    assert row["gap_ratio"]["min"] == pytest.approx(row["dram_mb"]["min"] / 5.97375 - 1)
    assert row["largest_group_kb"]["max"] < 128
    json.dumps(row)


def test_baselines_show_that_intervals_are_not_enough() -> None:
    tables = bench._Bench(10, 5)
    tables.optimum("resnet18", "lbdf", 128)
    (row,) = tables.baselines()
    assert row["interval_gap_ratio"] == pytest.approx(0.098, abs=0.0005)
    assert row["removed"] == 14
    assert row["optimum_mb"] <= min(row["greedy_mb"], row["interval_mb"]) < row["layer_by_layer_mb"]


def test_growth_counts_nodes_and_ideals() -> None:
    row = bench._Bench(20, 5).growth("squeezenet1_1")
    assert (row["operations"], row["edges"], row["optimum_proved"]) == (64, 71, True)
    assert set(row["plans_per_second"]) == {"ls", "nsga2", "rs"}


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    """Every section of a result, from few plans."""
    tables = bench._Bench(20, 5)
    cells = [c for c in bench.cases() if (c.network, c.scheme) == ("resnet18", "lbdf")]
    return {
        "tables": [tables.row(case) for case in cells],
        "baselines": tables.baselines(),
        "growth": [tables.growth("resnet18")],
        "bounds": [],
        "seeds": 5,
        "cpu": "a processor",
        "processor_seconds": 90.0,
        "peak_memory_mib": 123.4,
        "notes": list(bench.NOTES),
    }


def test_the_page_has_the_numbers_of_the_result_and_says_that_the_models_differ(result: dict) -> None:
    printed = page(result)
    assert "the two cost models are not identical" in printed
    assert "Our cost model is not the paper's" in printed
    assert "5 seeds per search" in printed
    (row,) = (r for r in result["tables"] if r["table"] == "IV")
    line = next(line for line in printed.splitlines() if "| Random search |" in line)
    assert line.startswith("| resnet18 | LBDF | Random search | ")
    assert f"{row['dram_mb']['mean']:.3f}" in line
    assert "| 5.974 |" in line
    assert "| 6.856 | 6.464 | - |" in line
    assert "## The paper's Table IV: random search, 128 KB, 20 plans" in printed
    assert "| resnet18 | LBDF | 128 | 14 | 19.498 |" in printed
    assert "| resnet18 | 48 | 55 |" in printed
    assert "out of reach" not in printed


def test_a_gap_that_is_not_known_is_called_so(result: dict) -> None:
    bound = {
        "network": "huge",
        "buffer_kb": 256,
        "operations": 9,
        "time_limit_seconds": 60.0,
        "seconds": 60.04,
        "plan_mb": 2.0,
        "bound_mb": 0.0,
        "gap_ratio": None,
        "method": "cp-sat",
    }
    printed = page(result | {"bounds": [bound, bound | {"bound_mb": 1.5, "gap_ratio": 2 / 1.5 - 1}]})
    assert "| huge | 256 | 9 | 60 | 60.0 | 2.000 | 0.000 | unknown |" in printed
    assert "| 1.500 | 33.3% |" in printed
