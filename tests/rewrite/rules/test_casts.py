"""A3: casts that change nothing, casts of casts."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from explorer.rewrite.rules.casts import keeps_values
from tests.rewrite.harness import apply_only, candidates, graph_of, ops, reasons

ONE, TWO = "eliminate-cast", "merge-casts"
TYPES = {
    "float": 1,
    "uint8": 2,
    "int8": 3,
    "int32": 6,
    "int64": 7,
    "string": 8,
    "bool": 9,
    "float16": 10,
    "double": 11,
}


def two_casts(source, middle, target):
    text = f"""({source}[2,3] x) => ({target}[2,3] y) {{
        h = Cast<to={TYPES[middle]}>(x)
        y = Cast<to={TYPES[target]}>(h)
    }}"""
    return graph_of(text)


def test_cast_to_the_same_type_disappears():
    graph = graph_of("(float[N,3] x) => (float[N,3] y) { h = Cast<to=1>(x) y = Relu(h) }")
    assert ops(apply_only(graph, ONE)) == {"Relu": 1}


def test_castlike_to_the_same_type_disappears():
    graph = graph_of("(float[2] x, float[3] z) => (float[2] y) { h = CastLike(x, z) y = Relu(h) }")
    assert ops(apply_only(graph, ONE)) == {"Relu": 1}


def test_cast_to_another_type_stays():
    graph = graph_of("(float[2] x) => (double[2] y) { h = Cast<to=11>(x) y = Relu(h) }")
    assert candidates(graph, ONE) == []


@pytest.mark.parametrize(
    ("source", "middle", "target", "left"),
    [
        ("float16", "float", "double", {"Cast": 1}),
        ("float", "double", "float", {"Identity": 1}),
        ("int32", "int64", "float", {"Cast": 1}),
        ("uint8", "int32", "int64", {"Cast": 1}),
        ("bool", "float", "int64", {"Cast": 1}),
    ],
)
def test_casts_merge_where_the_first_keeps_all_values(source, middle, target, left):
    assert ops(apply_only(two_casts(source, middle, target), TWO)) == left


@pytest.mark.parametrize(
    ("source", "middle", "target", "reason"),
    [
        ("float", "float16", "float", "the first cast, from float to float16, does not keep all values"),
        ("int64", "int32", "int64", "the first cast, from int64 to int32, does not keep all values"),
        ("float", "int32", "float", "the first cast, from float to int32, does not keep all values"),
        ("int32", "double", "int8", "a cast to int8 may differ for int32 and double"),
    ],
)
def test_casts_that_lose_values_do_not_merge(source, middle, target, reason):
    graph = two_casts(source, middle, target)
    assert candidates(graph, TWO) == []
    assert reasons(graph, TWO) == [reason]


def test_casts_to_strings_do_not_merge():
    assert reasons(two_casts("int32", "int64", "string"), TWO) == [
        "a cast to string may differ for int32 and int64"
    ]


def test_first_cast_stays_for_its_other_readers():
    graph = graph_of("""(float16[2] x) => (double[2] y, float[2] z) {
        h = Cast<to=1>(x)
        y = Cast<to=11>(h)
        z = Relu(h)
    }""")
    result = apply_only(graph, TWO)
    assert ops(result) == {"Cast": 2, "Relu": 1}
    assert all(node.inputs[0].name == "x" for node in result.nodes if node.op_type == "Cast")


def test_kept_values_agree_with_numpy():
    """Every pair the table allows survives the way there and back for the extreme values."""
    numeric = [t for t in ir.DataType if t in {ir.DataType(v) for n, v in TYPES.items() if n != "string"}]
    pairs = [(a, b) for a in numeric for b in numeric if a != b and keeps_values(a, b)]
    assert len(pairs) > 20
    for source, target in pairs:
        dtype = source.numpy()
        if dtype.kind in "iu":
            extremes = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 1], dtype)
        elif dtype.kind == "f":
            extremes = np.array([np.finfo(dtype).max, np.finfo(dtype).tiny, np.inf, -1], dtype)
        else:
            extremes = np.array([True, False])
        back = extremes.astype(target.numpy()).astype(dtype)
        np.testing.assert_array_equal(back, extremes, err_msg=f"{source} {target}")


def test_type_numbers_are_those_of_onnx():
    for name, number in TYPES.items():
        assert onnx.TensorProto.DataType.Name(number).lower() == name
