"""``FileUpload``: a button that sends a file in pieces.

ipywidgets' own button sends the file as one message, and Jupyter's servers close the connection on
messages of more than 10 MB: most models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from explorer.errors import InputError

_FOLDER = Path(__file__).parent
MOST_BYTES = 2**31 - 1  # what one ONNX file can hold
OnFile = Callable[[bytes, str], None]
OnError = Callable[[BaseException], None]


class FileUpload(anywidget.AnyWidget):
    """A button for one file at a time.

    Args:
        on_file: called with the content and the name of each file that has arrived.
        on_error: called with an InputError if a file is too large or was cut off.

    Attributes:
        label: text of the button.
        accept: suffixes that the file chooser offers.
        disabled: whether it can be pressed.
    """

    _esm = _FOLDER / "upload.js"
    _css = _FOLDER / "upload.css"

    label = traitlets.Unicode("Upload").tag(sync=True)
    accept = traitlets.Unicode(".onnx").tag(sync=True)
    disabled = traitlets.Bool(False).tag(sync=True)

    def __init__(self, on_file: OnFile, on_error: OnError) -> None:
        super().__init__()
        self._on_file, self._on_error = on_file, on_error
        self._name, self._size, self._content = "", 0, bytearray()
        self.on_msg(self._on_message)

    def __repr__(self) -> str:
        return f"FileUpload({self.label!r})"

    def _on_message(self, _widget: object, content: Mapping[str, Any], buffers: Sequence[Any]) -> None:
        if content.get("kind") == "start":
            self._start(str(content.get("name", "")), int(content.get("size", 0)))
        elif content.get("kind") == "piece" and buffers:
            self._add(bytes(buffers[0]), int(content.get("offset", -1)))

    def _start(self, name: str, size: int) -> None:
        self._name, self._size, self._content = name, size, bytearray()
        if size > MOST_BYTES:
            self.send({"kind": "stop"})
            self._on_error(InputError(f"'{name}' is larger than 2 GB; give its path instead."))
        elif size == 0:
            self._finish()
        else:
            self.send({"kind": "next", "offset": 0})

    def _add(self, piece: bytes, offset: int) -> None:
        if offset != len(self._content) or offset + len(piece) > self._size:
            self.send({"kind": "stop"})
            self._on_error(InputError(f"'{self._name}' did not arrive in one piece; upload it again."))
            return
        self._content += piece
        if len(self._content) < self._size:
            self.send({"kind": "next", "offset": len(self._content)})
        else:
            self._finish()

    def _finish(self) -> None:
        content, self._content = bytes(self._content), bytearray()
        self.send({"kind": "stop"})
        self._on_file(content, self._name)
