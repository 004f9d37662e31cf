"""The benchmark of measured greedy search: what it tells, and the page made of it."""

from __future__ import annotations

from math import sqrt
from pathlib import Path

import pytest

from explorer.bench.greedy import row_of, shares, summarise
from explorer.bench.greedy_page import page
from explorer.graph import load, make_feeds
from explorer.runtime import Measurer
from tests.session.planted import TARGET, planted_session, saved_model


def delta(ratio: float, verdict: str) -> dict[str, object]:
    return {"delta": {"ratio": ratio, "low": ratio, "high": ratio, "verdict": verdict}}


def test_the_mean_counts_what_was_left_alone_as_one():
    rows = {"a": delta(0.64, "FASTER"), "b": delta(1.0, "IDENTICAL"), "c": {"failed": "no"}}
    result = summarise(rows, 5, TARGET)
    assert result["geometric_mean_ratio"] == pytest.approx(sqrt(0.64))
    assert (result["kept"], result["slower"]) == (1, [])


def test_a_slower_model_is_named():
    assert summarise({"a": delta(1.2, "SLOWER")}, 5, TARGET)["slower"] == ["a"]


def test_a_row_tells_what_was_compared_kept_and_confirmed():
    with planted_session() as session:
        row = row_of(session, budget=10)
    assert row["nodes"] == [6, 2]
    assert row["compared"][0]["move"].startswith("fold-batchnorm-into-conv")
    assert row["delta"]["verdict"] == "FASTER"
    assert row["delta"]["ratio"] == pytest.approx(20 / 24, rel=1e-3)
    assert row["control"]["verdict"] in {"WITHIN_NOISE", "IDENTICAL"}


def test_the_page_repeats_the_numbers():
    with planted_session() as session:
        row = row_of(session, budget=10)
    text = page(summarise({"blocks": row, "other": {"failed": "no"}}, 10, TARGET))
    assert "| blocks | 6 to 2 | -16.7 % (-16.7 to -16.7), faster |" in text
    assert "Geometric mean -16.7 %; faster on 1 models; slower on: none." in text


def test_shares_add_up_and_begin_with_the_largest(tmp_path: Path):
    graph = load(saved_model(tmp_path))
    with Measurer() as measurer:
        found = shares(measurer.profile(graph, make_feeds(graph), TARGET, rounds=1, budget_s=0.1))
    assert {entry["op"] for entry in found} == {"Conv", "BatchNormalization", "Relu"}
    assert sum(entry["share"] for entry in found) == pytest.approx(1)
    assert found == sorted(found, key=lambda entry: -entry["share"])
    assert {entry["op"]: entry["kernels"] for entry in found}["Conv"] == 2
