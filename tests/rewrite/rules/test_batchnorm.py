"""B1, B2 and B8: BatchNormalization into the linear node before or after it, and as Mul + Add."""

import numpy as np
import pytest

from explorer.errors import RewriteError
from explorer.graph import load
from explorer.rewrite import all_rules, apply
from tests.rewrite.harness import (
    apply_all,
    apply_only,
    assert_inverse_restores,
    candidates,
    graph_of,
    ops,
    reasons,
)

RULE = "fold-batchnorm-into-conv"
RNG = np.random.default_rng(0)
STATISTICS = {name: RNG.uniform(0.5, 1.5, 4).astype("f4") for name in ("s", "b", "m", "v")}
WEIGHT = RNG.standard_normal((4, 3, 3, 3)).astype("f4")
CONV_BN = """(float[2,3,8,8] x) => (float[2,4,?,?] y) {
    c = Conv<ATTRIBUTES>(x, w)
    y = BatchNormalization(c, s, b, m, v)
}"""


def conv_bn(attributes="pads=[1,1,1,1]", **weights):
    text = CONV_BN.replace("ATTRIBUTES", attributes)
    return graph_of(text, **{"w": WEIGHT, **STATISTICS, **weights})


def test_conv_and_batchnorm_become_one_conv_with_a_bias():
    result = apply_only(conv_bn(), RULE)
    assert ops(result) == {"Conv": 1}
    (conv,) = result.nodes
    folded = conv.inputs[1].const_value.numpy()
    factor = STATISTICS["s"] / np.sqrt(STATISTICS["v"] + 1e-5)
    np.testing.assert_allclose(folded, WEIGHT * factor[:, None, None, None], rtol=1e-6)
    np.testing.assert_allclose(
        conv.inputs[2].const_value.numpy(), STATISTICS["b"] - factor * STATISTICS["m"], rtol=1e-5
    )


def test_strides_dilations_and_asymmetric_pads_are_kept():
    apply_only(conv_bn("pads=[0,1,2,1], strides=[2,1], dilations=[1,2]"), RULE)


def test_auto_pad_is_kept():
    apply_only(conv_bn('auto_pad="SAME_UPPER"'), RULE)


def test_grouped_convolution():
    grouped = graph_of(
        """(float[1,4,8,8] x) => (float[1,4,6,6] y) {
            c = Conv<group=2>(x, w)
            y = BatchNormalization(c, s, b, m, v)
        }""",
        w=RNG.standard_normal((4, 2, 3, 3)).astype("f4"),
        **STATISTICS,
    )
    assert ops(apply_only(grouped, RULE)) == {"Conv": 1}


def test_existing_bias_is_folded():
    graph = graph_of(
        CONV_BN.replace("ATTRIBUTES", "strides=[1,1]").replace("(x, w)", "(x, w, bias)"),
        w=WEIGHT,
        bias=RNG.standard_normal(4).astype("f4"),
        **STATISTICS,
    )
    apply_only(graph, RULE)


def test_shared_weight_is_copied_not_edited():
    graph = load("tests/cases/conv_shared_weight_two_bn.onnx")
    shared = graph.nodes[0].inputs[1].const_value.numpy().copy()
    result = apply_all(graph, RULE)
    assert ops(result).get("BatchNormalization") is None
    np.testing.assert_array_equal(graph.nodes[0].inputs[1].const_value.numpy(), shared)


def test_second_reader_of_the_convolution_is_refused():
    graph = graph_of(
        """(float[1,3,8,8] x) => (float[1,4,6,6] y, float[1,4,6,6] z) {
            c = Conv(x, w)
            y = BatchNormalization(c, s, b, m, v)
            z = Relu(c)
        }""",
        w=WEIGHT,
        **STATISTICS,
    )
    assert candidates(graph, RULE) == []
    assert reasons(graph, RULE) == ["'c', inside the pattern, is also read by an unnamed Relu"]


def test_convolution_that_is_a_graph_output_is_refused():
    graph = graph_of(
        """(float[1,3,8,8] x) => (float[1,4,6,6] c, float[1,4,6,6] y) {
            c = Conv(x, w)
            y = BatchNormalization(c, s, b, m, v)
        }""",
        w=WEIGHT,
        **STATISTICS,
    )
    assert reasons(graph, RULE) == ["'c', inside the pattern, is a graph output"]


def test_weight_that_is_an_input_is_refused():
    graph = graph_of(
        """(float[1,3,8,8] x, float[4,3,3,3] w) => (float[1,4,6,6] y) {
            c = Conv(x, w)
            y = BatchNormalization(c, s, b, m, v)
        }""",
        **STATISTICS,
    )
    assert reasons(graph, RULE) == ["weight 'w' is a graph input, not a constant"]


def test_training_mode_is_refused():
    graph = graph_of(
        """(float[1,3,8,8] x) => (float[1,4,6,6] y) {
            c = Conv(x, w)
            y, mean, var = BatchNormalization<training_mode=1>(c, s, b, m, v)
        }""",
        w=WEIGHT,
        **STATISTICS,
    )
    assert reasons(graph, RULE) == ["BatchNormalization is in training mode"]


def test_negative_variance_is_refused():
    graph = conv_bn(v=np.array([1, 1, -1, 1], "f4"))
    assert reasons(graph, RULE) == ["variance + epsilon is not positive everywhere"]


def with_statistics(text, channels=4, opset=17, dtype="f4", **weights):
    statistics = {name: RNG.uniform(0.5, 1.5, channels).astype(dtype) for name in ("s", "b", "m", "v")}
    return graph_of(text, opset=opset, **{**statistics, **weights})


def weights_of(*shape, dtype="f4"):
    return RNG.standard_normal(shape).astype(dtype)


# What is particular to old and new opsets


def test_old_training_outputs_are_refused():
    graph = with_statistics(
        """(float[2,3,8,8] x) => (float[2,4,6,6] y) {
            c = Conv(x, w)
            y, m1, v1, m2, v2 = BatchNormalization(c, s, b, m, v)
        }""",
        opset=9,
        w=WEIGHT,
    )
    assert reasons(graph, RULE) == ["BatchNormalization has several outputs, that is, it is in training mode"]


def test_per_activation_statistics_are_refused():
    graph = with_statistics(
        """(float[2,3,8,8] x) => (float[2,4,6,6] y) {
            c = Conv(x, w)
            y = BatchNormalization<spatial=0>(c, s, b, m, v)
        }""",
        opset=7,
        w=WEIGHT,
    )
    assert reasons(graph, RULE) == ["BatchNormalization is not per channel (spatial=0)"]


def test_half_precision_convolution_with_single_precision_statistics():
    text = """(float16[2,3,8,8] x) => (float16[2,4,6,6] y) {
        c = Conv(x, w)
        y = BatchNormalization(c, s, b, m, v)
    }"""
    statistics = {name: array.astype("f2") for name, array in STATISTICS.items()}
    graph = graph_of(text, w=WEIGHT.astype("f2"), **statistics)
    (conv,) = apply_only(graph, RULE).nodes
    assert conv.inputs[1].const_value.numpy().dtype == np.float16
    assert conv.inputs[2].const_value.numpy().dtype == np.float16


def test_fold_that_overflows_is_refused_with_a_reason():
    text = """(float16[2,3,8,8] x) => (float16[2,4,6,6] y) {
        c = Conv(x, w)
        y = BatchNormalization(c, s, b, m, v)
    }"""
    statistics = {name: array.astype("f2") for name, array in STATISTICS.items()}
    statistics["s"] = np.full(4, 60000, "f2")
    graph = graph_of(text, w=np.full((4, 3, 3, 3), 50, "f2"), **statistics)
    (candidate,) = candidates(graph, RULE)
    with pytest.raises(RewriteError, match="a folded weight is too large for float16"):
        apply(graph, candidate, all_rules())


def test_dynamic_batch():
    graph = with_statistics(
        """(float[N,3,8,8] x) => (float[N,4,6,6] y) {
            c = Conv(x, w)
            y = BatchNormalization(c, s, b, m, v)
        }""",
        w=WEIGHT,
    )
    assert ops(apply_only(graph, RULE)) == {"Conv": 1}


def test_inside_the_branches_of_an_if():
    graph = with_statistics(
        """(float[1,3,8,8] x, bool flag) => (float[1,4,6,6] y) {
            y = If(flag) <
                then_branch = then () => (float[1,4,6,6] a) {
                    c = Conv(x, w)
                    a = BatchNormalization(c, s, b, m, v)
                },
                else_branch = else () => (float[1,4,6,6] d) { d = Conv(x, w) }
            >
        }""",
        w=WEIGHT,
    )
    result = apply_only(graph, RULE)
    assert ops(result) == {"If": 1, "Conv": 2}


def test_convolution_outside_of_the_body_is_left_alone():
    graph = with_statistics(
        """(float[1,3,8,8] x, bool flag) => (float[1,4,6,6] y) {
            c = Conv(x, w)
            y = If(flag) <
                then_branch = then () => (float[1,4,6,6] a) { a = BatchNormalization(c, s, b, m, v) },
                else_branch = else () => (float[1,4,6,6] d) { d = Identity(c) }
            >
        }""",
        w=WEIGHT,
    )
    assert candidates(graph, RULE) == []


# The same for ConvTranspose (B1t)

TRANSPOSED = "fold-batchnorm-into-conv-transpose"


@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_convolution_with_a_bias(groups):
    graph = with_statistics(
        f"""(float[2,6,5,5] x) => (float[2,4,?,?] y) {{
            c = ConvTranspose<group={groups}, strides=[2,2]>(x, w, bias)
            y = BatchNormalization(c, s, b, m, v)
        }}""",
        w=weights_of(6, 4 // groups, 3, 3),
        bias=weights_of(4),
    )
    assert ops(apply_only(graph, TRANSPOSED)) == {"ConvTranspose": 1}


def test_transposed_convolution_that_is_captured_is_refused():
    graph = with_statistics(
        """(float[1,3,5,5] x, bool flag) => (float[1,4,7,7] y, float[1,4,7,7] z) {
            c = ConvTranspose(x, w)
            y = BatchNormalization(c, s, b, m, v)
            z = If(flag) <
                then_branch = then () => (float[1,4,7,7] a) { a = Relu(c) },
                else_branch = else () => (float[1,4,7,7] d) { d = Neg(c) }
            >
        }""",
        w=weights_of(3, 4, 3, 3),
    )
    assert reasons(graph, TRANSPOSED) == ["'c', inside the pattern, is also read by an unnamed Relu"]


# The same for products (B1g)

GEMM = "fold-batchnorm-into-gemm"


@pytest.mark.parametrize("transposed", [0, 1])
def test_gemm_in_both_layouts_with_scaling(transposed):
    graph = with_statistics(
        f"""(float[N,6] x) => (float[N,4] y) {{
            c = Gemm<transB={transposed}, alpha=0.5, beta=2.0>(x, w, bias)
            y = BatchNormalization(c, s, b, m, v)
        }}""",
        w=weights_of(4, 6) if transposed else weights_of(6, 4),
        bias=weights_of(1, 4),
    )
    assert ops(apply_only(graph, GEMM)) == {"Gemm": 1}


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        ("c = MatMul(x, w)", {"MatMul": 1, "Add": 1}),
        ("p = MatMul(x, w)\n c = Add(p, bias)", {"MatMul": 1, "Add": 1}),
    ],
)
def test_matmul_with_and_without_a_bias(product, expected):
    graph = with_statistics(
        f"(float[N,6] x) => (float[N,4] y) {{ {product}\n y = BatchNormalization(c, s, b, m, v) }}",
        w=weights_of(6, 4),
        bias=weights_of(4),
    )
    assert ops(apply_only(graph, GEMM)) == expected


def test_double_precision():
    """With a small variance, where a default epsilon in double precision differs from the attribute's by 5e-12."""
    statistics = {name: np.array([0.9, -1.1, 0.7, 1.3]) for name in ("s", "b", "m")}
    graph = graph_of(
        "(double[N,6] x) => (double[N,4] y) { c = MatMul(x, w)\n y = BatchNormalization(c, s, b, m, v) }",
        v=np.array([0.05, 0.06, 0.04, 0.05]),
        w=weights_of(6, 4, dtype="f8"),
        **statistics,
    )
    result = apply_only(graph, GEMM)
    assert result.nodes[0].inputs[1].const_value.numpy().dtype == np.float64


def test_sequence_of_vectors_has_its_channels_elsewhere():
    graph = with_statistics(
        "(float[2,4,6] x) => (float[2,4,5] y) { c = MatMul(x, w)\n y = BatchNormalization(c, s, b, m, v) }",
        w=weights_of(6, 5),
    )
    assert reasons(graph, GEMM) == ["channels are axis 1 of a tensor of rank 3, columns are the last axis"]


def test_bias_that_is_a_matrix_is_refused():
    graph = with_statistics(
        "(float[2,6] x) => (float[2,4] y) { c = Gemm(x, w, bias)\n y = BatchNormalization(c, s, b, m, v) }",
        w=weights_of(6, 4),
        bias=weights_of(2, 4),
    )
    assert reasons(graph, GEMM) == ["bias 'bias' of shape [2, 4] is not one number per output channel"]


# Into the node after it

NEXT = "fold-batchnorm-into-next-conv"
BN_CONV = """(float[N,4,8,8] x) => (float[N,6,?,?] y) {
    n = BatchNormalization(x, s, b, m, v)
    y = Conv<ATTRIBUTES>(n, w)
}"""


@pytest.mark.parametrize("attributes", ["strides=[2,2]", 'auto_pad="VALID"', "dilations=[2,2], group=2"])
def test_into_the_next_convolution_without_pads(attributes):
    groups = 2 if "group" in attributes else 1
    graph = with_statistics(BN_CONV.replace("ATTRIBUTES", attributes), w=weights_of(6, 4 // groups, 3, 3))
    (conv,) = apply_only(graph, NEXT).nodes
    assert len(conv.inputs) == 3


@pytest.mark.parametrize("attributes", ["pads=[1,0,0,0]", 'auto_pad="SAME_UPPER"'])
def test_shift_before_padding_is_refused(attributes):
    graph = with_statistics(BN_CONV.replace("ATTRIBUTES", attributes), w=weights_of(6, 4, 3, 3))
    assert candidates(graph, NEXT) == []
    assert reasons(graph, NEXT) == ["the convolution pads with zeros, which the shift would not reach"]


def test_normalisation_that_does_not_shift_passes_padding():
    zeros = {"b": np.zeros(4, "f4"), "m": -np.zeros(4, "f4")}
    graph = with_statistics(
        BN_CONV.replace("ATTRIBUTES", "pads=[1,1,1,1]"), w=weights_of(6, 4, 3, 3), **zeros
    )
    (conv,) = apply_only(graph, NEXT).nodes
    assert len(conv.inputs) == 2


def test_all_convolutions_that_read_it():
    graph = with_statistics(
        """(float[1,4,8,8] x) => (float[1,6,6,6] y, float[1,5,8,8] z) {
            n = BatchNormalization(x, s, b, m, v)
            y = Conv(n, w1, bias)
            z = Conv(n, w2)
        }""",
        w1=weights_of(6, 4, 3, 3),
        w2=weights_of(5, 4, 1, 1),
        bias=weights_of(6),
    )
    assert ops(apply_only(graph, NEXT)) == {"Conv": 2}


def test_another_reader_is_refused():
    graph = with_statistics(
        """(float[1,4,8,8] x) => (float[1,6,6,6] y, float[1,4,8,8] z) {
            n = BatchNormalization(x, s, b, m, v)
            y = Conv(n, w)
            z = Relu(n)
        }""",
        w=weights_of(6, 4, 3, 3),
    )
    assert reasons(graph, NEXT) == ["'n', inside the pattern, is also read by an unnamed Relu"]


def test_shift_before_a_transposed_convolution_is_refused():
    graph = with_statistics(
        """(float[1,4,8,8] x) => (float[1,6,10,10] y) {
            n = BatchNormalization(x, s, b, m, v)
            y = ConvTranspose(n, w)
        }""",
        w=weights_of(4, 6, 3, 3),
    )
    assert reasons(graph, NEXT) == ["a shift before ConvTranspose is not the same at the border"]


def test_into_the_next_product():
    graph = with_statistics(
        """(float[N,4] x) => (float[N,3] y, float[N,2] z) {
            n = BatchNormalization(x, s, b, m, v)
            y = Gemm<transB=1, alpha=2.0>(n, w1)
            z = MatMul(n, w2)
        }""",
        w1=weights_of(3, 4),
        w2=weights_of(4, 2),
    )
    assert ops(apply_only(graph, "fold-batchnorm-into-next-gemm")) == {"Gemm": 1, "MatMul": 1, "Add": 1}


# As Mul and Add (B8)


def test_as_mul_and_add_and_back():
    graph = with_statistics("(float[N,4,5] x) => (float[N,4,5] y) { y = BatchNormalization(x, s, b, m, v) }")
    result = apply_only(graph, "batchnorm-to-mul-add")
    assert ops(result) == {"Mul": 1, "Add": 1}
    (candidate,) = candidates(result, "mul-add-to-batchnorm")
    assert_inverse_restores(result, candidate)


@pytest.mark.parametrize("text", ["p = Mul(x, c1)\n y = Add(p, c2)", "p = Mul(c1, x)\n y = Add(c2, p)"])
def test_mul_and_add_in_any_order(text):
    graph = graph_of(
        f"(float[N,4,5,5] x) => (float[N,4,5,5] y) {{ {text} }}", c1=weights_of(4, 1, 1), c2=weights_of(1)
    )
    assert ops(apply_only(graph, "mul-add-to-batchnorm")) == {"BatchNormalization": 1}


def test_scale_of_the_last_axis_is_no_batchnorm():
    graph = graph_of(
        "(float[2,4,4] x) => (float[2,4,4] y) { p = Mul(x, c1)\n y = Add(p, c2) }",
        c1=weights_of(4),
        c2=weights_of(4),
    )
    assert candidates(graph, "mul-add-to-batchnorm") == []
    assert reasons(graph, "mul-add-to-batchnorm") == []


def test_two_numbers_are_no_batchnorm():
    graph = graph_of(
        "(float[2,4,4] x) => (float[2,4,4] y) { p = Mul(x, c1)\n y = Add(p, c2) }",
        c1=weights_of(),
        c2=weights_of(),
    )
    assert candidates(graph, "mul-add-to-batchnorm") == []


def test_product_with_another_reader_is_no_batchnorm():
    graph = graph_of(
        "(float[2,4,5] x) => (float[2,4,5] y, float[2,4,5] z) { p = Mul(x, c1)\n y = Add(p, c2)\n z = Relu(p) }",
        c1=weights_of(4, 1),
        c2=weights_of(4, 1),
    )
    assert reasons(graph, "mul-add-to-batchnorm") == [
        "'p', inside the pattern, is also read by an unnamed Relu"
    ]


def test_old_opset_has_no_broadcasting_to_write_it_with():
    graph = with_statistics(
        "(float[2,4,5] x) => (float[2,4,5] y) { y = BatchNormalization<is_test=1>(x, s, b, m, v) }", opset=6
    )
    assert reasons(graph, "batchnorm-to-mul-add") == ["the result needs opset 7, the model imports 6"]
