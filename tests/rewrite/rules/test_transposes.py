"""A4 transposes that cancel or merge, G4 transposes of unit dims and reshapes."""

import numpy as np
import pytest

from explorer.graph import load
from tests.models import case_path
from tests.rewrite.harness import (
    apply_all,
    apply_only,
    assert_inverse_restores,
    candidates,
    graph_of,
    ops,
    reasons,
)

ONE, TWO = "eliminate-transpose", "merge-transposes"
TO_RESHAPE, TO_TRANSPOSE = "transpose-to-reshape", "reshape-to-transpose"


def test_transpose_by_the_identity_disappears():
    graph = graph_of("(float[N,3] x) => (float[N,3] y) { h = Transpose<perm=[0,1]>(x) y = Relu(h) }")
    assert ops(apply_only(graph, ONE)) == {"Relu": 1}


def test_transpose_before_gemm_keeps_transa():
    graph = load(case_path("identity_transpose_before_gemm"))
    result = apply_only(graph, ONE)
    gemm = next(node for node in result.nodes if node.op_type == "Gemm")
    assert gemm.attributes.get_int("transA", 0) == 0


def test_transposes_that_cancel():
    graph = graph_of("""(float[2,3,4] x) => (float[2,3,4] y) {
        h = Transpose<perm=[2,0,1]>(x)
        k = Transpose<perm=[1,2,0]>(h)
        y = Relu(k)
    }""")
    assert ops(apply_only(graph, TWO)) == {"Relu": 1}


@pytest.mark.parametrize("dtype", ["float", "double", "float16", "int64", "string", "bool"])
def test_transposes_merge_in_every_type(dtype):
    graph = graph_of(f"""({dtype}[2,3,4] x) => ({dtype}[3,2,4] y) {{
        h = Transpose<perm=[2,0,1]>(x)
        y = Transpose<perm=[2,1,0]>(h)
    }}""")
    result = apply_only(graph, TWO)
    (transpose,) = result.nodes
    assert tuple(transpose.attributes["perm"].value) == (1, 0, 2)


def test_absent_permutation_reverses():
    graph = graph_of("(float[2,3,4] x) => (float[2,3,4] y) { h = Transpose(x) k = Transpose(h) y = Relu(k) }")
    assert ops(apply_only(graph, TWO)) == {"Relu": 1}


def test_absent_permutation_of_unknown_rank_is_refused():
    graph = graph_of(
        "(float[2,3] x, int64[k] s) => (float[] y) { r = Reshape(x, s) h = Transpose(r) y = Transpose(h) }"
    )
    assert candidates(graph, TWO) == []
    assert reasons(graph, TWO) == ["the rank of 'r' is unknown"]


def test_first_transpose_stays_for_other_readers():
    graph = graph_of("""(float[2,3] x) => (float[2,3] y, float[3,2] z) {
        h = Transpose(x)
        k = Transpose(h)
        y = Relu(k)
        z = Relu(h)
    }""")
    assert ops(apply_only(graph, TWO)) == {"Transpose": 1, "Relu": 2}


def test_transposes_cancel_inside_a_loop_body():
    graph = graph_of("""(int64 n, bool c, float[2,3] x) => (float[2,3] y) {
        y = Loop(n, c, x) <body = b (int64 i, bool ci, float[2,3] a) => (bool co, float[2,3] o) {
            co = Identity(ci)
            h = Transpose(a)
            k = Transpose(h)
            o = Relu(k)
        }>
    }""")
    assert ops(apply_only(graph, TWO)) == {"Loop": 1, "Identity": 1, "Relu": 1}


@pytest.mark.parametrize(
    ("before", "perm", "after", "target"),
    [
        ("1,8,4", "[1,0,2]", "8,1,4", [8, 1, 4]),
        ("N,1,8", "[0,2,1]", "N,8,1", [0, 8, 1]),
        ("N,8,1", "[2,0,1]", "1,N,8", [1, -1, 8]),
        ("N,1,M", "[1,0,2]", "1,N,M", [1, -1, 0]),
    ],
)
def test_transpose_of_unit_dims_becomes_a_reshape_and_back(before, perm, after, target):
    graph = graph_of(
        f"(float[{before}] x) => (float[{after}] y) {{ h = Transpose<perm={perm}>(x) y = Relu(h) }}"
    )
    (candidate,) = candidates(graph, TO_RESHAPE)
    result = apply_only(graph, TO_RESHAPE)
    reshape = next(node for node in result.nodes if node.op_type == "Reshape")
    np.testing.assert_array_equal(reshape.inputs[1].const_value.numpy(), target)
    assert_inverse_restores(graph, candidate)


def test_transpose_of_unit_dims_with_two_moving_dynamic_dims_is_refused():
    graph = graph_of("(float[N,M,1] x) => (float[1,N,M] y) { h = Transpose<perm=[2,0,1]>(x) y = Relu(h) }")
    assert reasons(graph, TO_RESHAPE) == ["more than one dim of 'h' is dynamic"]


def test_transpose_that_moves_data_is_no_reshape():
    graph = graph_of("(float[2,3] x) => (float[3,2] y) { h = Transpose(x) y = Relu(h) }")
    assert candidates(graph, TO_RESHAPE) == []
    assert reasons(graph, TO_RESHAPE) == []


def test_reshape_that_moves_unit_dims_becomes_a_transpose():
    graph = graph_of(
        "(float[4,1,3] x) => (float[1,4,3] y) { h = Reshape(x, s) y = Relu(h) }", s=np.array([1, 4, 3])
    )
    result = apply_only(graph, TO_TRANSPOSE)
    assert ops(result) == {"Transpose": 1, "Relu": 1}
    assert_inverse_restores(graph, candidates(graph, TO_TRANSPOSE)[0])


def test_reshape_that_joins_dims_is_no_transpose():
    graph = graph_of("(float[4,6] x) => (float[6,4] y) { h = Reshape(x, s) y = Relu(h) }", s=np.array([6, 4]))
    assert candidates(graph, TO_TRANSPOSE) == []


def test_transposes_of_an_output_keep_its_name():
    graph = graph_of("(float[2,3] x) => (float[2,3] y) { r = Relu(x) h = Transpose(r) y = Transpose(h) }")
    result = apply_all(graph, TWO)
    assert ops(result) == {"Relu": 1}
    assert result.outputs[0].name == "y"
