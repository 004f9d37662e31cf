"""G6: Slice and Gather above element-wise operators."""

import numpy as np
import pytest

from tests.rewrite.harness import apply_all, apply_only, candidates, graph_of, ops, reasons

RULE = "hoist-slice-through-elementwise"
RNG = np.random.default_rng(0)
BOUNDS = {"b": np.array([1]), "e": np.array([3]), "a": np.array([1])}


@pytest.mark.parametrize("form", ["Relu(x)", "Cast<to=11>(x)", "Clip(x, lo)"])
@pytest.mark.parametrize(
    "cut", ["Slice(h, b, e, a)", "Gather<axis=1>(h, place)", "Gather<axis=-1>(h, places)"]
)
def test_part_is_taken_before_a_function(form, cut):
    graph = graph_of(
        f"(float[N,4] x) => ({'double' if 'Cast' in form else 'float'}[] y) {{ h = {form} y = {cut} }}",
        lo=np.float32(0),
        place=np.array(2),
        places=np.array([3, 0, -1]),
        **BOUNDS,
    )
    result = apply_only(graph, RULE)
    assert result.nodes[-1].op_type == form.split("<")[0].split("(")[0]


@pytest.mark.parametrize("opset", [9, 17])
def test_both_operands_are_cut(opset):
    cut = "Slice(h, b, e, a)" if opset > 9 else "Slice<starts=[1], ends=[3], axes=[1]>(h)"
    graph = graph_of(
        f"(float[2,4] x, float[2,4] z) => (float[2,2] y) {{ h = Add(x, z) y = {cut} }}",
        opset=opset,
        **(BOUNDS if opset > 9 else {}),
    )
    assert ops(apply_only(graph, RULE)) == {"Slice": 2, "Add": 1}


@pytest.mark.parametrize("shape", [(4,), (2, 4), (1, 4), (1, 1), (), (2, 1)])
@pytest.mark.parametrize("cut", ["Slice(h, b, e, a)", "Gather<axis=1>(h, place)"])
def test_constants_are_cut_at_once(shape, cut):
    graph = graph_of(
        f"(float[2,4] x) => (float[] y) {{ h = Mul(x, c) y = {cut} }}",
        c=RNG.standard_normal(shape).astype("f4"),
        place=np.array(2),
        **BOUNDS,
    )
    if "Gather" in cut and len(shape) == 2 and shape[1] == 1:
        assert candidates(graph, RULE) == []
        assert reasons(graph, RULE) == ["'c' may be enlarged along axis 1, which is cut"]
        return
    result = apply_only(graph, RULE)
    constants = [v for v in result.initializers() if v.name.startswith("c")]
    size = (
        int(np.prod(shape))
        if not shape or shape[-1] == 1
        else int(np.prod(shape)) // (2 if "Slice" in cut else 4)
    )
    assert [v.const_value.size for v in constants] == [size]


def test_operand_of_lower_rank_is_cut_along_its_own_axis():
    graph = graph_of(
        "(float[3,2,4] x, float[2,4] z) => (float[3,1,4] y) { h = Add(x, z) y = Slice(h, b, e, a) }", **BOUNDS
    )
    result = apply_only(graph, RULE)
    slices = {n.inputs[0].name: n for n in result.nodes if n.op_type == "Slice"}
    np.testing.assert_array_equal(slices["z"].inputs[3].const_value.numpy(), [0])


def test_operand_without_the_axis_stays_whole():
    graph = graph_of(
        "(float[3,4] x, float[4] z) => (float[2,4] y) { h = Add(x, z) y = Slice(h, b, e) }",
        b=np.array([1]),
        e=np.array([3]),
    )
    assert ops(apply_only(graph, RULE)) == {"Slice": 1, "Add": 1}


def test_several_axes_and_negative_steps():
    graph = graph_of(
        "(float[5,6] x, float[6] z) => (float[] y) { h = Sub(x, z) y = Slice(h, b, e, a, s) }",
        b=np.array([4, -1]),
        e=np.array([0, -7]),
        a=np.array([0, 1]),
        s=np.array([-2, -1]),
    )
    assert ops(apply_only(graph, RULE)) == {"Slice": 2, "Sub": 1}


def test_where_and_comparison():
    graph = graph_of(
        "(bool[2,4] c, float[2,4] x, float[2,1] z) => (float[2,2] y) { h = Where(c, x, z) y = Slice(h, b, e, a) }",
        **BOUNDS,
    )
    assert ops(apply_only(graph, RULE)) == {"Slice": 2, "Where": 1}


@pytest.mark.parametrize(
    ("x", "z", "reason"),
    [
        ("2,M", "2,N", "'x' may be enlarged along axis 1, which is cut"),
        ("2,N", "2,1", "'z' may be enlarged along axis 1, which is cut"),
    ],
)
def test_dims_that_may_be_broadcast_are_refused(x, z, reason):
    graph = graph_of(
        f"(float[{x}] x, float[{z}] z) => (float[] y) {{ h = Add(x, z) y = Slice(h, b, e, a) }}", **BOUNDS
    )
    assert candidates(graph, RULE) == []
    assert reasons(graph, RULE) == [reason]


def test_operator_with_another_reader_is_refused():
    graph = graph_of(
        "(float[2,4] x) => (float[2,2] y, float[2,4] z) { h = Relu(x) y = Slice(h, b, e, a) z = Neg(h) }",
        **BOUNDS,
    )
    assert reasons(graph, RULE) == ["'h', inside the pattern, is also read by an unnamed Neg"]


def test_computed_places_are_refused():
    graph = graph_of(
        "(float[2,4] x, int64[1] b, int64[1] e) => (float[] y) { h = Relu(x) y = Slice(h, b, e) }"
    )
    assert reasons(graph, RULE) == ["the starts of 'y' are not constant"]
    gather = graph_of("(float[2,4] x, int64[3] i) => (float[] y) { h = Relu(x) y = Gather(h, i) }")
    assert candidates(gather, RULE) == []


def test_slice_rises_to_the_top():
    graph = graph_of(
        "(float[2,4] x) => (float[2,2] y) { f = Relu(x) g = Exp(f) h = Neg(g) y = Slice(h, b, e, a) }",
        **BOUNDS,
    )
    result = apply_all(graph, RULE)
    assert [n.op_type for n in result.nodes] == ["Slice", "Relu", "Exp", "Neg"]


def test_inside_a_loop_body():
    graph = graph_of(
        """(int64 n, bool c, float[2,4] x) => (float[2,4] y, float[?,2,2] z) {
            y, z = Loop(n, c, x) <body = b (int64 i, bool ci, float[2,4] v) => (bool co, float[2,4] o, float[2,2] s) {
                co = Identity(ci)
                o = Sin(v)
                h = Exp(v)
                s = Slice(h, b, e, a)
            }>
        }""",
        **BOUNDS,
    )
    assert ops(apply_only(graph, RULE)) == {"Loop": 1, "Identity": 1, "Sin": 1, "Exp": 1, "Slice": 1}
