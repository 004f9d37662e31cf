"""G10: DepthToSpace and SpaceToDepth."""

import numpy as np
import pytest

from tests.rewrite.harness import apply_only, assert_inverse_restores, candidates, graph_of, ops, reasons

FUSE, SPLIT = "fuse-depth-space", "split-depth-space"


def written_out(middle, perm, result, *, x="2,12,4,6", opset=17):
    return graph_of(
        f"""(float[{x}] x) => (float[?,?,?,?] y) {{
            h = Reshape(x, m)
            t = Transpose<perm={perm}>(h)
            r = Reshape(t, s)
            y = Relu(r)
        }}""",
        opset=opset,
        m=np.array(middle),
        s=np.array(result),
    )


FORMS = {
    "DCR": ([2, 2, 2, 3, 4, 6], [0, 3, 4, 1, 5, 2], [2, 3, 8, 12], {"DepthToSpace": 1, "Relu": 1}),
    "CRD": ([2, 3, 2, 2, 4, 6], [0, 1, 4, 2, 5, 3], [2, 3, 8, 12], {"DepthToSpace": 1, "Relu": 1}),
    "space": ([2, 12, 2, 2, 3, 2], [0, 3, 5, 1, 2, 4], [2, 48, 2, 3], {"SpaceToDepth": 1, "Relu": 1}),
}


@pytest.mark.parametrize("form", FORMS)
def test_three_nodes_become_one(form):
    middle, perm, result, expected = FORMS[form]
    graph = written_out(middle, perm, result)
    assert ops(apply_only(graph, FUSE)) == expected


@pytest.mark.parametrize("form", FORMS)
def test_dynamic_batch_and_back(form):
    middle, perm, result, _ = FORMS[form]
    graph = written_out([0, *middle[1:]], perm, [0, *result[1:]], x="N,12,4,6")
    (candidate,) = candidates(graph, FUSE)
    apply_only(graph, FUSE)
    assert_inverse_restores(graph, candidate)


@pytest.mark.parametrize(
    "node",
    [
        "DepthToSpace<blocksize=2>(x)",
        'DepthToSpace<blocksize=2, mode="CRD">(x)',
        "SpaceToDepth<blocksize=2>(x)",
    ],
)
def test_one_node_becomes_three_and_back(node):
    graph = graph_of(f"(float[N,12,4,6] x) => (float[N,?,?,?] y) {{ h = {node} y = Relu(h) }}")
    (candidate,) = candidates(graph, SPLIT)
    assert ops(apply_only(graph, SPLIT)) == {"Reshape": 2, "Transpose": 1, "Relu": 1}
    assert_inverse_restores(graph, candidate)


def test_other_blocks_are_refused():
    graph = written_out([2, 2, 3, 2, 4, 6], [0, 3, 4, 1, 5, 2], [2, 2, 8, 18])
    assert candidates(graph, FUSE) == []
    assert reasons(graph, FUSE) == ["dims [2, 2, 3, 2, 4, 6] between are not blocks of [2, 12, 4, 6]"]


def test_other_permutation_is_something_else():
    graph = written_out([2, 2, 2, 3, 4, 6], [0, 3, 4, 2, 5, 1], [2, 3, 8, 12])
    assert candidates(graph, FUSE) == []
    assert reasons(graph, FUSE) == []


def test_mode_crd_needs_opset_11():
    middle, perm, result, _ = FORMS["CRD"]
    graph = written_out(middle, perm, result, opset=10)
    assert reasons(graph, FUSE) == ["mode CRD needs opset 11"]
    middle, perm, result, expected = FORMS["DCR"]
    assert ops(apply_only(written_out(middle, perm, result, opset=10), FUSE)) == expected


def test_second_reader_inside_is_refused():
    middle, perm, result, _ = FORMS["DCR"]
    graph = graph_of(
        f"""(float[2,12,4,6] x) => (float[2,3,8,12] y, float[?,?,?,?,?,?] z) {{
            h = Reshape(x, m)
            t = Transpose<perm={perm}>(h)
            y = Reshape(t, s)
            z = Neg(t)
        }}""",
        m=np.array(middle),
        s=np.array(result),
    )
    assert reasons(graph, FUSE) == ["'t', inside the pattern, is also read by an unnamed Neg"]


def test_dynamic_height_is_refused():
    graph = graph_of("(float[1,12,H,6] x) => (float[1,3,?,12] y) { y = DepthToSpace<blocksize=2>(x) }")
    assert reasons(graph, SPLIT) == ["channels, height and width of 'x' are not all static"]
