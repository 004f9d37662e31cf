"""FLOPs, bytes and parameters against numbers worked out by hand and against published ones."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from explorer.graph import Graph, load
from explorer.graph.statistics import (
    elements,
    flops,
    known_flops,
    node_parameters,
    parameters,
    static_dims,
    total_flops,
    traffic_bytes,
    value_bytes,
)
from tests import models


def one(text: str, *, opset: int = 17, domains: dict[str, int] | None = None, **weights: np.ndarray) -> Graph:
    return load(models.model(text, opset=opset, domains=domains, **weights))


def flops_of(text: str, **options) -> int | None:
    graph = one(text, **options)
    return flops(graph.nodes[-1])


def f(*dims: int) -> np.ndarray:
    return np.ones(dims, "f4")


@pytest.mark.parametrize(
    ("text", "weights", "wanted"),
    [
        # outputs 5*6*6, each 3*3*3 products and as many additions
        ("(float[1,3,8,8] x) => (float[1,5,6,6] y) { y = Conv(x, w) }", {"w": f(5, 3, 3, 3)}, 180 * 54),
        (
            "(float[1,3,8,8] x) => (float[1,5,6,6] y) { y = Conv(x, w, b) }",
            {"w": f(5, 3, 3, 3), "b": f(5)},
            180 * 55,
        ),
        ("(float[2,3,8,8] x) => (float[2,5,6,6] y) { y = Conv(x, w) }", {"w": f(5, 3, 3, 3)}, 2 * 180 * 54),
        (
            "(float[1,3,8,8] x) => (float[1,5,4,4] y) { y = Conv<strides=[2,2], pads=[1,1,1,1]>(x, w) }",
            {"w": f(5, 3, 3, 3)},
            80 * 54,
        ),
        (
            '(float[1,3,8,8] x) => (float[1,5,4,4] y) { y = Conv<auto_pad="SAME_UPPER", strides=[2,2]>(x, w) }',
            {"w": f(5, 3, 3, 3)},
            80 * 54,
        ),
        (
            "(float[1,3,8,8] x) => (float[1,5,4,4] y) { y = Conv<dilations=[2,2]>(x, w) }",
            {"w": f(5, 3, 3, 3)},
            80 * 54,
        ),
        # two groups: each output sees 2 of 4 channels
        (
            "(float[1,4,8,8] x) => (float[1,6,6,6] y) { y = Conv<group=2>(x, w) }",
            {"w": f(6, 2, 3, 3)},
            216 * 36,
        ),
        # depthwise
        (
            "(float[1,4,8,8] x) => (float[1,4,6,6] y) { y = Conv<group=4>(x, w) }",
            {"w": f(4, 1, 3, 3)},
            144 * 18,
        ),
        ("(float[1,3,9] x) => (float[1,5,7] y) { y = Conv(x, w) }", {"w": f(5, 3, 3)}, 35 * 18),
        # every input element meets 5*2*2 weights
        (
            "(float[1,3,8,8] x) => (float[1,5,9,9] y) { y = ConvTranspose(x, w) }",
            {"w": f(3, 5, 2, 2)},
            192 * 40,
        ),
        ("(float[2,3] x) => (float[2,4] y) { y = Gemm(x, w) }", {"w": f(3, 4)}, 8 * 6),
        (
            "(float[2,3] x) => (float[2,4] y) { y = Gemm<transB=1>(x, w, b) }",
            {"w": f(4, 3), "b": f(4)},
            8 * 7,
        ),
        ("(float[3,2] x) => (float[2,4] y) { y = Gemm<transA=1>(x, w) }", {"w": f(3, 4)}, 8 * 6),
        ("(float[2,3] x) => (float[2,4] y) { y = MatMul(x, w) }", {"w": f(3, 4)}, 8 * 6),
        ("(float[7,5,2,3] x) => (float[7,5,2,4] y) { y = MatMul(x, w) }", {"w": f(3, 4)}, 280 * 6),
        ("(float[5,2,3] x, float[7,1,3,4] z) => (float[7,5,2,4] y) { y = MatMul(x, z) }", {}, 280 * 6),
        ("(float[3] x) => (float[4] y) { y = MatMul(x, w) }", {"w": f(3, 4)}, 4 * 6),
        ("(float[2,3] x) => (float[2] y) { y = MatMul(x, w) }", {"w": f(3)}, 2 * 6),
        ("(float[3] x) => (float y) { y = MatMul(x, w) }", {"w": f(3)}, 6),
        (
            "(float[1,3,8,8] x) => (float[1,3,4,4] y) { y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x) }",
            {},
            48 * 4,
        ),
        ("(float[1,3,8,8] x) => (float[1,3,6,6] y) { y = AveragePool<kernel_shape=[3,3]>(x) }", {}, 108 * 9),
        ("(float[1,3,8,8] x) => (float[1,3,1,1] y) { y = GlobalAveragePool(x) }", {}, 192),
        ("(float[2,6] x) => (float[2,1] y) { y = ReduceMean<axes=[1]>(x) }", {}, 12),
        ("(float[2,6] x) => (float[2,6] y) { y = Relu(x) }", {}, 12),
        ("(float[2,1] x) => (float[2,6] y) { y = Add(x, w) }", {"w": f(6)}, 12),
        (
            "(float[1,3,4,4] x) => (float[1,3,4,4] y) { y = BatchNormalization(x, s, s, s, s) }",
            {"s": f(3)},
            96,
        ),
        ("(float[2,6] x) => (float[2,6] y) { y = Sigmoid(x) }", {}, 48),
        ("(float[2,6] x) => (float[2,6] y) { y = Softmax(x) }", {}, 60),
        ("(float[2,6] x) => (float[2,6] y) { y = LayerNormalization(x, s) }", {"s": f(6)}, 60),
        ("(float[2,6] x) => (float[6,2] y) { y = Transpose(x) }", {}, 0),
        ("(float[2,6] x) => (float[3,4] y) { y = Reshape(x, s) }", {"s": np.array([3, 4])}, 0),
    ],
    ids=lambda value: value.split("{")[1] if isinstance(value, str) else "",
)
def test_flops_by_hand(text: str, weights: dict[str, np.ndarray], wanted: int) -> None:
    assert flops_of(text, **weights) == wanted


def test_flops_of_runtime_operators() -> None:
    domains = {"com.microsoft": 1}
    product = "(float[3,2] x) => (float[2,4] y) { y = com.microsoft.FusedMatMul<transA=1>(x, w) }"
    assert flops_of(product, domains=domains, w=f(3, 4)) == 8 * 6
    gelu = "(float[2,4] x) => (float[2,4] y) { y = com.microsoft.QuickGelu(x) }"
    assert flops_of(gelu, domains=domains) == 8 * 5
    conv = (
        '(float[1,3,8,8] x) => (float[1,5,6,6] y) { y = com.microsoft.FusedConv<activation="Relu">(x, w, b) }'
    )
    assert flops_of(conv, domains=domains, w=f(5, 3, 3, 3), b=f(5)) == 180 * 55


def test_integer_convolution_has_zero_points_not_a_bias() -> None:
    graph = one(
        "(uint8[1,3,8,8] x) => (int32[1,5,6,6] y) { y = ConvInteger(x, w, z) }",
        w=np.ones((5, 3, 3, 3), "u1"),
        z=np.array(0, "u1"),
    )
    assert total_flops(graph) == 180 * 54
    text = "(uint8[2,3] x) => (int32[2,4] y) { y = MatMulInteger(x, w) }"
    assert flops_of(text, w=np.ones((3, 4), "u1")) == 8 * 6


def test_unknown_stays_unknown() -> None:
    assert flops_of("(float[N,3] x) => (float[N,3] y) { y = Relu(x) }") is None
    assert flops_of("(float[2,K] x, float[K,4] z) => (float[2,4] y) { y = MatMul(x, z) }") is None
    assert flops_of("(float[N,3] x) => (float[3,N] y) { y = Transpose(x) }") == 0
    assert flops_of("(float[4] x) => (float[4] y) { y = vendor.Magic(x) }", domains={"vendor": 1}) is None
    graph = load(models.case_path("unknown_custom_op"))
    assert total_flops(graph) is None
    assert known_flops(graph) > 0


def test_an_operator_of_another_domain_is_not_the_standard_one() -> None:
    assert flops_of("(float[4] x) => (float[4] y) { y = vendor.Relu(x) }", domains={"vendor": 1}) is None


def test_control_flow_depends_on_the_run() -> None:
    for case in ("if_branches_capture_outer", "loop_body_captures_and_passthrough"):
        graph = load(models.case_path(case))
        holder = next(node for node in graph.nodes if node.op_type in {"If", "Loop"})
        assert flops(holder) is None
        assert total_flops(graph) is None
        assert known_flops(graph) > 0


def test_bytes_read_and_written() -> None:
    graph = one("(float[2,3] x) => (float[2,4] y) { y = MatMul(x, w) }", w=f(3, 4))
    assert traffic_bytes(graph.nodes[0]) == 4 * (6 + 12 + 8)
    graph = one("(float[2,3] x) => (float[2,3] y) { y = Add(x, x) }")
    assert traffic_bytes(graph.nodes[0]) == 4 * (6 + 6)  # one operand, read once
    graph = one("(float[2,3] x) => (float[2,3] y) { y = Clip(x, , top) }", top=np.float32(6))
    assert traffic_bytes(graph.nodes[0]) == 4 * (6 + 1 + 6)
    assert traffic_bytes(one("(float[N] x) => (float[N] y) { y = Relu(x) }").nodes[0]) is None


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("float", 12),
        ("double", 24),
        ("float16", 6),
        ("bfloat16", 6),
        ("int8", 3),
        ("bool", 3),
        ("int64", 24),
        ("int4", 2),
        ("uint2", 1),
    ],
)
def test_bytes_of_element_types(kind: str, wanted: int) -> None:
    proto = models.model(
        "(float[3] x) => (float[3] y) { y = Identity(x) }", opset=21 if kind != "uint2" else 25, ir_version=11
    )
    number = TensorProto.DataType.Value(kind.upper())
    for value in (proto.graph.input[0], proto.graph.output[0]):
        value.type.tensor_type.elem_type = number
    assert value_bytes(load(proto).inputs[0]) == wanted


def test_sizes_of_values_that_have_none() -> None:
    graph = load(models.case_path("string_tensors"))
    assert value_bytes(graph.inputs[0]) is None
    assert elements(graph.inputs[0]) == 3
    assert (elements(None), value_bytes(None), static_dims(None)) == (0, 0, None)
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [4]))
    proto = models.model(
        "(float[4] x) => (float[4] y) { s = SequenceConstruct(x, x) y = SequenceAt(s, i) }", i=np.array(0)
    )
    proto.graph.value_info.append(helper.make_value_info("s", kind))
    sequence = load(proto).nodes[0].outputs[0]
    assert elements(sequence) is None
    assert value_bytes(sequence) is None


def test_zero_sized_tensors_cost_nothing() -> None:
    graph = load(models.case_path("zero_size_tensors"))
    assert total_flops(graph) == 0
    assert [value_bytes(output) for output in graph.nodes[0].outputs] == [0]
    assert flops_of("(float[0,3] x) => (float[0,4] y) { y = MatMul(x, w) }", w=f(3, 4)) == 0


def test_parameters_count_each_float_tensor_once() -> None:
    text = """(float[2,3] x) => (float[2,3] y) {
        a = MatMul(x, w) b = MatMul(a, w) c = Constant<value = float[3] {1, 2, 3}>() d = Add(b, c)
        s = Constant<value_ints = [2, 3]>() y = Reshape(d, s)
    }"""
    graph = one(text, w=f(3, 3), unused=np.ones(5, "i8"))
    assert parameters(graph) == 9 + 3
    assert [node_parameters(node) for node in graph.nodes] == [9, 9, 0, 3, 0, 0]
    assert parameters(graph.clone()) == 12


PUBLISHED = {  # GMACs and millions of parameters, as the authors or torchvision state them
    "resnet18": (1.81, 11.69),
    "resnet50": (4.09, 25.56),
    "resnet152": (11.51, 60.19),
    "vgg16": (15.47, 138.36),
    "mobilenet_v2": (0.30, 3.50),
    "densenet121": (2.83, 7.98),
    "squeezenet1_1": (0.349, 1.24),
    "shufflenet_v2_x1_0": (0.145, 2.28),
    "efficientnet_b0": (0.386, 5.29),
    "googlenet": (1.50, 6.62),
    "inception_v3": (5.71, 23.83),
    "vit_b_16": (17.56, 86.57),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_samples_agree_with_published_counts(name: str) -> None:
    graph = load(name)
    total = total_flops(graph)
    macs, millions = PUBLISHED[name]
    assert total is not None
    assert total / 2e9 == pytest.approx(macs, rel=0.08)  # ours also count what is not a product
    running = sum(2 * n.inputs[1].shape[0] for n in graph.nodes if n.op_type == "BatchNormalization")
    assert (parameters(graph) - running) / 1e6 == pytest.approx(millions, abs=0.006)


def test_resnet18_layer_by_layer() -> None:
    graph = load("resnet18")
    convolutions = [flops(node) for node in graph.nodes if node.op_type == "Conv"]
    assert convolutions[0] == 2 * 64 * 112 * 112 * 3 * 7 * 7
    assert convolutions[1] == 2 * 64 * 56 * 56 * 64 * 3 * 3
    assert sum(convolutions) + flops(graph.nodes[-1]) == 2 * 1_814_073_344 + 1000
