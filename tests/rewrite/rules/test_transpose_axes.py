"""G3: transposes through operators along axes."""

import numpy as np
import pytest

from tests.rewrite.harness import apply_only, assert_inverse_restores, candidates, graph_of, ops, reasons

SINK, HOIST = "sink-transpose-through-axis-operator", "hoist-transpose-through-axis-operator"
SINK_R, HOIST_R = "sink-transpose-through-reduction", "hoist-transpose-through-reduction"
END = 2**63 - 1
WEIGHTS = {
    "one": np.array([1]),
    "three": np.array([3]),
    "b": np.array([1, 0]),
    "e": np.array([END, 2]),
    "a": np.array([-1, 0]),
    "step": np.array([2, 1]),
    "pads": np.array([1, 0, 2, 0, 3, 0]),
    "some": np.array([1, 2]),
    "some_axes": np.array([-1]),
    "fill": np.float32(0.5),
    "axes": np.array([0, 2]),
    "last": np.array([-1]),
    "sizes": np.array([1, 2]),
}
PERM = "[2,0,1]"
MOVERS = {
    "Concat": "Concat<axis=-1>(t, t)",
    "Slice": "Slice(t, b, e, a, step)",
    "Slice of leading axes": "Slice(t, b, e)",
    "Pad": "Pad(t, pads, fill)",
    "Pad without value": 'Pad<mode="reflect">(t, reflect)',
    "Unsqueeze": "Unsqueeze(t, axes)",
}


def used(text):
    words = set(text.replace("(", " ").replace(")", " ").replace(",", " ").split())
    weights = {**WEIGHTS, "reflect": np.array([1, 0, 0, 0, 0, 1])}
    return {name: value for name, value in weights.items() if name in words}


def sunk(expression, *, x="2,3,4", opset=17, dtype="float"):
    text = (
        f"({dtype}[{x}] x) => ({dtype}[] y) {{ t = Transpose<perm={PERM}>(x) h = {expression} y = Neg(h) }}"
    )
    return graph_of(text, opset=opset, **used(expression))


@pytest.mark.parametrize("name", MOVERS)
def test_transpose_sinks_and_comes_back(name):
    graph = sunk(MOVERS[name])
    (candidate,) = candidates(graph, SINK)
    result = apply_only(graph, SINK)
    assert [n.op_type for n in result.nodes] == [name.split()[0], "Transpose", "Neg"]
    assert_inverse_restores(graph, candidate) if name not in {
        "Slice",
        "Slice of leading axes",
        "Unsqueeze",
    } else None


@pytest.mark.parametrize("axes", [[0], [2], [-2], [0, 3], [1, 3], [-1, 0]])
@pytest.mark.parametrize("opset", [11, 17])
def test_unsqueeze(axes, opset):
    text = f"Unsqueeze<axes={axes}>(t)" if opset < 13 else "Unsqueeze(t, u)"
    graph = graph_of(
        f"(float[2,3,4] x) => (float[] y) {{ t = Transpose<perm={PERM}>(x) h = {text} y = Neg(h) }}",
        opset=opset,
        **({"u": np.array(axes)} if opset >= 13 else {}),
    )
    apply_only(graph, SINK)


@pytest.mark.parametrize("axes", [[0], [1], [2], [3], [-4, 2]])
@pytest.mark.parametrize("opset", [11, 17])
def test_squeeze(axes, opset):
    shape = [5, 6, 7, 8]
    perm = [2, 0, 3, 1]
    for axis in axes:
        shape[perm[axis]] = 1
    text = f"Squeeze<axes={axes}>(t)" if opset < 13 else "Squeeze(t, u)"
    graph = graph_of(
        f"(float[{','.join(map(str, shape))}] x) => (float[] y) {{ t = Transpose<perm={perm}>(x) h = {text} y = Neg(h) }}",
        opset=opset,
        **({"u": np.array(axes)} if opset >= 13 else {}),
    )
    result = apply_only(graph, SINK)
    assert ops(result)["Squeeze"] == 1


@pytest.mark.parametrize("perm", [[0, 2, 1], [2, 1, 0], [1, 2, 0]])
@pytest.mark.parametrize("text", ["Unsqueeze(x, one)", "Unsqueeze(x, axes)"])
def test_transpose_rises_past_unsqueeze(text, perm):
    x = "2,3" if "one" in text else "5"
    graph = graph_of(
        f"(float[{x}] x) => (float[] y) {{ h = {text} t = Transpose<perm={perm}>(h) y = Neg(t) }}",
        **used(text),
    )
    result = apply_only(graph, HOIST)
    assert result.nodes[-2].op_type == "Unsqueeze"


@pytest.mark.parametrize("perm", [[1, 0], [0, 1]])
def test_transpose_rises_past_squeeze(perm):
    graph = graph_of(
        f"(float[2,1,3] x) => (float[] y) {{ h = Squeeze(x, one) t = Transpose<perm={perm}>(h) y = Neg(t) }}",
        **used("one"),
    )
    if perm == [0, 1]:
        assert candidates(graph, HOIST) == []
        return
    result = apply_only(graph, HOIST)
    assert [n.op_type for n in result.nodes] == ["Transpose", "Squeeze", "Neg"]
    assert_inverse_restores(graph, candidates(graph, HOIST)[0])


@pytest.mark.parametrize(
    "expression", ["Concat<axis=1>(x, x)", "Slice(x, b, e, a, step)", "Pad(x, pads, fill)"]
)
def test_transpose_rises_past_operators_that_keep_the_rank(expression):
    graph = graph_of(
        f"(float[2,3,4] x) => (float[] y) {{ h = {expression} t = Transpose<perm={PERM}>(h) y = Neg(t) }}",
        **used(expression),
    )
    result = apply_only(graph, HOIST)
    assert result.nodes[0].op_type == "Transpose"


def test_slice_before_opset_10_and_pad_before_11():
    graph = sunk("Slice<starts=[1], ends=[3], axes=[2]>(t)", opset=9)
    assert apply_only(graph, SINK).nodes[0].attributes["axes"].value == (1,)
    graph = sunk("Pad<pads=[1,0,2,0,3,0]>(t)", opset=10)
    assert apply_only(graph, SINK).nodes[0].attributes["pads"].value == (0, 2, 1, 3, 0, 0)


def test_pad_with_axes():
    graph = sunk("Pad(t, some, , some_axes)", opset=18)
    result = apply_only(graph, SINK)
    np.testing.assert_array_equal(result.nodes[0].inputs[3].const_value.numpy(), [1])


def test_split_gives_a_transpose_per_part():
    graph = graph_of(
        """(float[2,3,4] x) => (float[4,2,1] y, float[4,2,2] z) {
            t = Transpose<perm=[2,0,1]>(x)
            y, z = Split<axis=2>(t, sizes)
        }""",
        **used("sizes"),
    )
    result = apply_only(graph, SINK)
    assert ops(result) == {"Split": 1, "Transpose": 2}
    assert result.nodes[0].attributes["axis"].value == 1


def test_equal_transposes_of_all_parts_rise_above_the_split():
    graph = graph_of(
        """(float[N,3,4] x) => (float[4,N,1] y, float[4,N,2] z) {
            a, b = Split<axis=1>(x, sizes)
            y = Transpose<perm=[2,0,1]>(a)
            z = Transpose<perm=[2,0,1]>(b)
        }""",
        **used("sizes"),
    )
    (candidate,) = candidates(graph, HOIST)
    result = apply_only(graph, HOIST)
    assert [n.op_type for n in result.nodes] == ["Transpose", "Split"]
    assert_inverse_restores(graph, candidate)


def test_different_transposes_of_parts_stay():
    graph = graph_of("""(float[2,4] x) => (float[2,2] y, float[2,2] z) {
        a, b = Split<axis=1>(x)
        y = Transpose<perm=[1,0]>(a)
        z = Transpose<perm=[0,1]>(b)
    }""")
    assert reasons(graph, HOIST) == ["the parts are transposed in different ways"]


def test_concat_of_transposes_and_a_constant():
    graph = graph_of(
        "(float[2,3] x, float[2,3] z) => (float[3,6] y) { s = Transpose(x) t = Transpose(z) y = Concat<axis=1>(s, c, t) }",
        c=np.random.default_rng(0).standard_normal((3, 2)).astype("f4"),
    )
    result = apply_only(graph, SINK)
    assert [n.op_type for n in result.nodes] == ["Concat", "Transpose"]
    assert_inverse_restores(graph, candidates(graph, SINK)[0])


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ("s = Transpose(x) y = Concat<axis=1>(s, w)", "not every operand is transposed or constant"),
        (
            "s = Transpose(x) t = Transpose<perm=[0,1]>(w) y = Concat<axis=1>(s, t)",
            "the operands are transposed in different ways",
        ),
        ("s = Transpose(x) y = Slice(s, i, i)", "the starts of 'y' are not constant"),
        ("s = Transpose(x) y = Pad(s, p)", "the pads of 'y' are not constant"),
        ("s = Transpose(x) y = Unsqueeze(s, i)", "the axes of 'y' are not constant"),
    ],
)
def test_near_misses(nodes, reason):
    graph = graph_of(f"(float[2,3] x, float[3,2] w, int64[1] i, int64[4] p) => (float[] y) {{ {nodes} }}")
    assert candidates(graph, SINK) == []
    assert reasons(graph, SINK) == [reason]


REDUCERS = [
    "Softmax<axis=0>(t)",
    "LogSoftmax<axis=-1>(t)",
    "ReduceMean<axes=[0,-1]>(t)",
    "ReduceMax<axes=[1], keepdims=0>(t)",
    "ReduceSum<keepdims=0>(t, axes)",
    "ReduceL2<axes=[2]>(t)",
]


@pytest.mark.parametrize("expression", REDUCERS)
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_transpose_sinks_below_reductions(expression, dtype):
    graph = sunk(expression, dtype=dtype)
    result = apply_only(graph, SINK_R)
    assert result.nodes[0].op_type == expression.split("<")[0].split("(")[0]


@pytest.mark.parametrize("expression", [e.replace("(t", "(x") for e in REDUCERS])
def test_transpose_rises_above_reductions(expression):
    rank = 3 if "keepdims" not in expression else 2 if "axes=[1]" in expression else 1
    perm = {3: "[2,0,1]", 2: "[1,0]", 1: "[0]"}[rank]
    graph = graph_of(
        f"(float[2,3,4] x) => (float[] y) {{ h = {expression} t = Transpose<perm={perm}>(h) y = Neg(t) }}",
        **used(expression),
    )
    if rank == 1:
        assert candidates(graph, HOIST_R) == []
        return
    result = apply_only(graph, HOIST_R)
    assert result.nodes[0].op_type == "Transpose"
    if "Softmax" in expression:
        assert_inverse_restores(graph, candidates(graph, HOIST_R)[0])


def test_reduction_with_axes_as_input():
    graph = sunk("ReduceMean(t, axes)", opset=18)
    result = apply_only(graph, SINK_R)
    np.testing.assert_array_equal(result.nodes[0].inputs[1].const_value.numpy(), [1, 2])


def test_reduction_over_everything_is_refused():
    graph = sunk("ReduceMean<keepdims=0>(t)")
    assert reasons(graph, SINK_R) == ["ReduceMean 'h' has no constant axes"]


def test_old_softmax_flattens():
    graph = sunk("Softmax<axis=1>(t)", opset=11)
    assert candidates(graph, SINK_R) == []
    assert reasons(graph, SINK_R) == ["Softmax flattens its input before opset 13"]


def test_dynamic_batch():
    graph = graph_of(
        "(float[N,3,4] x) => (float[3,N,4] y) { t = Transpose<perm=[1,0,2]>(x) y = Softmax<axis=0>(t) }"
    )
    result = apply_only(graph, SINK_R)
    assert result.nodes[0].attributes["axis"].value == 1
    assert_inverse_restores(graph, candidates(graph, SINK_R)[0])


def test_inside_a_branch():
    graph = graph_of("""(bool c, float[2,3] x) => (float[3,2] y) {
        y = If(c) <
            then_branch = t () => (float[3,2] a) { h = Transpose(x) a = Softmax(h) },
            else_branch = e () => (float[3,2] b) { b = Transpose(x) }
        >
    }""")
    assert ops(apply_only(graph, SINK_R)) == {"If": 1, "Softmax": 1, "Transpose": 2}


def test_any_keepdims_but_one_drops_the_axes():
    """As the inference of shapes and ONNX Runtime read it."""
    graph = graph_of("""(float[2,4,6] x) => (float[4,6] y) {
        t = Transpose<perm=[1,2,0]>(x)
        y = ReduceMax<axes=[2], keepdims=-1>(t)
    }""")
    assert list(apply_only(graph, "sink-transpose-through-reduction").outputs[0].shape) == [4, 6]
