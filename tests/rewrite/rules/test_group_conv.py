"""C7: fewer, wider groups of a grouped convolution, and back."""

import numpy as np
import pytest

from explorer.rewrite import all_rules
from tests.rewrite.harness import (
    apply_checked,
    apply_only,
    assert_inverse_restores,
    candidates,
    graph_of,
    reasons,
)

MERGE, UNMERGE = "merge-conv-groups", "unmerge-conv-groups"
RNG = np.random.default_rng(15)


def draw(*shape, dtype="f4"):
    return RNG.standard_normal(shape).astype(dtype)


def grouped(groups, weight, bias=None, attributes=""):
    inputs = "x, w" if bias is None else "x, w, b"
    text = f"""(float[N,{weight.shape[1] * groups},8,8] x) => (float[N,{weight.shape[0]},?,?] y) {{
        y = Conv<group={groups}{attributes}>({inputs})
    }}"""
    return graph_of(text, w=weight, **({} if bias is None else {"b": bias}))


@pytest.mark.parametrize("factor", [2, 4])
def test_merged_and_separated_again(factor):
    graph = grouped(8, draw(16, 3, 3, 3), draw(16), ", pads=[1,0,1,2], strides=[2,1]")
    found = {candidate.variant: candidate for candidate in candidates(graph, MERGE)}
    assert set(found) == {"x2", "x4"}
    candidate = found[f"x{factor}"]
    assert_inverse_restores(graph, candidate)
    (conv,) = apply_checked(graph, candidate).nodes
    assert conv.attributes.get_int("group") == 8 // factor


def test_depthwise_with_a_multiplier():
    graph = grouped(6, draw(12, 1, 3, 3))
    assert [candidate.variant for candidate in candidates(graph, MERGE)] == ["x2"]
    apply_only(graph, MERGE)


def test_odd_number_of_groups_is_refused():
    graph = grouped(3, draw(6, 2, 3, 3))
    assert reasons(graph, MERGE) == ["3 groups are divisible neither by 2 nor by 4"]


def test_dense_convolution_is_something_else():
    graph = grouped(1, draw(6, 2, 3, 3))
    assert candidates(graph, MERGE) == []
    assert reasons(graph, MERGE) == []


def test_variable_weight_is_refused():
    graph = graph_of("(float[1,4,8,8] x, float[4,2,3,3] w) => (float[1,4,6,6] y) { y = Conv<group=2>(x, w) }")
    assert reasons(graph, MERGE) == ["weight 'w' is a graph input, not a constant"]


def test_only_zero_blocks_separate_groups():
    weight = draw(4, 4, 3, 3)
    assert candidates(grouped(1, weight), UNMERGE) == []
    weight[:2, 2:] = 0
    assert candidates(grouped(1, weight), UNMERGE) == []
    weight[2:, :2] = 0
    graph = grouped(1, weight)
    found = candidates(graph, UNMERGE)
    assert [candidate.variant for candidate in found] == ["x2"]
    (conv,) = apply_checked(graph, found[0]).nodes
    np.testing.assert_array_equal(conv.inputs[1].const_value.numpy()[2:], weight[2:, 2:])


def test_zeros_times_infinity_make_both_opt_in():
    assert not all_rules()[MERGE].default
    assert not all_rules()[UNMERGE].default
