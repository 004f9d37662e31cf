"""Fingerprints ignore names, order and storage, and see everything that changes what is computed."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from explorer.graph import Graph, load, save
from explorer.graph.fingerprint import tensor_digest
from tests import models

W = np.array([[1, 2], [3, 4]], "f4")
BASE = "(float[1,2] x, float[1,2] z) => (float[1,2] y) { h = MatMul(x, w) r = LeakyRelu<alpha=0.1>(h) y = Add(r, z) }"


def digest(text: str = BASE, **weights: np.ndarray) -> str:
    return load(models.model(text, **(weights or {"w": W}))).fingerprint()


def structure(text: str = BASE, **weights: np.ndarray) -> str:
    return load(models.model(text, **(weights or {"w": W}))).structure_fingerprint()


def renamed(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Every value and node under another name, bodies included."""
    other = onnx.ModelProto()
    other.CopyFrom(proto)
    names: dict[str, str] = {"": ""}

    def new(name: str) -> str:
        return names.setdefault(name, f"v{len(names)}_{name[::-1]}")

    def visit(graph: onnx.GraphProto) -> None:
        graph.name = "other"
        for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
            value.name = new(value.name)
        for node in graph.node:
            node.name = f"other {node.name}"
            node.input[:] = [new(name) for name in node.input]
            node.output[:] = [new(name) for name in node.output]
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    visit(attribute.g)

    visit(other.graph)
    return other


def shuffled(proto: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """Nodes and initializers in another order, bodies included."""
    other, rng = onnx.ModelProto(), random.Random(seed)
    other.CopyFrom(proto)

    def visit(graph: onnx.GraphProto) -> None:
        for field in (graph.node, graph.initializer):
            entries = list(field)
            rng.shuffle(entries)
            del field[:]
            field.extend(entries)
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    visit(attribute.g)

    visit(other.graph)
    return other


CASES = [case["name"] for case in models.cases() if case["name"] != "external_data_weights"]


@pytest.mark.parametrize("case", CASES)
def test_names_and_order_do_not_matter(case: str) -> None:
    proto = onnx.load(models.case_path(case))
    wanted = load(proto).fingerprint()
    assert load(renamed(proto)).fingerprint() == wanted
    for seed in (1, 2):
        assert load(shuffled(proto, seed)).fingerprint() == wanted
        assert load(shuffled(renamed(proto), seed)).fingerprint() == wanted


def test_the_cases_are_all_different() -> None:
    graphs = [load(models.case_path(case)) for case in CASES]
    assert len({graph.fingerprint() for graph in graphs}) == len(CASES)
    assert len({graph.structure_fingerprint() for graph in graphs}) == len(CASES)


def test_it_is_stable_across_processes() -> None:
    program = "from explorer.graph import load; from tests import models; import sys\n"
    program += "g = load(models.case_path('loop_body_captures_and_passthrough'))\n"
    program += "print(g.fingerprint(), g.structure_fingerprint())"
    root = str(Path(__file__).parents[2])
    outputs = set()
    for seed in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": root}
        run = subprocess.run(
            [sys.executable, "-c", program], env=env, cwd=root, capture_output=True, text=True, check=True
        )
        outputs.add(run.stdout)
    graph = load(models.case_path("loop_body_captures_and_passthrough"))
    assert outputs == {f"{graph.fingerprint()} {graph.structure_fingerprint()}\n"}


def test_it_survives_cloning_saving_and_external_weights(tmp_path: Path) -> None:
    graph = load("squeezenet1_1", fill_weights=3)
    wanted = graph.fingerprint()
    assert graph.clone().fingerprint() == wanted
    assert load(save(graph, tmp_path / "a.onnx")).fingerprint() == wanted
    assert load(save(graph, tmp_path / "b.onnx", embed_limit_bytes=0)).fingerprint() == wanted


def test_float_attributes_count_as_the_file_keeps_them(tmp_path: Path) -> None:
    graph = load(models.model(BASE, w=W)).clone()
    graph.nodes[1].attributes["alpha"] = ir.AttrFloat32("alpha", 0.3)  # not a 32-bit number yet
    changed = Graph(graph.model, name="changed")
    assert changed.fingerprint() != digest()
    assert load(save(changed, tmp_path / "m.onnx")).fingerprint() == changed.fingerprint()
    assert changed.fingerprint() == digest(BASE.replace("0.1", "0.3"))


def test_it_is_hexadecimal_and_cached() -> None:
    graph = load(models.model(BASE, w=W))
    assert len(graph.fingerprint()) == 32
    assert int(graph.fingerprint(), 16) >= 0
    assert graph.fingerprint() is graph.fingerprint()


@pytest.mark.parametrize(
    "other",
    [
        BASE.replace("alpha=0.1", "alpha=0.2"),
        BASE.replace("LeakyRelu<alpha=0.1>", "LeakyRelu"),
        BASE.replace("LeakyRelu<alpha=0.1>", "Relu"),
        BASE.replace("Add(r, z)", "Add(z, r)"),
        BASE.replace("Add(r, z)", "Add(r, r)"),
        BASE.replace("Add(r, z)", "Add(h, z)"),
        BASE.replace("float[1,2] z", "float[2] z"),
        BASE.replace("float[1,2] z", "float[1,1] z"),
        BASE.replace("(float[1,2] x, float[1,2] z)", "(float[1,2] z, float[1,2] x)"),
        BASE.replace("float[1,2] z)", "float[1,2] z, float[1,2] unused)"),
        BASE.replace("=> (float[1,2] y)", "=> (float[1,2] y, float[1,2] h)"),
        BASE.replace("=> (float[1,2] y)", "=> (float[1,2] r)"),
    ],
)
def test_what_is_computed_matters(other: str) -> None:
    assert other != BASE
    assert digest(other, w=W) != digest()
    assert structure(other, w=W) != structure()


@pytest.mark.parametrize(
    "weight",
    [
        np.nextafter(W, np.float32(9)),
        W.T.copy(),
        np.array([[1, 2], [3, -4]], "f4"),
        W.astype("f8"),
        np.pad(W, ((0, 0), (0, 1))),
    ],
    ids=["last bit", "transposed", "sign", "double", "shape"],
)
def test_every_bit_of_a_weight_matters(weight: np.ndarray) -> None:
    assert digest(BASE, w=weight) != digest()
    same_kind = weight.dtype == W.dtype and weight.shape == W.shape
    assert (structure(BASE, w=weight) == structure()) is same_kind


def test_negative_zero_and_nan_are_bits_too() -> None:
    zero, minus, nan = (np.full((2, 2), value, "f4") for value in (0.0, -0.0, np.nan))
    assert len({digest(BASE, w=w) for w in (zero, minus, nan)}) == 3
    assert digest(BASE, w=nan) == digest(BASE, w=nan.copy())


def test_structure_keeps_integers_and_single_floats_and_forgets_other_floats() -> None:
    text = "(float[4] x) => (float[2,2] y) { r = Reshape(x, s) m = Mul(r, k) y = Pow(m, p) }"
    weights = {"s": np.array([2, 2]), "k": np.array([2.0, 3.0], "f4"), "p": np.float32(2.0)}
    base = structure(text, **weights)
    assert structure(text, **weights | {"k": np.array([-7.0, 9.0], "f4")}) == base
    assert structure(text, **weights | {"p": np.nextafter(np.float32(2.0), np.float32(3))}) == base
    assert structure(text, **weights | {"p": np.float32(3.0)}) != base
    assert structure(text, **weights | {"s": np.array([-1, 2])}) != base
    assert structure(text, **weights | {"k": np.ones((2, 2), "f4")}) != base


def test_a_constant_node_is_an_initializer() -> None:
    node = "(float[2] x) => (float[2] y) { k = Constant<value = float[2] {1.5, 2.5}>() y = Add(x, k) }"
    floats = "(float[2] x) => (float[2] y) { k = Constant<value_floats = [1.5, 2.5]>() y = Add(x, k) }"
    weight = "(float[2] x) => (float[2] y) { y = Add(x, k) }"
    wanted = digest(weight, k=np.array([1.5, 2.5], "f4"))
    assert {digest(node, u=W), digest(floats, u=W)} != {wanted}  # an unused weight is stored all the same
    assert load(models.model(node)).fingerprint() == load(models.model(floats)).fingerprint() == wanted
    assert structure(weight, k=np.array([1.5, 2.5], "f4")) == load(models.model(node)).structure_fingerprint()


def test_an_overridable_default_is_not_a_constant() -> None:
    free = "(float[2] x, float[2] k = {1, 2}) => (float[2] y) { y = Add(x, k) }"
    fixed = "(float[2] x) => (float[2] y) { y = Add(x, k) }"
    other = free.replace("{1, 2}", "{1, 3}")
    prints = {load(models.model(free)).fingerprint(), load(models.model(other)).fingerprint()}
    assert len(prints | {digest(fixed, k=np.array([1, 2], "f4"))}) == 3


def test_symbols_matter_by_where_they_repeat() -> None:
    text = "(float[{0},{1}] x, float[{2},4] z) => (float[4] y) {{ y = Relu(k) }}"
    same = digest(text.format("N", "M", "N"), k=np.ones(4, "f4"))
    assert digest(text.format("batch", "time", "batch"), k=np.ones(4, "f4")) == same
    assert digest(text.format("N", "M", "M"), k=np.ones(4, "f4")) != same
    assert digest(text.format("N", "N", "N"), k=np.ones(4, "f4")) != same
    assert digest(text.format("N", "M", "4"), k=np.ones(4, "f4")) != same


def test_a_shared_node_is_not_two_equal_ones() -> None:
    shared = "(float[2] x) => (float[2] y, float[2] z) { h = Relu(x) y = Abs(h) z = Neg(h) }"
    copied = "(float[2] x) => (float[2] y, float[2] z) { h = Relu(x) g = Relu(x) y = Abs(h) z = Neg(g) }"
    assert load(models.model(shared)).fingerprint() != load(models.model(copied)).fingerprint()


def test_who_reads_which_of_two_equal_nodes_matters() -> None:
    start = "(float[2] x) => (float[2] y, float[2] z) { a = Relu(x) b = Relu(x) "
    texts = [
        start + "y = Add(a, a) z = Neg(b) }",
        start + "y = Add(a, b) z = Neg(b) }",
        start + "y = Add(a, a) z = Neg(a) }",
    ]
    assert len({load(models.model(text)).fingerprint() for text in texts}) == 3
    mirrored = start + "y = Add(b, b) z = Neg(a) }"
    assert load(models.model(mirrored)).fingerprint() == load(models.model(texts[0])).fingerprint()


def test_opsets_matter_where_they_are_used() -> None:
    relu = "(float[2] x) => (float[2] y) { y = Relu(x) }"
    base = load(models.model(relu)).fingerprint()
    assert load(models.model(relu, opset=16)).fingerprint() != base
    assert load(models.model(relu, domains={"com.microsoft": 1})).fingerprint() == base


def loop(source: str) -> onnx.ModelProto:
    """A loop in a loop, both carrying a value; the inner body reads ``source``."""

    def body(name: str, nodes, carried: str, result: str) -> onnx.GraphProto:
        inputs = [
            helper.make_tensor_value_info(f"i_{name}", TensorProto.INT64, []),
            helper.make_tensor_value_info(f"c_{name}", TensorProto.BOOL, []),
            helper.make_tensor_value_info(carried, TensorProto.FLOAT, [2]),
        ]
        keep = helper.make_node("Identity", [f"c_{name}"], [f"k_{name}"])
        outputs = [
            helper.make_tensor_value_info(f"k_{name}", TensorProto.BOOL, []),
            helper.make_tensor_value_info(result, TensorProto.FLOAT, [2]),
        ]
        return helper.make_graph([keep, *nodes], name, inputs, outputs)

    inner = body("inner", [helper.make_node("Neg", [source], ["deep"])], "carried_inner", "deep")
    outer = body(
        "outer",
        [helper.make_node("Loop", ["n", "", "carried_outer"], ["got"], body=inner)],
        "carried_outer",
        "got",
    )
    proto = models.model("(int64 n, float[2] x) => (float[2] y) { y = Relu(x) }")
    proto.graph.node[0].CopyFrom(helper.make_node("Loop", ["n", "", "x"], ["y"], body=outer))
    return proto


def test_bodies_are_hashed_with_what_they_capture() -> None:
    prints = {source: load(loop(source)).fingerprint() for source in ("carried_inner", "carried_outer", "x")}
    assert len(set(prints.values())) == 3
    assert load(renamed(loop("carried_outer"))).fingerprint() == prints["carried_outer"]


def test_unused_weights_count() -> None:
    assert digest(BASE, w=W, u=W) != digest()


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=8), st.integers(0, 7))
def test_equal_content_gives_equal_digests(values: list[float], position: int) -> None:
    array = np.array(values, "f4")
    a, b = ir.Tensor(array), ir.Tensor(array.copy())
    assert tensor_digest(a) == tensor_digest(b)
    other = array.copy()
    index = position % len(values)
    other[index] = np.nextafter(other[index], np.float32(0))
    assert (tensor_digest(ir.Tensor(other)) == tensor_digest(a)) is (other.tobytes() == array.tobytes())
    assert tensor_digest(ir.Tensor(array.reshape(1, -1))) != tensor_digest(a)


def test_strings_and_packed_types_have_digests() -> None:
    strings = ir.serde.deserialize_tensor(models.tensor("s", np.array(["a", "b"])))
    others = ir.serde.deserialize_tensor(models.tensor("s", np.array(["ab", ""])))
    assert tensor_digest(strings) != tensor_digest(others)
    packed = helper.make_tensor("q", TensorProto.INT4, [3], [-8, 7, 3])
    raw = ir.serde.serialize_tensor(ir.serde.deserialize_tensor(packed))
    assert tensor_digest(ir.serde.deserialize_tensor(packed)) == tensor_digest(
        ir.serde.deserialize_tensor(raw)
    )


@pytest.mark.parametrize("kind", ["f4", "f8", "f2", "i8", "i4", "u1", "?"])
def test_a_digest_is_that_of_the_stored_bytes(kind: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(kind).T  # not contiguous
    for form in (array, array[0, 0]):
        tensor = ir.Tensor(np.asarray(form))
        expected = hashlib.blake2b(digest_size=16)
        expected.update(repr((tensor.dtype, tuple(tensor.shape))).encode())
        expected.update(np.ascontiguousarray(form).tobytes())
        assert tensor_digest(tensor) == expected.hexdigest()
