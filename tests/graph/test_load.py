"""What can be opened, what is said about it, and what is refused in one sentence."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from explorer.errors import InputError, ModelError
from explorer.graph import describe, load, sample_names
from tests import models

RELU = "(float[1,3] x) => (float[1,3] y) { y = Relu(x) }"


@pytest.fixture
def relu_file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.onnx"
    onnx.save(models.model(RELU), path)
    return path


def refusal(source, **options) -> str:
    """The message of the ModelError, which must be one line without a traceback's traces."""
    with pytest.raises(ModelError) as caught:
        load(source, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


def test_every_kind_of_source_gives_the_same_graph(relu_file: Path) -> None:
    proto = models.model(RELU)
    sources = [
        relu_file,
        str(relu_file),
        relu_file.read_bytes(),
        proto,
        ir.serde.deserialize_model(proto),
    ]
    graphs = [load(source) for source in sources]
    assert len({graph.fingerprint() for graph in graphs}) == 1
    assert [graph.name for graph in graphs] == ["tiny", "tiny", "model", "model", "model"]
    assert [graph.source for graph in graphs] == [relu_file, relu_file, None, None, None]
    assert all(graph.notices == () for graph in graphs)


def test_the_given_name_wins(relu_file: Path) -> None:
    assert load(relu_file, name="mine").name == "mine"
    assert load(relu_file.read_bytes(), name="upload.onnx").name == "upload.onnx"
    assert load("squeezenet1_1", name="squeeze").name == "squeeze"


def test_a_relative_path_and_a_home_folder_work(relu_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(relu_file.parent)
    monkeypatch.setenv("HOME", str(relu_file.parent))
    assert load("tiny.onnx").name == load("./tiny.onnx").name == load("~/tiny.onnx").name == "tiny"


def test_a_sample_name_means_the_sample_unless_it_has_a_suffix(
    relu_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(relu_file.parent)
    relu_file.rename("squeezenet1_1.onnx")
    Path("resnet18").write_text("in the way")
    assert len(load("squeezenet1_1").nodes) == 65
    assert len(load("squeezenet1_1.onnx").nodes) == 1
    assert len(load("resnet18").nodes) == 69


def test_a_missing_file_names_the_samples() -> None:
    message = refusal("no/such/file.onnx")
    assert message.startswith(
        "'no/such/file.onnx' is neither a file nor a sample model; samples are: bert_base"
    )
    assert all(name in message for name in sample_names())


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"'{tmp_path}' is not a file; give the path of an .onnx file."


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.onnx"
    path.touch()
    assert refusal(path) == f"'{path}' is empty; export the model again."
    assert refusal(b"", name="drop.onnx") == "'drop.onnx' is empty; export the model again."


@pytest.mark.parametrize(
    "content",
    [
        b"<!DOCTYPE html><html><body>404: Not Found</body></html>",
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
        b"PK\x03\x04" + b"\x00" * 100,
        np.random.default_rng(3).bytes(5000),
    ],
    ids=["html", "png", "zip", "random"],
)
def test_other_kinds_of_files_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "download.onnx"
    path.write_bytes(content)
    message = refusal(path)
    assert message.startswith(f"'{path}' is not an ONNX model (")
    assert message.endswith("; give an .onnx file.")


def test_a_git_lfs_pointer_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    assert refusal(path).endswith("is a Git LFS pointer, not the model itself; fetch it with `git lfs pull`.")


def test_a_protobuf_without_a_graph_is_refused() -> None:
    message = refusal(onnx.ModelProto(ir_version=8, producer_name="nobody").SerializeToString())
    assert message == "'the uploaded model' is not an ONNX model (it holds no graph); give an .onnx file."


def test_every_truncation_is_refused_or_opens_without_a_traceback(relu_file: Path) -> None:
    data = models.model("(float[1,3] x) => (float[1,4] y) { y = MatMul(x, w) }", w=np.ones((3, 4), "f4"))
    whole = data.SerializeToString()
    refused = 0
    for length in range(1, len(whole)):
        try:
            load(whole[:length])
        except ModelError:
            refused += 1
    assert refused > len(whole) * 0.9


def test_flipped_bits_are_refused_or_open_without_a_traceback() -> None:
    whole = bytearray(
        models.model(
            "(float[1,3] x) => (float[1,4] y) { h = MatMul(x, w) c = Constant<value_ints=[1,4]>() y = Reshape(h, c) }",
            w=np.ones((3, 4), "f4"),
        ).SerializeToString()
    )
    rng = np.random.default_rng(7)
    outcomes = {"opened": 0, "refused": 0}
    for _ in range(400):
        data = bytearray(whole)
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        try:
            graph = load(bytes(data))
            describe(graph)
            graph.fingerprint()
            outcomes["opened"] += 1
        except ModelError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 40


def test_an_unreadable_path_is_refused() -> None:
    assert "cannot be read: File name too long." in refusal("x" * 5000 + ".onnx")
    assert "is neither a file nor a sample" in refusal("with\0nul.onnx")
    assert "cannot be read" in refusal("~no_such_user_here/model.onnx")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission_is_refused(relu_file: Path) -> None:
    relu_file.chmod(0)
    assert refusal(relu_file) == f"'{relu_file}' cannot be read: Permission denied."


def test_a_file_beyond_two_gigabytes_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.onnx"
    with path.open("wb") as file:
        file.truncate(2**31)  # sparse: takes no room
    assert "is larger than 2 GB" in refusal(path)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(InputError, match="must be 0 or more, not -1"):
        load("resnet18", fill_weights=-1)


def test_more_weights_than_memory_are_refused() -> None:
    text = "(float[1,4] x, float[4,4611686018427387] w) => (float[1,4611686018427387] y) { y = MatMul(x, w) }"
    message = refusal(models.model(text), fill_weights=0, name="vast.onnx")
    assert message.startswith("The weights of 'vast.onnx' would take 73,786,976 GB, more than the ")


def test_the_caller_s_protobuf_is_left_alone() -> None:
    proto = models.model("(float[-1,3] x) => (float[1,3] y) { y = Relu(x) }", ir_version=3)
    before = proto.SerializeToString()
    load(proto)
    assert proto.SerializeToString() == before


def test_training_information_is_dropped_with_a_notice() -> None:
    proto = models.model(RELU)
    proto.training_info.add().algorithm.name = "sgd"
    assert load(proto).notices == ("The file's training information is not kept.",)


def test_the_checker_s_complaint_is_a_notice() -> None:
    proto = models.model(RELU)
    proto.ir_version = 99
    graph = load(proto)
    (notice,) = graph.notices
    assert notice.startswith("The ONNX checker objects to this model: Your model ir_version 99 is higher")
    assert not graph.passes_checker


def test_a_node_of_the_wrong_name_encoding_is_refused() -> None:
    data = models.chain(1).SerializeToString().replace(b"Relu_0", b"\xff\xfe\xfd\xfc\xfb\xfa")
    assert "holds a name that is not UTF-8 text" in refusal(data)


def test_an_old_opset_opens() -> None:
    graph = load(models.case_path("upsample_opset9"))
    assert graph.opset() == 9
    assert [node.op_type for node in graph.nodes] == ["Upsample", "Relu"]
    feeds, expected = models.case_runs("upsample_opset9")[0]
    for found, wanted in zip(models.run(graph, feeds), expected.values(), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_name_cannot_break_the_message() -> None:
    message = refusal(b"", name="<b>\n\x1b[31mred" + "x" * 1000)
    assert "\x1b" not in message
    assert len(message) < 250
