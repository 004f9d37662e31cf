"""The tables of ``explorer bench fusion``: the right cells, and rows that agree with the searches."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from explorer.bench import fusion as bench


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


def test_the_text_says_that_the_models_differ() -> None:
    case = next(c for c in bench.cases() if (c.table, c.network) == ("IV", "resnet18"))
    row = bench._Bench(5, 5).row(case)
    printed = bench.text({"tables": [row], "notes": list(bench.NOTES)})
    assert "Our cost model is not the paper's" in printed
    assert "| IV | resnet18 |" in printed
