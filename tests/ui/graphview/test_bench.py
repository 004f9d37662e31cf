from __future__ import annotations

import sys

import pytest

from explorer.bench import view as bench
from explorer.errors import InputError
from explorer.ui.graphview import Kind


def test_the_synthetic_graph_is_always_the_same() -> None:
    scene = bench.synthetic_scene(300)
    assert scene == bench.synthetic_scene(300)
    assert sum(node.kind is Kind.OP for node in scene.nodes) == 300
    assert all(edge.source < edge.target for edge in scene.edges)
    assert {edge.target for edge in scene.edges} == set(range(1, 301))


def test_without_playwright_the_benchmark_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "playwright.sync_api", None)
    monkeypatch.setattr(bench, "load", lambda name: name)
    monkeypatch.setattr(bench, "describe", lambda graph: graph)
    monkeypatch.setattr(bench, "scene_of", lambda summary: bench.synthetic_scene(3))
    with pytest.raises(InputError, match="pip install playwright"):
        bench.run()
