"""External weight files: found beside the model from anywhere, never outside its folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from explorer.errors import ModelError
from explorer.graph import describe, load, save
from explorer.graph.external import embed
from tests import models

W = np.arange(6, dtype=np.float32).reshape(2, 3)


def external(location: str, name: str = "w", dims=(2, 3), **entries: object) -> onnx.TensorProto:
    tensor = onnx.TensorProto(name=name, dims=dims, data_type=TensorProto.FLOAT)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def write(folder: Path, tensor: onnx.TensorProto, data: bytes | None = W.tobytes()) -> Path:
    proto = models.model("(float[1,2] x) => (float[1,3] y) { y = MatMul(x, w) }")
    proto.graph.initializer.append(tensor)
    folder.mkdir(exist_ok=True)
    path = folder / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    if data is not None:
        (folder / "w.bin").write_bytes(data)
    return path


def complaint(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith("'m.onnx': tensor 'w' keeps its data in '")
    assert "\n" not in message
    return message


def result(path: Path) -> np.ndarray:
    (y,) = models.run(load(path), {"x": np.array([[1, 10]], "f4")})
    return y


def test_the_case_computes_what_it_should_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = load(models.case_path("external_data_weights"))
    feeds, expected = models.case_runs("external_data_weights")[0]
    for found, wanted in zip(models.run(graph, feeds), expected.values(), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-4)
    assert graph.notices == ()


def test_a_relative_path_survives_a_change_of_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, external("w.bin"))
    monkeypatch.chdir(tmp_path)
    graph = load("m.onnx")
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(models.run(graph, {"x": np.ones((1, 2), "f4")})[0], [[3, 5, 7]])


def test_saving_elsewhere_embeds_the_weights(tmp_path: Path) -> None:
    graph = load(write(tmp_path / "a", external("w.bin")))
    saved = save(graph, tmp_path / "b" / "copy.onnx")
    shutil.rmtree(tmp_path / "a")
    assert [p.name for p in saved.parent.iterdir()] == ["copy.onnx"]
    np.testing.assert_array_equal(result(saved), [[30, 41, 52]])


def test_offset_and_length_are_obeyed(tmp_path: Path) -> None:
    path = write(tmp_path, external("w.bin", offset=8, length=24), b"8 bytes." + W.tobytes() + b"rest")
    np.testing.assert_array_equal(result(path), [[30, 41, 52]])


def test_a_subfolder_and_an_inner_link_are_inside(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "w.bin").write_bytes(W.tobytes())
    np.testing.assert_array_equal(result(write(tmp_path, external("weights/w.bin"), None)), [[30, 41, 52]])
    (tmp_path / "link.bin").symlink_to(tmp_path / "weights" / "w.bin")
    np.testing.assert_array_equal(result(write(tmp_path, external("link.bin"), None)), [[30, 41, 52]])


def test_a_model_reached_through_a_link_reads_beside_the_real_file(tmp_path: Path) -> None:
    path = write(tmp_path / "real", external("w.bin"))
    link = tmp_path / "m.onnx"
    link.symlink_to(path)
    np.testing.assert_array_equal(result(link), [[30, 41, 52]])


@pytest.mark.parametrize(
    "location",
    [
        "../w.bin",
        "sub/../../w.bin",
        "/etc/passwd",
        "C:\\weights\\w.bin",
        "C:w.bin",
        "\\\\server\\share\\w.bin",
        "\\w.bin",
        "..\\w.bin",
        "",
    ],
)
def test_places_outside_the_folder_are_refused(location: str, tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(W.tobytes())
    message = complaint(write(tmp_path / "model", external(location), None))
    assert message.endswith("which is not inside the model's folder; move the file beside the model.")


def test_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(W.tobytes())
    path = write(tmp_path / "model", external("w.bin"), None)
    (path.parent / "w.bin").symlink_to(secret)
    assert "a link that leads out of the model's folder" in complaint(path)


def test_a_folder_that_leads_out_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "w.bin").write_bytes(W.tobytes())
    path = write(tmp_path / "model", external("sub/w.bin"), None)
    (path.parent / "sub").symlink_to(tmp_path / "outside", target_is_directory=True)
    assert "a link that leads out of the model's folder" in complaint(path)


def test_a_hard_link_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(W.tobytes())
    path = write(tmp_path / "model", external("w.bin"), None)
    os.link(secret, path.parent / "w.bin")
    assert "a file with several names (hard links)" in complaint(path)


def test_missing_data_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, external("w.bin"), None)
    assert complaint(path) == (
        "'m.onnx': tensor 'w' keeps its data in 'w.bin', which is missing; put that file beside the model."
    )
    (tmp_path / "w.bin").mkdir()
    assert "which is missing" in complaint(path)


def test_data_that_is_too_short_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, external("w.bin"), W.tobytes()[:-1])
    assert complaint(path).endswith("which is too short (23 bytes, 24 needed); download it again.")
    path = write(tmp_path, external("w.bin", offset=4))
    assert complaint(path).endswith("which is too short (24 bytes, 28 needed); download it again.")


@pytest.mark.parametrize("length", [1, 100])
def test_a_length_that_does_not_fit_the_shape_is_refused(length: int, tmp_path: Path) -> None:
    message = complaint(write(tmp_path, external("w.bin", length=length), W.tobytes() * 9))
    assert message.endswith(f", with {length} bytes where 24 are needed; export the model again.")


@pytest.mark.parametrize("entries", [{"offset": -4}, {"length": -24}, {"offset": "here"}, {"length": "²"}])
def test_impossible_places_are_refused(entries: dict[str, object], tmp_path: Path) -> None:
    path = write(tmp_path, external("w.bin", **entries))
    with pytest.raises(ModelError) as caught:
        load(path)
    ((key, value),) = entries.items()
    assert str(caught.value) == (
        f"'{path}': tensor 'w' keeps its data in another file at an impossible place "
        f"({key} '{value}'); export the model again."
    )


@pytest.mark.parametrize("location", ["x" * 300, "nul\0byte.bin"])
def test_names_that_no_file_can_have(location: str, tmp_path: Path) -> None:
    message = complaint(write(tmp_path, external(location), None))
    assert message.endswith("put that file beside the model.")
    assert len(message) < 300


def test_data_in_attributes_is_checked_and_read_at_once(tmp_path: Path) -> None:
    def constant_model(location: str) -> Path:
        constant = helper.make_node("Constant", [], ["w"], value=external(location))
        proto = models.model("(float[1,2] x) => (float[1,3] y) { w = Identity(x) y = MatMul(x, w) }")
        proto.graph.node[0].CopyFrom(constant)
        path = tmp_path / "m.onnx"
        path.write_bytes(proto.SerializeToString())
        return path

    assert "not inside the model's folder" in complaint(constant_model("../w.bin"))
    (tmp_path / "w.bin").write_bytes(W.tobytes())
    graph = load(constant_model("w.bin"))
    (tmp_path / "w.bin").unlink()
    np.testing.assert_array_equal(models.run(graph, {"x": np.array([[1, 10]], "f4")})[0], [[30, 41, 52]])
    assert describe(graph).nodes[0].attributes == (("value", f"float 2x3 {W.tolist()}"),)


def test_data_of_a_body_is_checked(tmp_path: Path) -> None:
    value = helper.make_tensor_value_info("o", TensorProto.FLOAT, [2, 3])
    body = helper.make_graph(
        [helper.make_node("Identity", ["w"], ["o"])], "b", [], [value], [external("../w.bin")]
    )
    other = helper.make_graph([helper.make_node("Identity", ["x"], ["o"])], "e", [], [value])
    proto = models.model("(float[2,3] x, bool c) => (float[2,3] y) { y = Relu(x) }")
    proto.graph.node[0].CopyFrom(helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=other))
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    assert "not inside the model's folder" in complaint(path)


def test_strings_cannot_be_external(tmp_path: Path) -> None:
    tensor = external("w.bin")
    tensor.data_type = TensorProto.STRING
    with pytest.raises(ModelError, match="keeps strings in another file"):
        load(write(tmp_path, tensor))


def test_a_model_from_memory_has_no_folder(tmp_path: Path) -> None:
    data = write(tmp_path, external("w.bin")).read_bytes()
    for source in (data, onnx.ModelProto.FromString(data)):
        with pytest.raises(
            ModelError, match=r"^'the uploaded model' keeps tensor 'w' in a file of its own; open it"
        ):
            load(source)


def test_large_data_is_not_read_on_opening(tmp_path: Path) -> None:
    rows = 2**22
    proto = models.model(f"(float[1,{rows}] x) => (float[1,256] y) {{ y = MatMul(x, w) }}")
    proto.graph.initializer.append(external("w.bin", dims=(rows, 256)))
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(rows * 1024)  # 4 GiB of nothing
    summary = describe(load(path))
    assert summary.parameters == rows * 256
    assert summary.flops == 2 * rows * 256
    assert summary.nodes[0].inputs[1].bytes == 2**32


def test_embed_copies_external_tensors_only(tmp_path: Path) -> None:
    graph = load(write(tmp_path, external("w.bin")))
    tensor = graph.model.graph.initializers["w"].const_value
    copy = embed(tensor)
    (tmp_path / "w.bin").write_bytes(bytes(24))
    np.testing.assert_array_equal(copy.numpy(), W)
    assert embed(copy) is copy
