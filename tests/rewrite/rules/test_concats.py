"""A7 and G8: Concat and Split that undo each other, nest, or do nothing."""

import numpy as np
import pytest

from explorer.graph import load
from tests.models import case_path
from tests.rewrite.harness import apply_all, apply_only, candidates, graph_of, ops, reasons

TRIVIAL, JOIN, CUT = "eliminate-trivial-concat", "eliminate-concat-of-split", "eliminate-split-of-concat"
NESTED, EMPTY = "merge-concats", "drop-empty-concat-inputs"


def test_concat_of_one_and_split_into_one_disappear():
    graph = graph_of(
        """(float[2,3] x) => (float[2,3] y) {
            h = Concat<axis=1>(x)
            k = Split<axis=0>(h, sizes)
            y = Relu(k)
        }""",
        sizes=np.array([2]),
    )
    result = apply_all(graph, TRIVIAL)
    assert ops(result) == {"Relu": 1}
    assert list(result.initializers()) == []


@pytest.mark.parametrize("axes", [(1, 1), (-1, 1), (1, -1)])
def test_concat_of_all_parts_is_the_whole(axes):
    graph = graph_of(
        f"""(float[N,5] x) => (float[N,5] y) {{
            a, b = Split<axis={axes[0]}>(x, sizes)
            h = Concat<axis={axes[1]}>(a, b)
            y = Relu(h)
        }}""",
        sizes=np.array([2, 3]),
    )
    assert ops(apply_only(graph, JOIN)) == {"Relu": 1}


def test_split_before_opset_13():
    graph = graph_of(
        """(float[2,5] x) => (float[2,5] y) {
            a, b = Split<axis=1, split=[2,3]>(x)
            h = Concat<axis=1>(a, b)
            y = Relu(h)
        }""",
        opset=11,
    )
    assert ops(apply_only(graph, JOIN)) == {"Relu": 1}


def test_split_stays_for_other_readers_of_a_part():
    graph = graph_of("""(float[2,4] x) => (float[2,4] y, float[2,2] z) {
        a, b = Split<axis=1>(x)
        h = Concat<axis=1>(a, b)
        y = Relu(h)
        z = Relu(a)
    }""")
    assert ops(apply_only(graph, JOIN)) == {"Split": 1, "Relu": 2}


@pytest.mark.parametrize("parts", ["b, a", "a, a", "a, b, a"])
def test_parts_in_another_order_are_refused(parts):
    graph = graph_of(f"""(float[2,4] x) => (float[2,?] y) {{
        a, b = Split<axis=1>(x)
        h = Concat<axis=1>({parts})
        y = Relu(h)
    }}""")
    assert candidates(graph, JOIN) == []
    assert reasons(graph, JOIN) == ["the parts of 'x' are not joined all, once and in order"]


def test_parts_joined_along_another_axis_are_refused():
    graph = graph_of("""(float[2,4] x) => (float[4,2] y) {
        a, b = Split<axis=1>(x)
        h = Concat<axis=0>(a, b)
        y = Relu(h)
    }""")
    assert reasons(graph, JOIN) == ["the Split and the Concat have different axes"]


def test_split_into_the_joined_parts_is_the_parts():
    graph = graph_of(
        """(float[2,3] a, float[2,4] b) => (float[2,3] y, float[2,4] z) {
            h = Concat<axis=1>(a, b)
            p, q = Split<axis=1>(h, sizes)
            y = Relu(p)
            z = Relu(q)
        }""",
        sizes=np.array([3, 4]),
    )
    assert ops(apply_only(graph, CUT)) == {"Relu": 2}


def test_parts_that_are_outputs_get_identities_where_they_are_inputs():
    graph = graph_of(
        """(float[2,3] a, float[2,4] b) => (float[2,3] y, float[2,4] z) {
            h = Concat<axis=1>(a, b)
            y, z = Split<axis=1>(h, sizes)
        }""",
        sizes=np.array([3, 4]),
    )
    result = apply_only(graph, CUT)
    assert ops(result) == {"Identity": 2}
    assert [v.name for v in result.outputs] == ["y", "z"]


def test_split_into_other_sizes_is_refused():
    graph = graph_of(
        """(float[2,3] a, float[2,4] b) => (float[2,4] y, float[2,3] z) {
            h = Concat<axis=1>(a, b)
            y, z = Split<axis=1>(h, sizes)
        }""",
        sizes=np.array([4, 3]),
    )
    assert reasons(graph, CUT) == ["the parts [4, 3] are not the joined sizes [3, 4]"]


def test_split_of_dynamic_parts_is_refused():
    graph = graph_of("""(float[N,3] a, float[N,3] b) => (float[?,3] y, float[?,3] z) {
        h = Concat<axis=0>(a, b)
        y, z = Split<axis=0>(h)
    }""")
    assert reasons(graph, CUT) == ["the parts [] are not the joined sizes ['N', 'N']"]


def test_nested_concats_merge_at_every_position():
    graph = graph_of("""(float[1,2] a, float[1,3] b) => (float[1,12] y) {
        h = Concat<axis=1>(a, b)
        k = Concat<axis=-1>(b, a)
        c = Concat<axis=1>(h, a, k)
        y = Relu(c)
    }""")
    assert sorted(c.variant for c in candidates(graph, NESTED)) == ["0", "2"]
    result = apply_all(graph, NESTED)
    assert ops(result) == {"Concat": 1, "Relu": 1}
    assert [v.name for v in result.nodes[0].inputs] == ["a", "b", "a", "b", "a"]


def test_inner_concat_with_another_reader_is_refused():
    graph = graph_of("""(float[1,2] a, float[1,3] b) => (float[1,7] y, float[1,5] z) {
        h = Concat<axis=1>(a, b)
        y = Concat<axis=1>(h, a)
        z = Relu(h)
    }""")
    assert reasons(graph, NESTED) == ["'h', inside the pattern, is also read by an unnamed Relu"]


def test_inner_concat_joined_twice_or_along_another_axis_is_refused():
    twice = graph_of("(float[1,2] a) => (float[1,8] y) { h = Concat<axis=1>(a, a) y = Concat<axis=1>(h, h) }")
    assert reasons(twice, NESTED) == ["'h' is joined twice"]
    other = graph_of("(float[1,2] a) => (float[2,4] y) { h = Concat<axis=1>(a, a) y = Concat<axis=0>(h, h) }")
    assert reasons(other, NESTED) == ["the Concats around 'h' have different axes"]


def test_empty_inputs_are_dropped():
    graph = load(case_path("zero_size_tensors"))
    result = apply_all(graph, EMPTY)
    before, after = (next(n for n in g.nodes if n.op_type == "Concat") for g in (graph, result))
    assert len(after.inputs) < len(before.inputs)
    assert candidates(result, EMPTY) == []


def test_concat_of_dynamic_sizes_keeps_all_inputs():
    graph = graph_of("(float[N,2] a, float[M,2] b) => (float[?,2] y) { y = Concat<axis=0>(a, b) }")
    assert candidates(graph, EMPTY) == []


def test_concats_merge_inside_a_loop_body():
    graph = graph_of("""(int64 n, bool c, float[1,2] x) => (float[1,2] y, float[?,1,4] z) {
        y, z = Loop(n, c, x) <body = b (int64 i, bool ci, float[1,2] a) => (bool co, float[1,2] o, float[1,4] s) {
            co = Identity(ci)
            o = Relu(a)
            h = Concat<axis=1>(a)
            k = Concat<axis=1>(h, a)
            s = Relu(k)
        }>
    }""")
    assert ops(apply_only(graph, NESTED)) == {"Loop": 1, "Identity": 1, "Relu": 2, "Concat": 1}
