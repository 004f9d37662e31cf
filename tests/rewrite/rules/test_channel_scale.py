"""B3 to B6 and B10: scales and shifts by constants fold into Conv, Gemm and MatMul on either side."""

import numpy as np
import pytest

from explorer.graph import load
from tests.rewrite.harness import apply_all, apply_only, candidates, graph_of, ops, reasons

RNG = np.random.default_rng(1)
SCALE, SHIFT = "fold-scale-into-conv", "fold-shift-into-conv"
SCALE_NEXT, SHIFT_NEXT = "fold-scale-into-next-conv", "fold-shift-into-next-conv"
MATMUL, NEXT_MATMUL = "fold-scale-into-matmul", "fold-scale-into-next-matmul"


def draw(*shape, dtype="f4"):
    return (RNG.standard_normal(shape) + 2).astype(dtype)


def after_conv(operation, opset=17, attributes="pads=[1,1,1,1]", dtype="float", **weights):
    text = f"""({dtype}[N,3,8,8] x) => ({dtype}[N,4,?,?] y) {{
        c = Conv<{attributes}>(x, w, b)
        y = {operation}
    }}"""
    np_type = "f2" if dtype == "float16" else "f4"
    defaults = {"w": draw(4, 3, 3, 3, dtype=np_type), "b": draw(4, dtype=np_type)}
    return graph_of(text, opset=opset, **{**defaults, **weights})


# B3 and B4: after a convolution


@pytest.mark.parametrize("operation", ["Mul(c, k)", "Mul(k, c)", "Div(c, k)"])
@pytest.mark.parametrize("shape", [(4, 1, 1), (1, 4, 1, 1), (1,), ()])
def test_scale_after_a_convolution(operation, shape):
    assert ops(apply_only(after_conv(operation, k=draw(*shape)), SCALE)) == {"Conv": 1}


@pytest.mark.parametrize("operation", ["Add(c, k)", "Add(k, c)", "Sub(c, k)", "Sub(k, c)"])
@pytest.mark.parametrize("shape", [(4, 1, 1), (1, 4, 1, 1), ()])
def test_shift_after_a_convolution(operation, shape):
    assert ops(apply_only(after_conv(operation, k=draw(*shape)), SHIFT)) == {"Conv": 1}


def test_shift_keeps_the_weight_tensor_itself():
    graph = after_conv("Add(c, k)", k=draw(4, 1, 1))
    (conv,) = apply_only(graph, SHIFT).nodes
    assert conv.inputs[1].name == "w"


def test_scale_of_a_convolution_without_bias_adds_none():
    graph = graph_of(
        "(float[1,4,8,8] x) => (float[1,4,6,6] y) { c = Conv<group=4>(x, w)\n y = Mul(c, k) }",
        w=draw(4, 1, 3, 3),
        k=draw(4, 1, 1),
    )
    (conv,) = apply_only(graph, SCALE).nodes
    assert len(conv.inputs) == 2


@pytest.mark.parametrize("rule", [SCALE, SHIFT])
def test_transposed_grouped_convolution(rule):
    op = "Mul" if rule == SCALE else "Add"
    graph = graph_of(
        f"""(float[N,6,5,5] x) => (float[N,4,?,?] y) {{
            c = ConvTranspose<group=2, strides=[2,2], output_padding=[1,1]>(x, w)
            y = {op}(c, k)
        }}""",
        w=draw(6, 2, 3, 3),
        k=draw(4, 1, 1),
    )
    assert ops(apply_only(graph, rule)) == {"ConvTranspose": 1}


def test_half_precision():
    assert ops(apply_only(after_conv("Mul(c, k)", dtype="float16", k=draw(4, 1, 1, dtype="f2")), SCALE)) == {
        "Conv": 1
    }


def test_constant_nodes_count_as_constants():
    graph = graph_of(
        """(float[N,3,8,8] x) => (float[N,4,6,6] y) {
            k = Constant<value = float[4,1,1] {1.5, 2.5, -0.5, 3.0}>()
            c = Conv(x, w)
            y = Mul(c, k)
        }""",
        w=draw(4, 3, 3, 3),
    )
    result = apply_only(graph, SCALE)
    assert [node.op_type for node in result.nodes] == ["Conv"]


def test_constant_for_every_position_is_no_bias():
    graph = graph_of(
        "(float[2,3,8,8] x) => (float[2,4,6,6] y) { c = Conv(x, w)\n y = Add(c, k) }",
        w=draw(4, 3, 3, 3),
        k=draw(1, 4, 6, 6),
    )
    assert candidates(graph, SHIFT) == []
    assert reasons(graph, SHIFT) == [
        "'k' of shape [1, 4, 6, 6] varies along an axis of 'c' that is not the channel axis"
    ]


def test_constant_along_the_width_is_no_bias():
    graph = load("tests/cases/conv_add_broadcasts_on_width.onnx")
    assert candidates(graph, SHIFT) == []
    assert len(reasons(graph, SHIFT)) == 1
    assert "varies along an axis" in reasons(graph, SHIFT)[0]


def test_constant_of_higher_rank_is_refused():
    graph = graph_of(
        "(float[2,3,8,8] x) => (float[1,2,4,6,6] y) { c = Conv(x, w)\n y = Mul(c, k) }",
        w=draw(4, 3, 3, 3),
        k=draw(1, 1, 4, 1, 1),
    )
    assert reasons(graph, SCALE) == [
        "'k' of shape [1, 1, 4, 1, 1] may enlarge the result: the rank of 'c' is 4"
    ]


def test_constant_that_multiplies_one_channel_into_several_is_refused():
    graph = graph_of(
        "(float[2,3,8,8] x) => (float[2,4,6,6] y) { c = Conv(x, w)\n y = Mul(c, k) }",
        w=draw(1, 3, 3, 3),
        k=draw(4, 1, 1),
    )
    assert reasons(graph, SCALE) == ["'k' has 4 elements for 1 channels and enlarges"]


def test_division_by_zero_is_refused():
    graph = after_conv("Div(c, k)", k=np.array([1, 0, 2, 3], "f4").reshape(4, 1, 1))
    assert reasons(graph, SCALE) == ["'k' holds a zero or a value without a reciprocal"]


def test_constant_divided_by_the_convolution_is_something_else():
    assert candidates(after_conv("Div(k, c)", k=draw(4, 1, 1)), SCALE) == []


def test_weight_that_callers_may_override_is_refused():
    text = """(float[1,3,8,8] x, float[4,1,1] k = {1, 2, 3, 4}) => (float[1,4,6,6] y) {
        c = Conv(x, w)
        y = Mul(c, k)
    }"""
    graph = graph_of(text, w=draw(4, 3, 3, 3))
    assert candidates(graph, SCALE) == []
    expected = "'k' is a graph input with a default that callers may override, not a constant"
    assert reasons(graph, SCALE) == [expected]


def test_bias_computed_at_run_time_is_refused():
    graph = graph_of(
        "(float[1,3,8,8] x, float[4] r) => (float[1,4,6,6] y) { b = Relu(r)\n c = Conv(x, w, b)\n y = Mul(c, k) }",
        w=draw(4, 3, 3, 3),
        k=draw(4, 1, 1),
    )
    assert reasons(graph, SCALE) == ["bias 'b' is computed at run time, not a constant"]


def test_residual_sum_is_no_candidate_and_no_near_miss():
    graph = graph_of(
        "(float[1,4,8,8] x) => (float[1,4,8,8] y) { c = Conv(x, w)\n y = Add(c, x) }", w=draw(4, 4, 1, 1)
    )
    assert candidates(graph, SHIFT) == []
    assert reasons(graph, SHIFT) == []


def test_unknown_rank_is_refused():
    graph = graph_of(
        "(float[] x) => (float[] y) { c = Conv(x, w)\n y = Mul(c, k) }", w=draw(4, 3, 3, 3), k=draw(4, 1, 1)
    )
    assert candidates(graph, SCALE) == []
    assert reasons(graph, SCALE) == [
        "'k' of shape [4, 1, 1] may enlarge the result: the rank of 'c' is unknown"
    ]


def test_empty_batch_is_refused():
    graph = graph_of(
        "(float[0,3,8,8] x) => (float[0,4,6,6] y) { c = Conv(x, w)\n y = Mul(c, k) }",
        w=draw(4, 3, 3, 3),
        k=draw(4, 1, 1),
    )
    assert reasons(graph, SCALE) == ["'y' is empty (shape [0, 4, 6, 6])"]


def test_old_broadcasting_is_refused():
    graph = after_conv("Mul<broadcast=1, axis=1>(c, k)", opset=6, k=draw(4))
    assert candidates(graph, SCALE) == []


def test_folding_twice_takes_fresh_names():
    graph = after_conv(
        "Mul(c, k)\n z = Add(y, j)\n q = Mul(z, i)", k=draw(4, 1, 1), j=draw(4, 1, 1), i=draw()
    )
    graph = apply_all(graph, SCALE)
    assert ops(apply_all(apply_all(graph, SHIFT), SCALE))["Conv"] == 1


def test_shift_after_gemm():
    graph = graph_of(
        "(float[N,6] x) => (float[N,4] y) { c = Gemm<transB=1, alpha=0.5, beta=2.0>(x, w, b)\n y = Sub(k, c) }",
        w=draw(4, 6),
        b=draw(4),
        k=draw(1, 4),
    )
    (gemm,) = apply_only(graph, SHIFT).nodes
    assert gemm.attributes.get_float("beta", 1.0) == 1.0


# B5: before a convolution


@pytest.mark.parametrize("operation", ["Mul(x, k)", "Mul(k, x)", "Div(x, k)"])
@pytest.mark.parametrize("groups", [1, 2])
def test_scale_before_a_padded_convolution(operation, groups):
    graph = graph_of(
        f"""(float[N,4,8,8] x) => (float[N,6,?,?] y) {{
            s = {operation}
            y = Conv<group={groups}, auto_pad="SAME_LOWER", strides=[2,2]>(s, w, b)
        }}""",
        k=draw(4, 1, 1),
        w=draw(6, 4 // groups, 3, 3),
        b=draw(6),
    )
    assert ops(apply_only(graph, SCALE_NEXT)) == {"Conv": 1}


def test_scale_before_a_transposed_convolution():
    graph = graph_of(
        "(float[N,4,5,5] x) => (float[N,6,?,?] y) { s = Mul(x, k)\n y = ConvTranspose<group=2>(s, w) }",
        k=draw(1, 4, 1, 1),
        w=draw(4, 3, 3, 3),
    )
    assert ops(apply_only(graph, SCALE_NEXT)) == {"ConvTranspose": 1}


@pytest.mark.parametrize("operation", ["Add(x, k)", "Sub(x, k)", "Sub(k, x)"])
def test_shift_before_a_convolution_without_pads(operation):
    graph = graph_of(
        f"(float[N,4,8,8] x) => (float[N,6,?,?] y) {{ s = {operation}\n y = Conv<group=2, strides=[2,1]>(s, w) }}",
        k=draw(4, 1, 1),
        w=draw(6, 2, 3, 3),
    )
    assert ops(apply_only(graph, SHIFT_NEXT)) == {"Conv": 1}


def test_shift_before_padding_is_refused():
    graph = graph_of(
        "(float[N,4,8,8] x) => (float[N,6,8,8] y) { s = Add(x, k)\n y = Conv<pads=[1,1,1,1]>(s, w) }",
        k=draw(4, 1, 1),
        w=draw(6, 4, 3, 3),
    )
    assert reasons(graph, SHIFT_NEXT) == ["the convolution pads with zeros, which the shift would not reach"]


@pytest.mark.parametrize(
    ("operation", "following", "rule"),
    [
        ("Mul(x, k)", "Conv(s, w)", SCALE_NEXT),
        ("Sub(k, x)", "Conv(s, w)", SHIFT_NEXT),
    ],
)
def test_constant_that_may_turn_one_channel_into_several_is_refused(operation, following, rule):
    """With C = 1 the product has 4 channels and runs; folded it would not."""
    graph = graph_of(
        f"(float[N,C,8,8] x) => (float[N,2,6,6] y) {{ s = {operation} y = {following} }}",
        k=draw(4, 1, 1),
        w=draw(2, 4, 3, 3),
    )
    assert candidates(graph, rule) == []
    assert reasons(graph, rule) == ["'x' is not known to have 4 channels; if it has one, 's' is larger"]


def test_one_number_for_an_unknown_number_of_channels():
    graph = graph_of(
        "(float[N,C,8,8] x) => (float[N,2,6,6] y) { s = Mul(x, k) y = Conv(s, w) }",
        k=draw(1),
        w=draw(2, 4, 3, 3),
    )
    assert len(candidates(graph, SCALE_NEXT)) == 1


def test_gain_that_may_enlarge_a_row_is_refused():
    graph = graph_of(
        "(float[N,K] x) => (float[N,2] y) { s = Mul(x, k) y = MatMul(s, w) }", k=draw(4), w=draw(4, 2)
    )
    assert reasons(graph, NEXT_MATMUL) == [
        "'x' is not known to have 4 channels; if it has one, 's' is larger"
    ]


def test_scale_that_is_a_graph_output_is_refused():
    graph = graph_of(
        "(float[1,4,8,8] x) => (float[1,6,6,6] y, float[1,4,8,8] s) { s = Mul(x, k)\n y = Conv(s, w) }",
        k=draw(4, 1, 1),
        w=draw(6, 4, 3, 3),
    )
    assert reasons(graph, SCALE_NEXT) == ["'s', inside the pattern, is a graph output"]


# B6: after a product


@pytest.mark.parametrize(
    "body",
    [
        "p = MatMul(x, w)\n y = Mul(p, k)",
        "p = MatMul(x, w)\n q = Add(b, p)\n y = Mul(k, q)",
        "p = MatMul(x, w)\n q = Add(p, b)\n y = Div(q, k)",
    ],
)
@pytest.mark.parametrize("shape", [(4,), (1, 4), ()])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_scale_after_a_product(body, shape, dtype):
    kind = "f8" if dtype == "double" else "f4"
    weights = {"w": draw(6, 4, dtype=kind), "b": draw(4, dtype=kind), "k": draw(*shape, dtype=kind)}
    graph = graph_of(f"({dtype}[N,3,6] x) => ({dtype}[N,3,4] y) {{ {body} }}", **weights)
    result = apply_only(graph, MATMUL)
    assert {op: n for op, n in ops(result).items() if op in {"Mul", "Div"}} == {}


def test_scale_after_gemm_keeps_its_factors():
    graph = graph_of(
        "(float[6,N] x) => (float[N,4] y) { c = Gemm<transA=1, alpha=0.5>(x, w, b)\n y = Div(c, k) }",
        w=draw(6, 4),
        b=draw(4),
        k=draw(4),
    )
    (gemm,) = apply_only(graph, MATMUL).nodes
    assert gemm.attributes.get_float("alpha", 1.0) == 0.5


def test_product_of_two_activations_is_refused():
    graph = graph_of(
        "(float[2,3,6] x, float[2,6,4] z) => (float[2,3,4] y) { p = MatMul(x, z)\n y = Mul(p, k) }", k=draw()
    )
    assert reasons(graph, MATMUL) == ["right operand 'z' is a graph input, not a constant"]


def test_batched_weight_is_refused():
    graph = graph_of(
        "(float[2,3,6] x) => (float[2,3,4] y) { p = MatMul(x, w)\n y = Mul(p, k) }", k=draw(), w=draw(2, 6, 4)
    )
    assert reasons(graph, MATMUL) == ["right operand 'w' has rank 3, not 2"]


def test_factor_per_row_is_refused():
    graph = graph_of(
        "(float[4,6] x) => (float[4,4] y) { p = MatMul(x, w)\n y = Mul(p, k) }", w=draw(6, 4), k=draw(4, 1)
    )
    assert reasons(graph, MATMUL) == [
        "'k' of shape [4, 1] varies along an axis of 'p' that is not the channel axis"
    ]


# B10 for norms written as primitives: before products


def test_gain_moves_into_every_product_that_reads_it():
    graph = graph_of(
        """(float[N,3,6] x) => (float[N,3,4] q, float[N,3,5] k) {
            s = Mul(gain, x)
            q = MatMul(s, w1)
            p = MatMul(s, w2)
            k = Add(p, b)
        }""",
        gain=draw(6),
        w1=draw(6, 4),
        w2=draw(6, 5),
        b=draw(5),
    )
    assert ops(apply_only(graph, NEXT_MATMUL)) == {"MatMul": 2, "Add": 1}


def test_offset_moves_into_the_biases():
    graph = graph_of(
        """(float[N,3,6] x) => (float[N,3,4] q, float[N,3,5] k) {
            s = Sub(x, c)
            q = MatMul(s, w1)
            p = MatMul(s, w2)
            k = Add(p, b)
        }""",
        c=draw(6),
        w1=draw(6, 4),
        w2=draw(6, 5),
        b=draw(5),
    )
    assert ops(apply_only(graph, "fold-shift-into-next-matmul")) == {"MatMul": 2, "Add": 2}


def test_transposed_input_of_gemm_is_refused():
    graph = graph_of(
        "(float[6,6] x) => (float[6,4] y) { s = Mul(x, k)\n y = Gemm<transA=1>(s, w) }",
        k=draw(6),
        w=draw(6, 4),
    )
    assert reasons(graph, NEXT_MATMUL) == ["'s' is transposed by the product"]


def test_integers_are_refused():
    graph = graph_of(
        "(int32[4,6] x) => (int32[4,4] y) { p = MatMul(x, w)\n y = Mul(p, k) }",
        w=np.ones((6, 4), "i4"),
        k=np.array(3, "i4"),
    )
    assert reasons(graph, MATMUL) == [
        "'y' has element type int32; the rule handles bfloat16, double, float, float16"
    ]


def test_inside_a_loop_body():
    graph = graph_of(
        """(float[2,4] x, int64 trips) => (float[2,4] y) {
            go = Constant<value = bool {1}>()
            y = Loop(trips, go, x) <
                body = body (int64 i, bool cond, float[2,4] state) => (bool again, float[2,4] next) {
                    again = Identity(cond)
                    p = MatMul(state, w)
                    next = Mul(p, k)
                }
            >
        }""",
        w=draw(4, 4) / 8,
        k=draw(4),
    )
    assert ops(apply_only(graph, MATMUL)) == {"Loop": 1, "Identity": 1, "MatMul": 1}
