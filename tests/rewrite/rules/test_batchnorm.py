"""B1: BatchNormalization into Conv."""

import numpy as np

from explorer.graph import load
from tests.rewrite.harness import apply_all, apply_only, candidates, graph_of, ops, reasons

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
