from __future__ import annotations

import pytest

from explorer.errors import InputError
from explorer.ui.upload import FileUpload

CONTENT = bytes(range(256)) * 40


class Browser:
    """The other end: sends pieces as it is asked to."""

    def __init__(self, content: bytes, piece: int) -> None:
        self.content, self.piece = content, piece
        self.files: list[tuple[bytes, str]] = []
        self.errors: list[BaseException] = []
        self.said: list[dict[str, object]] = []
        self.upload = FileUpload(lambda data, name: self.files.append((data, name)), self.errors.append)
        self.upload.send = lambda message: self.said.append(message)

    def send(self, name: str, size: int | None = None) -> None:
        size = len(self.content) if size is None else size
        self.upload._handle_custom_msg({"kind": "start", "name": name, "size": size}, [])
        while self.said and self.said[-1]["kind"] == "next":
            offset = int(self.said[-1]["offset"])
            piece = memoryview(self.content[offset : offset + self.piece])
            self.upload._handle_custom_msg({"kind": "piece", "offset": offset}, [piece])


@pytest.mark.parametrize("piece", [1, 1000, 10_240, 99_999])
def test_a_file_arrives_whole_whatever_its_pieces(piece: int):
    browser = Browser(CONTENT[:2000] if piece == 1 else CONTENT, piece)
    browser.send("model.onnx")
    assert browser.files == [(browser.content, "model.onnx")]
    assert browser.errors == []
    assert browser.said[-1] == {"kind": "stop"}


def test_two_files_one_after_the_other():
    browser = Browser(CONTENT, 5000)
    browser.send("a.onnx")
    browser.send("b.onnx")
    assert [name for _, name in browser.files] == ["a.onnx", "b.onnx"]
    assert browser.files[0][0] == browser.files[1][0] == CONTENT


def test_an_empty_file_is_passed_on_to_be_refused_in_words():
    browser = Browser(b"", 10)
    browser.send("empty.onnx")
    assert browser.files == [(b"", "empty.onnx")]


def test_a_file_that_is_too_large_is_refused_before_it_is_sent():
    browser = Browser(CONTENT, 10)
    browser.send("huge.onnx", size=2**31)
    (error,) = browser.errors
    assert isinstance(error, InputError)
    assert str(error) == "'huge.onnx' is larger than 2 GB; give its path instead."
    assert browser.said == [{"kind": "stop"}]


@pytest.mark.parametrize(("offset", "size"), [(7, 100), (0, 20)])
def test_pieces_that_do_not_fit_are_refused(offset: int, size: int):
    browser = Browser(CONTENT, 10)
    browser.upload._handle_custom_msg({"kind": "start", "name": "m.onnx", "size": size}, [])
    browser.upload._handle_custom_msg({"kind": "piece", "offset": offset}, [memoryview(bytes(50))])
    assert browser.files == []
    assert str(browser.errors[0]) == "'m.onnx' did not arrive in one piece; upload it again."
