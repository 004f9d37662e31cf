"""The heat map as text: ratio, interval and verdict in each cell, what is slower marked, names harmless."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from explorer.runtime import Delta, Source, Verdict
from explorer.search import Step
from explorer.search.portability import Cell, Matrix, Optimised
from explorer.session.matrix_page import matrix_html, matrix_page, mix_percent

ALL, DISABLE = "ort:level=all,threads=1", "ort:level=disable,threads=1"
SUM = f"operator-sum@{ALL}"


def delta(low: float, ratio: float, high: float, verdict: Verdict, target: str) -> Delta:
    return Delta(ratio, low, high, verdict, Source.MEASURED, target, "validated: 10 rounds of 18 samples")


FOUND = delta(0.78, 0.8, 0.82, Verdict.FASTER, ALL)
MATRIX = Matrix(
    rows=(ALL, SUM),
    columns=(ALL, DISABLE),
    models=("net",),
    optimised=(
        Optimised(
            "net", ALL, tuple(Step(f"a:{n}", "fold-a", (n,), None, FOUND, 2) for n in ("n0", "n1")), 7, "f"
        ),
        Optimised("net", SUM, (), 3, "", "it went wrong"),
    ),
    cells=(
        Cell("net", ALL, ALL, FOUND),
        Cell("net", ALL, DISABLE, delta(1.22, 1.25, 1.28, Verdict.SLOWER, DISABLE)),
        Cell("net", SUM, ALL, delta(0.97, 1.0, 1.02, Verdict.WITHIN_NOISE, ALL)),
        Cell("net", SUM, DISABLE, None, "no <b>luck</b>"),
    ),
    settings={"strategy": "greedy", "cells": "validated: 10 rounds of 18 samples"},
)


def cells(text: str) -> list[str]:
    """The text of each cell of the table."""
    found = re.findall(r"<td[^>]*>(.*?)</td>", text)
    return [" ".join(re.sub(r"<[^>]+>", " ", one).split()) for one in found]


def test_each_cell_has_ratio_interval_and_verdict():
    assert cells(matrix_html(MATRIX)) == [
        "▼ 0.800 0.780 … 0.820 faster its own target",
        "▲ 1.250 1.220 … 1.280 slower than unoptimised",
        "≈ 1.000 0.970 … 1.020 within noise",
        "could not be timed",
    ]


def test_colour_follows_the_ratio_and_slower_cells_are_outlined():
    text = matrix_html(MATRIX)
    assert text.count("hm-cell hm-slower") == 1
    assert "--hm-mix:39%;--hm-tone:var(--hm-slower)" in text
    assert "--hm-mix:0%" in text
    assert mix_percent(1.25) == pytest.approx(mix_percent(0.8))
    assert mix_percent(3.0) == 70


def test_what_is_slower_is_listed_with_its_interval_and_each_row_says_what_it_did():
    text = matrix_html(MATRIX)
    claim = "by its own cost the row claims 0.800"
    assert f"net, optimised by {ALL}, on {DISABLE}: <b>1.250 (1.220 … 1.280)</b>; {claim}" in text
    assert f"net, {ALL}: fold-a × 2 <span>(7 comparisons, claims 0.800 by its own cost)</span>" in text
    assert f"net, {SUM}: no result: it went wrong" in text
    harmless = replace(MATRIX, cells=MATRIX.cells[:1])
    assert "No cell is measurably slower than the unoptimised model." in matrix_html(harmless)


def test_a_matrix_that_is_not_full_says_so():
    text = matrix_html(replace(MATRIX, cells=MATRIX.cells[:3]))
    assert "Not measured: 1 of 4." in text
    assert cells(text)[3] == "not measured"
    empty = matrix_html(replace(MATRIX, cells=(), optimised=MATRIX.optimised[:1]))
    assert "1 of 2 searches made; no cell yet." in empty


def test_the_page_is_self_contained_and_names_are_text():
    page = matrix_page(replace(MATRIX, models=("<img src=x>",)))
    assert "<img" not in page
    assert "no &lt;b&gt;luck" in matrix_page(MATRIX)
    assert "default-src 'none'" in page
    assert not re.findall(r"https?://|<script|<link|@import|url\(", page)
    assert "<dd>greedy</dd>" in page


def test_a_target_of_another_version_is_shown_as_it_is_written():
    text = matrix_html(replace(MATRIX, columns=("martian:warp=9", DISABLE)))
    assert "<b>martian:warp=9</b>" in text
