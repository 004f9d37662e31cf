"""Saved files pass the checker, keep the interface, and appear whole or not at all."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from explorer.errors import ModelError, RewriteError
from explorer.graph import load, save
from explorer.graph.save import weights_bytes
from tests import models

saving = import_module("explorer.graph.save")  # the package gives the name to the function
TEXT = "(float[1,64] x) => (float[1,32] y) { h = MatMul(x, w) y = Add(h, b) }"


@pytest.fixture
def proto(rng: np.random.Generator) -> onnx.ModelProto:
    w, b = rng.standard_normal((64, 32), dtype="f4"), rng.standard_normal(32, dtype="f4")
    return models.model(TEXT, w=w, b=b)


def side_files(path: Path) -> set[str]:
    return {other.name for other in path.parent.iterdir()} - {path.name}


@pytest.mark.parametrize("case", [case["name"] for case in models.cases()])
def test_every_case_is_saved_with_its_interface(case: str, tmp_path: Path) -> None:
    original = onnx.load(models.case_path(case))
    graph = load(models.case_path(case))
    saved = onnx.load(save(graph, tmp_path / "saved.onnx"))
    onnx.checker.check_model(saved)
    assert [v.SerializeToString() for v in saved.graph.input] == [
        v.SerializeToString() for v in original.graph.input
    ]
    assert [(v.name, v.type.tensor_type.elem_type) for v in saved.graph.output] == [
        (v.name, v.type.tensor_type.elem_type) for v in original.graph.output
    ]
    assert saved.opset_import == original.opset_import
    assert load(tmp_path / "saved.onnx").fingerprint() == graph.fingerprint()


@pytest.mark.parametrize("case", [c["name"] for c in models.cases() if c["name"] != "unknown_custom_op"])
def test_every_case_still_computes_its_outputs(case: str) -> None:
    graph = load(models.case_path(case))
    for feeds, expected in models.case_runs(case):
        for found, wanted in zip(models.run(graph, feeds), expected.values(), strict=True):
            if wanted.dtype == object:
                assert found.tolist() == wanted.tolist()
            else:
                np.testing.assert_allclose(found, wanted, atol=1e-4, rtol=1e-4)


def test_metadata_survives(proto: onnx.ModelProto, tmp_path: Path) -> None:
    proto.producer_name, proto.domain, proto.doc_string, proto.model_version = "me", "org.me", "words", 7
    proto.metadata_props.add(key="author", value="someone")
    proto.graph.node[0].doc_string = "the product"
    proto.graph.input[0].doc_string = "the input"
    saved = onnx.load(save(load(proto), tmp_path / "m.onnx"))
    assert (saved.producer_name, saved.domain, saved.doc_string, saved.model_version) == (
        "me",
        "org.me",
        "words",
        7,
    )
    assert [(p.key, p.value) for p in saved.metadata_props] == [("author", "someone")]
    assert saved.graph.node[0].doc_string == "the product"
    assert saved.graph.input[0].doc_string == "the input"


def test_symbolic_dims_and_overridable_weights_stay(tmp_path: Path) -> None:
    text = "(float[batch,4] x, float[4] w = {1,2,3,4}) => (float[batch,4] y) { y = Mul(x, w) }"
    saved = onnx.load(save(load(models.model(text)), tmp_path / "m.onnx"))
    assert saved.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert [v.name for v in saved.graph.input] == ["x", "w"]
    assert [t.name for t in saved.graph.initializer] == ["w"]


def test_large_weights_go_beside_the_model(proto: onnx.ModelProto, tmp_path: Path) -> None:
    graph = load(proto)
    assert weights_bytes(graph) == 4 * (64 * 32 + 32)
    path = save(graph, tmp_path / "big.onnx", embed_limit_bytes=1000)
    assert side_files(path) == {"big.onnx.data"}
    assert path.stat().st_size < 1000 < (tmp_path / "big.onnx.data").stat().st_size == 64 * 32 * 4
    onnx.checker.check_model(str(path))
    x = np.ones((1, 64), "f4")
    direct = models.run(proto, {"x": x})[0]
    np.testing.assert_array_equal(models.run(path, {"x": x})[0], direct)
    np.testing.assert_array_equal(models.run(load(path), {"x": x})[0], direct)
    assert load(path).fingerprint() == graph.fingerprint()


def test_external_weights_can_be_written_again_elsewhere(proto: onnx.ModelProto, tmp_path: Path) -> None:
    first = save(load(proto), tmp_path / "a.onnx", embed_limit_bytes=1000)
    graph = load(first)
    view = graph.model.graph.initializers["w"].const_value.numpy()
    kept = view.copy()
    second = save(graph, tmp_path / "b.onnx", embed_limit_bytes=1000)
    (tmp_path / "a.onnx.data").unlink()
    np.testing.assert_array_equal(view, kept)
    assert load(second).fingerprint() == load(proto).fingerprint()


def test_weights_that_are_still_read_are_not_overwritten(proto: onnx.ModelProto, tmp_path: Path) -> None:
    path = save(load(proto), tmp_path / "m.onnx", embed_limit_bytes=1000)
    graph = load(path)
    before = (tmp_path / "m.onnx.data").read_bytes()
    with pytest.raises(
        ModelError, match=r"'m.onnx.data' holds the weights of the model that is open; choose another"
    ):
        save(graph, path, embed_limit_bytes=1000)
    with pytest.raises(ModelError, match="choose another name"):
        save(load(path), tmp_path / "sub" / ".." / "m.onnx", embed_limit_bytes=1000)
    assert (tmp_path / "m.onnx.data").read_bytes() == before
    save(graph, path)  # embedded: the side file is not touched
    assert (tmp_path / "m.onnx.data").read_bytes() == before
    assert load(path).fingerprint() == graph.fingerprint()


def test_saving_twice_replaces_the_first_file(proto: onnx.ModelProto, tmp_path: Path) -> None:
    path = save(load(models.chain(3)), tmp_path / "m.onnx")
    assert save(load(proto), path, embed_limit_bytes=10) == path
    assert save(load(proto), path, embed_limit_bytes=10) == path
    assert len(load(path).nodes) == 2
    assert side_files(path) == {"m.onnx.data"}


def test_the_graph_is_not_changed(proto: onnx.ModelProto, tmp_path: Path) -> None:
    graph = load(proto)
    before = ir.serde.serialize_model(graph.model).SerializeToString()
    tensors = [v.const_value for v in graph.initializers()]
    save(graph, tmp_path / "a.onnx", embed_limit_bytes=10)
    assert [v.const_value for v in graph.initializers()] == tensors
    assert ir.serde.serialize_model(graph.model).SerializeToString() == before


def test_a_broken_rewrite_is_not_saved(proto: onnx.ModelProto, tmp_path: Path) -> None:
    graph = load(proto).clone()
    graph.nodes[0].attributes["alpha"] = ir.AttrFloat32("alpha", 1.0)
    with pytest.raises(
        RewriteError, match=r"^'model' was not saved: the ONNX checker says: Unrecognized attribute"
    ):
        save(graph, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_what_the_checker_refused_already_can_be_saved(proto: onnx.ModelProto, tmp_path: Path) -> None:
    proto.ir_version = 99
    graph = load(proto)
    assert not graph.passes_checker
    assert onnx.load(save(graph.clone(), tmp_path / "m.onnx")).ir_version == 99


def test_folders_are_made_and_places_that_cannot_be_written_named(
    proto: onnx.ModelProto, tmp_path: Path
) -> None:
    graph = load(proto)
    assert save(graph, tmp_path / "new" / "deep" / "m.onnx").is_file()
    with pytest.raises(ModelError, match="is a folder; add a file name"):
        save(graph, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match=r"file/m.onnx' cannot be written: (Not a directory|File exists)"):
        save(graph, tmp_path / "file" / "m.onnx")


def test_nothing_is_left_behind_when_writing_fails(
    proto: onnx.ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(load(proto), tmp_path / "m.onnx")
    before = path.read_bytes()

    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ir, "save", full_disk)
    with pytest.raises(ModelError, match=r"m.onnx' cannot be written: No space left on device\.$"):
        save(load(models.chain(2)), path)
    assert path.read_bytes() == before
    assert side_files(path) == set()


def test_a_file_that_nothing_could_read_again_is_not_written(
    proto: onnx.ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(load(models.chain(1)), tmp_path / "m.onnx")
    before = path.read_bytes()
    monkeypatch.setattr(saving, "FILE_LIMIT_BYTES", 5000)
    with pytest.raises(ModelError, match=r"m.onnx' was not written: it would be larger than 2 GB"):
        save(load(proto), path)
    assert path.read_bytes() == before
    assert side_files(path) == set()
    save(load(proto), path, embed_limit_bytes=5000)
    assert side_files(path) == {"m.onnx.data"}


def test_the_limit_is_what_a_protobuf_can_hold() -> None:
    assert saving.EMBED_LIMIT_BYTES < saving.FILE_LIMIT_BYTES == 2**31 - 1
