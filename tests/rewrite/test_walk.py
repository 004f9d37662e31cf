"""What a matcher walked over is noted: as little as its answer depends on."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from explorer.graph import node_id
from explorer.rewrite.context import freed_bytes, producer, sole_reader
from explorer.rewrite.walk import Keys, fresh_notes, is_read_outside, noting, source_of, uses_of, whereabouts
from tests.rewrite.harness import graph_of

TEXT = "(float[4] x) => (float[4] y) { a = Relu(x) b = Mul(a, two) c = Mul(a, two) d = Add(b, c) y = Mul(d, two) }"


def graph():
    return graph_of(TEXT, two=np.array([2], np.float32))


def value(of, name: str) -> ir.Value:
    found = [v for node in of.nodes for v in (*node.inputs, *node.outputs) if v.name == name]
    return found[0]


def seen_by(question) -> set[str]:
    with noting():
        seen = fresh_notes()
        question()
    keys = Keys()
    return {keys[thing] for thing in seen}


def test_a_step_up_is_noted_by_the_node():
    g = graph()
    assert seen_by(lambda: source_of(value(g, "d"))) == {"n3"}
    assert seen_by(lambda: producer(value(g, "d"), "Mul")) == {"n3"}
    assert seen_by(lambda: source_of(value(g, "x"))) == set()


def test_a_step_down_is_noted_by_the_value_and_its_readers():
    g = graph()
    assert seen_by(lambda: uses_of(value(g, "a"))) == {"readers of a", "n1", "n2"}
    assert seen_by(lambda: whereabouts(value(g, "a"))) == {"readers of a"}
    assert seen_by(lambda: sole_reader(value(g, "a"))) == {"readers of a"}
    assert seen_by(lambda: sole_reader(value(g, "d"))) == {"readers of d", "n4"}


def test_readers_come_in_the_order_of_their_ids():
    g = graph()
    first, two = g.nodes[1], value(g, "two")
    first.replace_input_with(1, value(g, "x"))
    first.replace_input_with(1, two)  # now it is the last one to have begun to read it
    assert [(node_id(reader), position) for reader, position in uses_of(two)] == [
        ("n1", 1),
        ("n2", 1),
        ("n4", 1),
    ]


def test_one_reader_outside_is_enough_to_know_that_there_is_one():
    g = graph()
    two, nodes = value(g, "two"), g.nodes
    for inside, witness in ((nodes[1], "n2"), (nodes[2], "n4"), (nodes[4], "n1")):
        assert seen_by(lambda node=inside: is_read_outside(two, lambda reader: reader is node)) == {witness}
        assert is_read_outside(two, lambda reader, node=inside: reader is node)
    every = {nodes[1], nodes[2], nodes[4]}
    assert seen_by(lambda: is_read_outside(two, every.__contains__)) == {"readers of two"}
    assert not is_read_outside(two, every.__contains__)
    assert freed_bytes([two], nodes[1:2]) == 0
    assert freed_bytes([two], every) == 4


def test_nothing_is_noted_outside_and_notes_do_not_mix():
    g = graph()
    with noting():
        outer = fresh_notes()
        with noting():
            inner = fresh_notes()
            source_of(value(g, "d"))
        source_of(value(g, "b"))
    source_of(value(g, "c"))
    assert ([node_id(n) for n in outer], [node_id(n) for n in inner]) == (["n1"], ["n3"])
