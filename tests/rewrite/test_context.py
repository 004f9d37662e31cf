"""What matchers ask: constants, shapes, attributes, neighbours, paths."""

import numpy as np
import onnx_ir as ir
import pytest

from explorer.rewrite import context as ask
from explorer.rewrite.context import Context
from explorer.rewrite.rule import Refusal
from tests.rewrite.harness import graph_of

TEXT = """(bool c, float[N,3] x, float[1,3] d) => (float[N,3] y, float[N,3] z) {
    k = Constant<value=float[2] {7, 7}>()
    a = Mul(x, w)
    b = Add(one, a)
    e = Add(a, b)
    y = Sub(e, d)
    z = If(c) <
        then_branch = t () => (float[N,3] p) { q = Neg(b) p = Add(q, d) },
        else_branch = f () => (float[N,3] r) { r = Abs(x) }
    >
    u = Mul(k, k)
}"""
WEIGHTS = {
    "w": np.array([1, 2, 3], "f4"),
    "one": np.ones((1, 1), "f4"),
    "d": np.zeros((1, 3), "f4"),
    "axes": np.array([0, -1]),
    "words": np.array(["a", "b"]),
    "large": np.zeros(65537, "f4"),
    "empty": np.zeros(0, "f4"),
}


@pytest.fixture(scope="module")
def graph():
    return graph_of(TEXT, **WEIGHTS)


@pytest.fixture(scope="module")
def values(graph):
    found = {v.name: v for v in (*graph.model.graph.inputs, *graph.initializers())}
    return found | {v.name: v for node in graph.nodes for v in node.outputs}


def nodes_of(values, *names):
    return [values[name].producer() for name in names]


def test_constants(values):
    assert ask.is_const(values["w"])
    assert ask.is_const(values["k"])
    for name in ("x", "a", "d"):  # an input, a result, a default that can be overridden
        assert not ask.is_const(values[name])
        assert ask.tensor(values[name]) is None
    assert not ask.is_const(None)
    np.testing.assert_array_equal(ask.array(values["k"]), [7, 7])
    with pytest.raises(Refusal, match="'x' is not a constant"):
        ask.array(values["x"])


def test_scalars_and_uniform_constants(values):
    assert ask.scalar(values["one"]) == 1.0
    assert ask.scalar(values["w"]) is None
    assert ask.scalar(values["x"]) is None
    assert ask.uniform(values["k"]) == 7.0
    assert ask.uniform(values["w"]) is None
    assert ask.uniform(values["words"]) is None
    assert ask.uniform(values["empty"]) is None
    assert ask.uniform(values["large"]) is None, "large constants are not scanned"


def test_integers(values):
    assert ask.integers(values["axes"]) == (0, -1)
    assert ask.integers(values["w"]) is None
    assert ask.integers(values["words"]) is None
    assert ask.integers(values["x"]) is None


def test_bytes(values):
    assert ask.nbytes(values["w"]) == 12
    assert ask.nbytes(values["words"]) == 2
    assert ask.nbytes(values["x"]) == 0
    assert ask.element_bytes(values["x"]) == 4
    assert ask.element_bytes(ir.Value(name="?")) == 0


def test_shapes(values):
    assert ask.dims(values["w"]) == (3,)
    assert ask.dims(values["x"]) is None
    assert ask.rank(values["x"]) == 2
    assert ask.rank(None) is None
    assert ask.rank(ir.Value(name="?")) is None
    assert ask.dim(values["x"], 0) == "N"
    assert ask.dim(values["x"], -1) == 3
    assert ask.dim(values["x"], 2) is None
    assert ask.shape_of(values["x"]) == ("N", 3)
    assert ask.shape_of(ir.Value(name="?")) is None


def test_equal_shapes_are_proved_not_assumed(values):
    assert ask.same_shape(values["x"], values["a"])
    assert not ask.same_shape(values["x"], values["d"])
    assert not ask.same_shape(values["x"], None)
    unnamed = ir.Value(name="?", shape=ir.Shape([None, 3]))
    assert not ask.same_shape(unnamed, unnamed)


def test_neighbours(values):
    a, b, e = nodes_of(values, "a", "b", "e")
    assert ask.producer(values["a"], "Mul") is a
    assert ask.producer(values["a"], "Add") is None
    assert ask.producer(values["x"]) is None
    assert set(ask.readers(values["a"])) == {b, e}
    assert ask.sole_reader(values["a"]) is None
    assert ask.sole_reader(values["e"], "Sub") is values["y"].producer()
    assert ask.sole_reader(values["e"], "Mul") is None
    assert ask.sole_reader(values["y"]) is None, "an output has a reader outside"
    assert ask.sole_reader(values["b"]) is None, "a body reads it too"


def test_operands(values):
    a, b, e = nodes_of(values, "a", "b", "e")
    assert ask.operand(a, 1) is values["w"]
    assert ask.operand(a, 5) is None
    assert ask.split_operands(a) == (values["x"], values["w"])
    assert ask.split_operands(b) == (values["a"], values["one"])
    assert ask.split_operands(e) is None
    assert ask.split_operands(values["u"].producer()) is None
    assert ask.constants_of([a, b, e]) == (values["w"], values["one"])


def test_words(values):
    assert ask.text(values["a"]) == "'a'"
    assert ask.text(None) == "an unnamed tensor"
    assert ask.operator(values["a"].producer()) == "Mul"
    assert ask.operator(ir.node("Gelu", [], domain="com.microsoft")) == "com.microsoft::Gelu"
    assert ask.operator(None) == ""
    assert ask.ints(ir.node("Op", [], attributes={"pads": [1, 2]}), "pads", (0,)) == (1, 2)
    assert ask.ints(ir.node("Op", []), "pads", (0,)) == (0,)


def test_bodies(graph, values):
    holder, inner = values["z"].producer(), values["q"].producer()
    assert ask.has_bodies(holder)
    assert not ask.has_bodies(inner)
    assert ask.goes_with(inner, {holder})
    assert ask.goes_with(holder, {holder})
    assert not ask.goes_with(inner, {values["a"].producer()})


def test_paths_follow_captures(graph, values):
    context = Context(graph)
    a, y, z, u = nodes_of(values, "a", "y", "z", "u")
    assert context.reaches(a, y)
    assert context.reaches(a, z), "through a value that a body captures"
    assert not context.reaches(y, a)
    assert not context.reaches(u, z)
    assert context.reaches(a, a)


def test_detours_leave_a_set_and_come_back(graph, values):
    context = Context(graph)
    a, b, e, z = nodes_of(values, "a", "b", "e", "z")
    assert context.detour({a, e}) is b
    assert context.detour({a, b, e}) is None
    assert context.detour({a, z}) is b
    assert context.detour({b, z}) is None


def test_exclusive_nodes_go_together():
    graph = graph_of("""(float[2] x) => (float[2] y, float[2] z) {
        a = Exp(x)
        b = Neg(a)
        c = Abs(b)
        d = Add(c, b)
        y = Relu(d)
        z = Sin(a)
    }""")
    nodes = {v.name: n for n in graph.nodes for v in n.outputs}
    chain = [nodes[name] for name in "dcba"]
    found = ask.exclusive(chain, nodes["y"])
    assert found == (nodes["d"], nodes["c"], nodes["b"]), "a is read by z too"
    assert ask.exclusive([nodes["a"]], nodes["b"]) == ()


def test_freed_bytes_count_what_nothing_else_reads(values):
    a, b, e = nodes_of(values, "a", "b", "e")
    drops = (values["w"], values["one"], None, values["x"], values["w"])
    assert ask.freed_bytes(drops, [a, b]) == 12 + 4
    assert ask.freed_bytes(drops, [a]) == 12
    assert ask.freed_bytes(drops, [e]) == 0


def test_opset_and_order(graph):
    context = Context(graph)
    assert context.opset == 17
    order = [context.position[node] for node in graph.nodes]
    assert order == sorted(order)
