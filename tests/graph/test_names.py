"""Names from strangers' files, quoted in messages."""

from __future__ import annotations

import pytest

from explorer.graph.names import node_label, quoted


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("conv1", "'conv1'"),
        ("", "''"),
        ("größe 层", "'größe 层'"),
        ("a\nb\tc", "'a\\nb\\tc'"),
        ("\x1b[31m", "'\\x1b[31m'"),
        (b"\xff\xfe", "'��'"),
    ],
)
def test_quoted(name: object, shown: str) -> None:
    assert quoted(name) == shown


def test_a_long_name_loses_its_middle() -> None:
    shown = quoted("a" * 60 + "b" * 1_000_000 + "c" * 120)
    assert shown == "'" + "a" * 60 + "..." + "c" * 120 + "'"
    assert quoted("d" * 200) == "'" + "d" * 200 + "'"


def test_node_labels() -> None:
    assert node_label("conv1", "Conv") == "node 'conv1' (Conv)"
    assert node_label("", "Conv", "ai.onnx") == "an unnamed Conv node"
    assert node_label("x", "Gate", "vendor.ops") == "node 'x' (vendor.ops::Gate)"
