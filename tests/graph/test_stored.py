"""Tensors whose data is missing, cut, too long, or of another type than declared."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from explorer.errors import ModelError
from explorer.graph import constant_tensor, load
from explorer.graph.stored import check_stored_tensor
from tests import models


def stored(dims, raw: bytes | None = None, kind: int = TensorProto.FLOAT, **fields) -> onnx.TensorProto:
    tensor = onnx.TensorProto(name="w", dims=dims, data_type=kind, **fields)
    if raw is not None:
        tensor.raw_data = raw
    return tensor


@pytest.mark.parametrize(
    ("tensor", "complaint"),
    [
        (stored([4], bytes(10)), "holds 10 bytes where its type and shape need 16"),
        (stored([4], bytes(100)), "holds 100 bytes where its type and shape need 16"),
        (stored([2**40]), "holds 0 values where its type and shape need 1099511627776"),
        (stored([2**40, 2**40], b"1234"), f"holds 4 bytes where its type and shape need {4 * 2**80}"),
        (stored([4], float_data=[1, 2, 3]), "holds 3 values where its type and shape need 4"),
        (stored([4], int64_data=[1, 2, 3, 4]), "holds 0 values where its type and shape need 4"),
        (
            stored([3], kind=TensorProto.STRING, string_data=[b"a"]),
            "holds 1 values where its type and shape need 3",
        ),
        (stored([1], bytes(4), TensorProto.STRING), "holds 0 values where its type and shape need 1"),
        (stored([3], bytes(1), TensorProto.INT4), "holds 1 bytes where its type and shape need 2"),
        (
            stored([2], kind=TensorProto.COMPLEX64, float_data=[1, 2]),
            "holds 2 values where its type and shape need 4",
        ),
        (stored([-4], bytes(16)), "has a negative dimension"),
        (stored([-2, -2], bytes(16)), "has a negative dimension"),
        (stored([1], bytes(4), 0), "has an unknown element type (number 0)"),
        (stored([1], bytes(4), 999), "has an unknown element type (number 999)"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_does_not_agree_is_refused(tensor: onnx.TensorProto, complaint: str) -> None:
    with pytest.raises(ModelError) as caught:
        check_stored_tensor(tensor, "here")
    assert str(caught.value).startswith(f"here {complaint}; ")


KINDS = [kind for kind in ir.DataType if kind not in {ir.DataType.UNDEFINED, ir.DataType.STRING}]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("count", [0, 1, 3, 8])
def test_every_type_passes_in_every_form_that_onnx_writes(kind: ir.DataType, count: int) -> None:
    array = np.arange(count).astype(np.float32).astype(kind.numpy())
    raw = ir.serde.serialize_tensor(ir.Tensor(array, dtype=kind, name="w"))
    assert raw.HasField("raw_data")
    check_stored_tensor(raw, "here")
    if kind.bitwidth != 6:
        values = array.astype(np.complex64 if kind.name.startswith("COMPLEX") else np.float32)
        typed = helper.make_tensor("w", kind.value, [count], values)
        assert not typed.HasField("raw_data")
        check_stored_tensor(typed, "here")


def test_strings_and_scalars_pass() -> None:
    check_stored_tensor(models.tensor("w", np.array(["a", "", "größe"])), "here")
    check_stored_tensor(models.tensor("w", np.float32(2.5)), "here")
    check_stored_tensor(stored([0, 5], b""), "here")
    check_stored_tensor(stored([0, 5]), "here")


def test_the_message_names_the_file_and_the_tensor() -> None:
    proto = models.model("(float[4] x) => (float[4] y) { y = Add(x, w) }")
    proto.graph.initializer.append(stored([4], bytes(10)))
    with pytest.raises(
        ModelError, match=r"^'cut.onnx': tensor 'w' holds 10 bytes where its type and shape need 16; "
    ):
        load(proto, name="cut.onnx")


def test_the_message_names_the_node_that_keeps_the_tensor() -> None:
    node = helper.make_node("Constant", [], ["c"], name="hidden", value=stored([4], bytes(3)))
    proto = models.model("(float[4] x) => (float[4] y) { y = Relu(x) }")
    proto.graph.node.append(node)
    with pytest.raises(ModelError, match=r"tensor 'w' of node 'hidden' \(Constant\) holds 3 bytes"):
        load(proto)


@pytest.mark.parametrize("kind", [np.float16, np.float64, np.int8, np.int32, np.bool_, np.uint8], ids=str)
def test_weights_of_many_types_are_read(kind: type) -> None:
    array = np.array([[0, 1], [3, 5]]).astype(kind)
    proto = models.model("(float[2,2] x) => (float[2,2] y) { c = Cast<to=1>(w) y = Add(x, c) }", w=array)
    graph = load(proto)
    found = constant_tensor(graph.nodes[0].inputs[0])
    np.testing.assert_array_equal(found.numpy(), array)
    np.testing.assert_array_equal(
        models.run(graph, {"x": np.zeros((2, 2), "f4")})[0], array.astype(np.float32)
    )


def test_bfloat16_and_int4_weights_are_read() -> None:
    wanted = [1.0, -2.5, 0.0]
    half = helper.make_tensor("w", TensorProto.BFLOAT16, [3], wanted)
    proto = models.model(
        "(float[3] x) => (float[3] y) { c = Cast<to=1>(w) y = Add(x, c) }", opset=21, ir_version=10
    )
    proto.graph.initializer.append(half)
    tensor = constant_tensor(load(proto).nodes[0].inputs[0])
    assert tensor.dtype == ir.DataType.BFLOAT16
    assert tensor.numpy().astype(np.float32).tolist() == wanted
    packed = helper.make_tensor("q", TensorProto.INT4, [3], [-8, 7, 3])
    proto.graph.initializer.append(packed)
    tensor = load(proto).model.graph.initializers["q"].const_value
    assert tensor.numpy().astype(np.int32).tolist() == [-8, 7, 3]
    assert tensor.nbytes == 2


def test_raw_and_typed_data_are_the_same_weight() -> None:
    text = "(float[2,2] x) => (float[2,2] y) { y = Add(x, w) }"
    array = np.array([[1, 2], [3, 4]], "f4")
    raw, typed = models.model(text), models.model(text)
    raw.graph.initializer.append(numpy_helper.from_array(array, "w"))
    typed.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [2, 2], array.ravel()))
    assert load(raw).fingerprint() == load(typed).fingerprint()
