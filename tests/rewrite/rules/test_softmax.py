"""E14: Log(Softmax) as LogSoftmax, and constants per row that Softmax ignores."""

import numpy as np
import pytest

from explorer.rewrite import default_rules
from tests.rewrite.harness import apply_only, assert_inverse_restores, candidates, graph_of, ops, reasons

FUSE, SPLIT, DROP = "fuse-logsoftmax", "split-logsoftmax", "drop-row-constant-before-softmax"


def of(body, inputs="float[2,3,4] x", out="float[2,3,4] y", opset=17, **constants):
    return graph_of(f"({inputs}) => ({out}) {{ {body} }}", opset=opset, **constants)


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("axis", ["", "<axis=1>", "<axis=2>"])
def test_log_of_softmax(axis, opset):
    assert ops(apply_only(of(f"s = Softmax{axis}(x)  y = Log(s)", opset=opset), FUSE)) == {"LogSoftmax": 1}


def test_logsoftmax_and_back():
    graph = of("y = LogSoftmax<axis=1>(x)", "double[2,3,4] x", "double[2,3,4] y")
    assert_inverse_restores(graph, candidates(graph, SPLIT)[0])


def test_class_d_is_opt_in_and_second_reader_refused():
    assert not {FUSE, SPLIT, DROP} & {rule.name for rule in default_rules()}
    graph = of("s = Softmax(x)  y = Log(s)  z = Neg(s)", out="float[2,3,4] y, float[2,3,4] z")
    assert reasons(graph, FUSE) == ["'s', inside the pattern, is also read by an unnamed Neg"]


@pytest.mark.parametrize(
    ("body", "constant"),
    [
        ("a = Add(x, c)  y = Softmax(a)", np.array(2.0)),
        ("a = Add(c, x)  y = Softmax(a)", np.ones((3, 1))),
        ("a = Sub(x, c)  y = LogSoftmax<axis=1>(a)", np.arange(4.0)),
        ("a = Add(x, c)  y = Softmax<axis=0>(a)", np.ones((1, 3, 4))),
    ],
)
def test_constant_along_the_rows_has_no_effect(body, constant):
    graph = of(body, c=constant.astype("f4"))
    (candidate,) = candidates(graph, DROP)
    assert candidate.bytes_delta == -4 * constant.size
    assert len(apply_only(graph, DROP).nodes) == 1


def test_computed_row_values_and_shared_sums():
    graph = of(
        "m = ReduceMax<axes=[-1]>(x)  a = Sub(x, m)  y = Softmax(a)  z = Neg(a)",
        out="float[2,3,4] y, float[2,3,4] z",
    )
    assert ops(apply_only(graph, DROP)) == {"ReduceMax": 1, "Sub": 1, "Softmax": 1, "Neg": 1}


def test_masks_enlarging_constants_and_subtrahends_are_left_alone():
    assert candidates(of("a = Add(x, c)  y = Softmax(a)", c=np.ones(4, "f4")), DROP) == []
    wide = of("a = Add(x, c)  y = Softmax(a)", out="float[1,2,3,4] y", c=np.ones((1, 1, 1, 1), "f4"))
    assert candidates(wide, DROP) == []
    assert candidates(of("a = Sub(c, x)  y = Softmax(a)", c=np.array(1, "f4")), DROP) == []


def test_old_softmax_over_several_axes_is_refused():
    graph = of("a = Add(x, c)  y = Softmax(a)", opset=11, c=np.array(1, "f4"))
    assert reasons(graph, DROP) == ["before opset 13 Softmax with axis 1 flattens the axes after it"]
    last = of("a = Add(x, c)  y = Softmax<axis=2>(a)", opset=11, c=np.array(1, "f4"))
    assert ops(apply_only(last, DROP)) == {"Softmax": 1}


def test_match_inside_a_branch():
    graph = graph_of(
        """(bool k, float[2,3] x) => (float[2,3] y) {
            y = If(k) <
                then_branch = t () => (float[2,3] o) { s = Softmax(x)  o = Log(s) },
                else_branch = e () => (float[2,3] q) { q = Relu(x) }
            >
        }"""
    )
    assert ops(apply_only(graph, FUSE)) == {"If": 1, "LogSoftmax": 1, "Relu": 1}
