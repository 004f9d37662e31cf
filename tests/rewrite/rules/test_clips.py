"""E9 and E10: Relu, Max, Min and Clip as forms of each other."""

import numpy as np
import pytest

from explorer.graph import load
from explorer.rewrite import default_rules
from tests.models import case_path
from tests.rewrite.harness import (
    apply_checked,
    apply_only,
    assert_inverse_restores,
    candidates,
    graph_of,
    ops,
    reasons,
)

MERGE, MINMAX = "merge-relu-clip", "min-max-to-clip"


def clipped(body, kind="float", opset=17, out="2,3", dtype="f4", **numbers):
    constants = {name: np.array(number, dtype) for name, number in numbers.items()}
    return graph_of(f"({kind}[2,3] x) => ({kind}[{out}] y) {{ {body} }}", opset=opset, **constants)


@pytest.mark.parametrize(
    ("body", "rule", "result"),
    [
        ("y = Max(x, zero)", "max-zero-to-relu", "Relu"),
        ("y = Max(zero, x)", "max-zero-to-relu", "Relu"),
        ("y = Clip(x, zero)", "clip-to-relu", "Relu"),
        ("y = Clip(x, zero, inf)", "clip-to-relu", "Relu"),
        ("y = Relu(x)", "relu-to-max-zero", "Max"),
        ("y = Relu(x)", "relu-to-clip", "Clip"),
    ],
)
@pytest.mark.parametrize(("kind", "dtype"), [("float", "f4"), ("double", "f8"), ("float16", "f2")])
def test_forms_of_relu(body, rule, result, kind, dtype):
    numbers = {n: v for n, v in (("zero", 0.0), ("inf", np.inf)) if n in body}
    assert ops(apply_only(clipped(body, kind, dtype=dtype, **numbers), rule)) == {result: 1}


@pytest.mark.parametrize("rule", ["relu-to-max-zero", "relu-to-clip"])
def test_relu_and_back(rule):
    graph = clipped("y = Relu(x)")
    (candidate,) = candidates(graph, rule)
    assert candidate.bytes_delta == 4
    assert_inverse_restores(graph, candidate)


def test_rules_that_assume_something_about_values_are_opt_in():
    names = {"max-zero-to-relu", "relu-to-max-zero", "clip-to-relu", "relu-to-clip", MINMAX}
    assert not names & {rule.name for rule in default_rules()}


def test_other_bounds_are_no_relu():
    assert candidates(clipped("y = Max(x, c)", c=1.0), "max-zero-to-relu") == []
    assert candidates(clipped("y = Clip(x, z, c)", z=0.0, c=6.0), "clip-to-relu") == []
    assert candidates(clipped("y = Max(x, z)", out="1,2,3", z=np.zeros((1, 1, 1))), "max-zero-to-relu") == []
    computed = clipped("z = Neg(x)  y = Max(x, z)")
    assert candidates(computed, "max-zero-to-relu") == []


@pytest.mark.parametrize(
    "body",
    [
        "m = Max(x, lo)  y = Min(m, hi)",
        "m = Min(hi, x)  y = Max(lo, m)",
    ],
)
def test_min_and_max_become_a_clip(body):
    graph = clipped(body, lo=[-0.5], hi=0.75)
    outer = [c for c in candidates(graph, MINMAX) if len(c.nodes) == 2]
    assert len(outer) == 1
    (node,) = apply_checked(graph, outer[0]).nodes
    assert [v.const_value.numpy().tolist() for v in node.inputs[1:]] == [-0.5, 0.75]


@pytest.mark.parametrize(("body", "inputs"), [("y = Min(x, c)", 3), ("y = Max(c, x)", 2)])
def test_one_bound_alone(body, inputs):
    (node,) = apply_only(clipped(body, c=0.5), MINMAX).nodes
    assert (node.op_type, len(node.inputs)) == ("Clip", inputs)


def test_empty_interval_is_refused_and_max_with_zero_left_to_relu():
    graph = clipped("m = Max(x, lo)  y = Min(m, hi)", lo=2.0, hi=1.0)
    assert reasons(graph, MINMAX) == ["the interval is empty: 2 > 1"]
    assert candidates(clipped("y = Max(x, z)", z=0.0), MINMAX) == []
    assert candidates(clipped("y = Min(x, c, d)", c=0.5, d=0.25), MINMAX) == []


@pytest.mark.parametrize(
    ("body", "bounds"),
    [
        ("r = Relu(x)  y = Clip(r, lo, hi)", [0.0, 1.5]),
        ("r = Relu(x)  y = Clip(r, lo)", [0.0]),
        ("r = Relu(x)  y = Clip(r, , hi)", [0.0, 1.5]),
        ("r = Relu(x)  y = Clip(r, hi)", [1.5]),
        ("r = Relu(x)  y = Clip(r)", [0.0]),
        ("c = Clip(x, lo, hi)  y = Relu(c)", [0.0, 1.5]),
        ("r = Relu(x)  y = Clip(r, lo, lo)", [0.0, -1.0]),
    ],
)
def test_relu_and_clip_merge(body, bounds):
    numbers = {n: np.array(v, "f4") for n, v in (("lo", -1.0), ("hi", 1.5)) if n in body}
    text = body.replace("y =", "v =")  # the sum with u keeps the output reacting where the Clip is constant
    graph = graph_of(f"(float[2,3] x, float[2,3] u) => (float[2,3] y) {{ {text}  y = Add(v, u) }}", **numbers)
    node = next(n for n in apply_only(graph, MERGE).nodes if n.op_type == "Clip")
    assert [v.const_value.numpy().item() for v in node.inputs[1:]] == bounds


def test_bounds_are_attributes_before_opset_11():
    graph = clipped("r = Relu(x)  y = Clip<min=-1.0, max=0.5>(r)", opset=10)
    (candidate,) = candidates(graph, MERGE)
    assert candidate.bytes_delta == 0
    (node,) = apply_checked(graph, candidate).nodes
    assert (node.attributes.get_float("min"), node.attributes.get_float("max")) == (0.0, 0.5)


def test_trap_model_in_double():
    graph = load(case_path("relu_then_clip_negative_min_double"))
    node = next(n for n in apply_only(graph, MERGE).nodes if n.op_type == "Clip")
    low = node.inputs[1].const_value.numpy()
    assert (low.dtype, low.item()) == (np.dtype("f8"), 0.0)


def test_computed_bounds_are_refused_and_shared_relu_stays():
    graph = graph_of("(float[2,3] x, float lo) => (float[2,3] y) { r = Relu(x)  y = Clip(r, lo) }")
    assert reasons(graph, MERGE) == ["bound 'lo' is not a constant number"]
    shared = graph_of(
        "(float[2,3] x) => (float[2,3] y, float[2,3] z) { r = Relu(x)  y = Clip(r, lo)  z = Neg(r) }",
        lo=np.array(0.25, "f4"),
    )
    assert ops(apply_only(shared, MERGE)) == {"Relu": 1, "Clip": 1, "Neg": 1}


def test_match_inside_a_branch():
    graph = graph_of(
        """(bool k, float[2,3] x) => (float[2,3] y) {
            y = If(k) <
                then_branch = t () => (float[2,3] o) { r = Relu(x)  o = Clip(r, lo, hi) },
                else_branch = e () => (float[2,3] q) { q = Neg(x) }
            >
        }""",
        lo=np.array(-1, "f4"),
        hi=np.array(1, "f4"),
    )
    assert ops(apply_only(graph, MERGE)) == {"If": 1, "Clip": 1, "Neg": 1}


@pytest.mark.parametrize("bound", ["high", "w"])
def test_upper_bound_known_at_run_time_only_is_no_relu(bound):
    """Neither an input nor a default that callers may override is an absent bound."""
    graph = graph_of(
        f"(float[5] x, float {bound}) => (float[5] y) {{ y = Clip(x, low, {bound}) }}",
        low=np.float32(0),
        **({"w": np.float32(6)} if bound == "w" else {}),
    )
    assert candidates(graph, "clip-to-relu") == []


@pytest.mark.parametrize(
    ("dtype", "opset", "count"), [("double", 11, 0), ("double", 12, 1), ("float", 11, 1)]
)
def test_relu_becomes_clip_only_where_the_runtime_has_one(dtype, opset, count):
    graph = graph_of(f"({dtype}[5] x) => ({dtype}[5] y) {{ y = Relu(x) }}", opset=opset)
    assert len(candidates(graph, "relu-to-clip")) == count
