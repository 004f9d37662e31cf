"""Seeded inputs: in range, of the right type and size, and the same every time."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.errors import InputError
from explorer.graph import Style, check_feeds, load, make_feeds
from explorer.graph.feeds import CHECK_SIZES
from tests.models import CASES, model, run


def test_a_symbol_has_one_size_everywhere():
    graph = load(model("(float[n,s,8] x, float[1,1,s,t] mask) => (float[n,s,8] y) { y = Relu(x) }"))
    feeds = make_feeds(graph, sizes=CHECK_SIZES[0])
    assert feeds["x"].shape[1] == feeds["mask"].shape[2]
    named = make_feeds(graph, dims={"s": 5})
    assert named["x"].shape[1] == named["mask"].shape[2] == 5


def test_the_same_seed_gives_the_same_arrays_and_another_does_not():
    graph = load("squeezenet1_1")
    first, again, other = (make_feeds(graph, seed)["input"] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert first.shape == (1, 3, 224, 224)


def test_indices_stay_in_the_range_of_what_they_index():
    table = np.arange(12, dtype="f4").reshape(3, 4)
    graph = load(model("(int64[50] i) => (float[50,4] y) { y = Gather(t, i) }", t=table))
    indices = make_feeds(graph)["i"]
    assert set(np.unique(indices)) == {0, 1, 2}


def test_styles_of_floats():
    graph = load(model("(float[100] x) => (float[100] y) { y = Relu(x) }"))
    assert not make_feeds(graph, style=Style.ZEROS)["x"].any()
    assert (make_feeds(graph, style=Style.NEGATIVE)["x"] <= 0).all()
    assert np.abs(make_feeds(graph, style=Style.LARGE)["x"]).max() > 10


def test_strings_and_flags():
    strings = make_feeds(load(CASES / "string_tensors.onnx"))
    assert all(array.dtype == object for array in strings.values())
    flags = [item.feeds["flag"] for item in check_feeds(load(CASES / "if_branches_capture_outer.onnx"))]
    assert {bool(flag) for flag in flags} == {True, False}


def test_dynamic_dims_are_checked_at_two_sizes_and_defaults_are_overridden():
    dynamic = load(model("(float[N,4] x) => (float[N,4] y) { y = Relu(x) }"))
    assert len({item.feeds["x"].shape for item in check_feeds(dynamic)}) == 2
    overridable = load(CASES / "initializer_is_overridable_input.onnx")
    assert sum("W" in item.feeds for item in check_feeds(overridable)) == 1
    assert not any("W" in item.feeds for item in check_feeds(overridable, override=False))


@pytest.mark.parametrize("path", sorted(CASES.glob("*.onnx")), ids=lambda path: path.stem)
def test_every_case_runs_on_made_inputs(path):
    if path.stem == "unknown_custom_op":
        return
    graph = load(path)
    for item in check_feeds(graph):
        assert run(graph, item.feeds)


def test_inputs_that_are_no_tensors_are_refused():
    graph = load(model("(seq(float[2]) x) => (float[n] y) { y = ConcatFromSequence<axis=0>(x) }"))
    with pytest.raises(InputError, match="'x' is not a tensor"):
        make_feeds(graph)


@pytest.mark.parametrize("shape", ["1048576,1048576", "1099511627776,1099511627776"])
def test_inputs_that_fit_into_no_memory_are_refused(shape):
    graph = load(model(f"(float[{shape}] x) => (float[{shape}] y) {{ y = Relu(x) }}"))
    with pytest.raises(InputError, match=r"Input 'x' of shape \[1.*\] would take .* GB, too much"):
        make_feeds(graph)
