"""A16: nodes that depend on constants only."""

import numpy as np
import pytest

from explorer.errors import RewriteError
from explorer.graph import load
from explorer.rewrite import all_rules, apply
from explorer.rewrite.rules.evaluation import EVALUATED
from tests.models import case_path
from tests.rewrite.harness import apply_all, apply_only, candidates, graph_of, ops, reasons

RULE = "fold-constants"
RNG = np.random.default_rng(0)
A = RNG.uniform(0.2, 0.9, (3, 4)).astype("f4")
B = RNG.uniform(0.2, 0.9, (3, 4)).astype("f4")
FLAGS = np.array([[True, False, True, False]] * 3)
I64 = np.array([3, 1, 2])
# operator: the expression, the constants it reads
CASES = {
    **{
        op: (f"{op}(a)", {"a": A})
        for op in "Abs Ceil Cos Erf Exp Floor Identity Log Neg Reciprocal Relu Sigmoid Sign Sin "
        "Softmax Sqrt Tanh Transpose Trilu Shape Size Flatten".split()
    },
    **{
        op: (f"{op}(a, b)", {"a": A, "b": B})
        for op in "Add Div Equal Greater GreaterOrEqual Less LessOrEqual Max Min Mul Pow Sub".split()
    },
    **{op: (f"{op}(a, b)", {"a": FLAGS, "b": ~FLAGS}) for op in ("And", "Or", "Xor")},
    "Not": ("Not(a)", {"a": FLAGS}),
    "Cast": ("Cast<to=7>(a)", {"a": A * 9}),
    "Clip": ("Clip(a, lo, hi)", {"a": A, "lo": np.float32(0.3), "hi": np.float32(0.6)}),
    "Concat": ("Concat<axis=1>(a, b)", {"a": A, "b": B}),
    "ConstantOfShape": ("ConstantOfShape<value=float[1] {2.5}>(a)", {"a": I64}),
    "CumSum": ("CumSum(a, i)", {"a": A, "i": np.int64(1)}),
    "Expand": ("Expand(a, s)", {"a": A, "s": np.array([2, 3, 4])}),
    "Gather": ("Gather<axis=1>(a, i)", {"a": A, "i": np.array([[0, -1], [2, 1]])}),
    "GatherElements": ("GatherElements<axis=1>(a, i)", {"a": A, "i": np.array([[0], [3], [2]])}),
    "GatherND": ("GatherND(a, i)", {"a": A, "i": np.array([[0, 1], [2, 3]])}),
    "Gemm": ("Gemm<transB=1, alpha=0.5>(a, b)", {"a": A, "b": B}),
    "MatMul": ("MatMul(a, b)", {"a": A, "b": B.T.copy()}),
    "Pad": ("Pad(a, p)", {"a": A, "p": np.array([0, 1, 2, 0])}),
    "Range": ("Range(l, h, d)", {"l": np.float32(1), "h": np.float32(5), "d": np.float32(1.5)}),
    **{op: (f"{op}<axes=[1]>(a)", {"a": A}) for op in ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd")},
    "ReduceSum": ("ReduceSum<keepdims=0>(a, i)", {"a": A, "i": np.array([0])}),
    "Reshape": ("Reshape(a, s)", {"a": A, "s": np.array([2, -1])}),
    "ScatterND": ("ScatterND(a, i, u)", {"a": A, "i": np.array([[0], [2]]), "u": B[:2]}),
    "Slice": (
        "Slice(a, l, h, i, d)",
        {"a": A, "l": np.array([3]), "h": np.array([-9]), "i": np.array([1]), "d": np.array([-2])},
    ),
    "Split": ("Split<axis=1>(a, s)", {"a": A, "s": np.array([1, 3])}),
    "Squeeze": ("Squeeze(a, i)", {"a": A[:, None], "i": np.array([1])}),
    "Unsqueeze": ("Unsqueeze(a, i)", {"a": A, "i": np.array([-1])}),
    "Tile": ("Tile(a, r)", {"a": A, "r": np.array([2, 1])}),
    "Where": ("Where(f, a, b)", {"f": FLAGS, "a": A, "b": B}),
}


def test_every_listed_operator_has_a_case():
    assert set(CASES) == EVALUATED


@pytest.mark.parametrize("op", sorted(CASES))
def test_folded_value_is_what_the_runtime_computes(op):
    """The expression is compared with the runtime after a cast, next to an input so that the output reacts."""
    expression, weights = CASES[op]
    left = "c, d" if op == "Split" else "c"
    graph = graph_of(
        f"(float[1] x) => (float[] y) {{ {left} = {expression} f32 = Cast<to=1>(c) y = Add(x, f32) }}",
        **weights,
    )
    found = [c for c in candidates(graph, RULE) if c.anchor == "n0"]
    assert len(found) == 1, reasons(graph, RULE)
    result = apply_all(graph, RULE)
    assert ops(result) == {"Add": 1}


@pytest.mark.parametrize("dtype", ["f2", "f8", "i4", "i8", "u1"])
@pytest.mark.parametrize("op", ["Add", "Mul", "Div", "Sub"])
def test_other_types(op, dtype):
    a, b = (RNG.integers(1, 9, 12).astype(dtype) for _ in range(2))
    graph = graph_of(
        f"(float[12] x) => (float[12] y) {{ c = {op}(a, b) d = Cast<to=1>(c) y = Add(x, d) }}", a=a, b=b
    )
    assert ops(apply_all(graph, RULE)) == {"Add": 1}


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_elements_of_many_and_of_part(axis):
    """The evaluator's own form stops at 32 elements and at indices of another shape."""
    data = RNG.standard_normal((70, 60)).astype("f4")
    places = RNG.integers(-60, 60, (50, 40))
    graph = graph_of(
        f"(float[50,40] x) => (float[50,40] y) {{ c = GatherElements<axis={axis}>(a, i) y = Add(x, c) }}",
        a=data,
        i=places,
    )
    assert ops(apply_only(graph, RULE)) == {"Add": 1}


def test_integer_division_is_towards_zero():
    graph = graph_of(
        "(int64[4] x) => (int64[4] y) { c = Div(a, b) y = Add(x, c) }",
        a=np.array([7, -7, 7, -7]),
        b=np.array([2, 2, -2, -2]),
    )
    result = apply_only(graph, RULE)
    (folded,) = result.initializers()
    np.testing.assert_array_equal(folded.const_value.numpy(), [3, -3, -3, 3])


def test_chain_is_folded_at_once_or_from_the_start():
    graph = graph_of(
        "(float[4,3] x) => (float[4,3] y) { t = Transpose(w) m = Mul(t, s) e = Exp(m) y = Add(x, e) }",
        w=A,
        s=np.float32(2),
    )
    found = candidates(graph, RULE)
    assert [c.nodes for c in found] == [("n0",), ("n0", "n1"), ("n0", "n1", "n2")]
    result = apply(graph, found[-1], all_rules())
    assert ops(result) == {"Add": 1}
    (folded,) = result.initializers()
    np.testing.assert_allclose(folded.const_value.numpy(), np.exp(A.T * 2), rtol=1e-6)


def test_shared_part_of_a_chain_stays_for_its_other_readers():
    graph = graph_of(
        "(float[4,3] x) => (float[4,3] y, float[4,3] z) { t = Transpose(w) e = Exp(t) y = Add(x, e) z = Mul(x, t) }",
        w=A,
    )
    last = next(c for c in candidates(graph, RULE) if c.anchor == "n1")
    assert last.nodes == ("n1",)
    assert last.bytes_delta == A.nbytes


def test_large_results_are_refused():
    graph = load(case_path("folding_inflates_model"))
    assert candidates(graph, RULE) == []
    assert reasons(graph, RULE) == ["folding would add 16.0 MiB to the model, more than 1.0 MiB"]


def test_large_results_that_replace_as_much_are_folded():
    w = RNG.standard_normal((600, 600)).astype("f4")
    text = "(float[600,600] x) => (float[600,600] y) { t = Transpose(w) y = Add(x, t) }"
    assert candidates(graph_of(text, w=w), RULE)[0].bytes_delta == 0
    shared = text.replace("y = Add(x, t)", "z = Sub(x, w) y = Add(z, t)")
    assert reasons(graph_of(shared, w=w), RULE) == [
        "folding would add 1.4 MiB to the model, more than 1.0 MiB"
    ]


def test_large_intermediate_results_are_refused():
    graph = graph_of(
        "(float[1] x) => (float[] y) { c = ConstantOfShape(s) m = ReduceMax<keepdims=0>(c) y = Add(x, m) }",
        s=np.array([5000, 5000]),
    )
    assert "'c' on the way has 95.4 MiB" in reasons(graph, RULE)


def test_default_that_callers_may_override_is_not_folded():
    graph = load(case_path("initializer_is_overridable_input"))
    assert candidates(graph, RULE) == []


def test_random_quantised_and_custom_nodes_are_refused():
    random = graph_of(
        "(float[4] x) => (float[4] y) { r = RandomNormalLike(w) y = Add(x, r) }", w=np.ones(4, "f4")
    )
    assert reasons(random, RULE) == ["RandomNormalLike is not among the operators that are folded"]
    quantised = load(case_path("qdq_int8_weight_reshape"))
    assert candidates(quantised, RULE) == []
    custom = graph_of(
        "(float[4] x) => (float[4] y) { r = my.ops.Gate(w) y = Add(x, r) }",
        domains={"my.ops": 1},
        w=np.ones(4, "f4"),
    )
    assert reasons(custom, RULE) == ["my.ops::Gate is not among the operators that are folded"]


def test_strings_are_refused():
    graph = graph_of(
        "(string[9] x) => (bool[9] y) { c = Concat<axis=0>(a, a) y = Equal(x, c) }",
        opset=19,
        a=np.array(["explorer"]),
    )
    assert reasons(graph, RULE) == ["'a' holds strings"]


def test_results_of_unknown_size_are_refused():
    graph = graph_of("(float[4] x) => (int64[?,?] y) { c = NonZero(w) y = Identity(c) }", w=np.ones(4, "f4"))
    assert reasons(graph, RULE)[0] == "NonZero is not among the operators that are folded"


def test_result_that_is_an_output_gets_an_identity_once():
    graph = graph_of("(float[4] x) => (float[4] y, float[3,4] z) { y = Neg(x) z = Add(a, b) }", a=A, b=B)
    result = apply_all(graph, RULE)
    assert ops(result) == {"Neg": 1, "Identity": 1}
    assert [v.name for v in result.outputs] == ["y", "z"]


def test_constants_captured_by_a_loop_body_are_folded_there():
    graph = graph_of(
        """(int64 n, bool c, float[3,4] x) => (float[3,4] y) {
            y = Loop(n, c, x) <body = b (int64 i, bool ci, float[3,4] v) => (bool co, float[3,4] o) {
                co = Identity(ci)
                h = Add(a, b2)
                o = Mul(v, h)
            }>
        }""",
        a=A,
        b2=B,
    )
    assert ops(apply_only(graph, RULE)) == {"Loop": 1, "Identity": 1, "Mul": 1}


def test_evaluator_that_fails_says_so():
    graph = graph_of(
        "(float[4] x) => (float[4] y) { c = Gather(a, i) y = Add(x, c) }", a=A[0], i=np.array(99)
    )
    (candidate,) = candidates(graph, RULE)
    with pytest.raises(RewriteError, match="the reference evaluator fails on Gather"):
        apply(graph, candidate, all_rules())


def test_nothing_is_left_to_fold_afterwards():
    graph = graph_of("(float[4,3] x) => (float[4,3] y) { t = Transpose(w) e = Exp(t) y = Add(x, e) }", w=A)
    assert candidates(apply_all(graph, RULE), RULE) == []
