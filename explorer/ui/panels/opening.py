"""Choose a model (sample, path, upload) and the target its time counts on."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets as widgets

from explorer.graph import sample_names
from explorer.session import Snapshot
from explorer.ui.panels.parts import button, row

LEVELS = (("all", "all"), ("extended", "extended"), ("basic", "basic"), ("disable", "disable (as written)"))
OpenModel = Callable[[str | bytes, str | None], None]


class OpeningPanel:
    """Pick a model and a target.

    Args:
        open_model: called with a path, a sample name or bytes, and a name for bytes.
        set_target: called with a target spec.
        set_opt_in: called with whether rules of class D and A are offered.
    """

    def __init__(
        self, open_model: OpenModel, set_target: Callable[[str], None], set_opt_in: Callable[[bool], None]
    ) -> None:
        self._open_model = open_model
        self._set_target = set_target
        self._muted = False
        options = [("choose a sample …", ""), *((name, name) for name in sample_names())]
        self.sample = widgets.Dropdown(options=options, description="Model", layout={"width": "270px"})
        self.path = widgets.Text(placeholder="or the path of an .onnx file", layout={"width": "260px"})
        self.open = button("Open", "Open the model at this path", self._open_path)
        self.upload = widgets.FileUpload(accept=".onnx", multiple=False, description="Upload")
        levels = [(title, level) for level, title in LEVELS]
        self.level = widgets.Dropdown(options=levels, description="ORT level", layout={"width": "230px"})
        self.threads = widgets.BoundedIntText(
            value=1, min=1, max=256, description="Threads", layout={"width": "150px"}
        )
        self.opt_in = widgets.Checkbox(
            value=False, description="also domain-restricted rules", indent=False, layout={"width": "210px"}
        )
        self.sample.observe(self._on_sample, "value")
        self.path.on_submit(lambda _text: self._open_path())
        self.upload.observe(self._on_upload, "value")
        self.level.observe(self._on_target, "value")
        self.threads.observe(self._on_target, "value")
        self.opt_in.observe(lambda change: None if self._muted else set_opt_in(bool(change["new"])), "value")
        self.box = widgets.VBox(
            [row(self.sample, self.path, self.open, self.upload), row(self.level, self.threads, self.opt_in)]
        )

    @property
    def target(self) -> str:
        """The spec of the target that is chosen."""
        return f"ort:level={self.level.value},threads={self.threads.value}"

    def render(self, snapshot: Snapshot) -> None:
        """Show what is open without triggering anything."""
        self._muted = True
        try:
            self.sample.value = snapshot.name if snapshot.name in sample_names() else ""
            self.opt_in.value = snapshot.is_opt_in
            options = dict(part.split("=") for part in snapshot.target.partition(":")[2].split(","))
            self.level.value = options.get("level", self.level.value)
            self.threads.value = int(options.get("threads", self.threads.value))
        finally:
            self._muted = False

    def disable(self, is_busy: bool) -> None:
        """No other model or target while something is measured."""
        for widget in (self.sample, self.path, self.open, self.upload, self.level, self.threads, self.opt_in):
            widget.disabled = is_busy

    def _on_sample(self, change: dict[str, str]) -> None:
        if change["new"] and not self._muted:
            self._open_model(change["new"], None)

    def _open_path(self) -> None:
        if self.path.value.strip():
            self._open_model(self.path.value.strip(), None)

    def _on_upload(self, change: dict[str, tuple[dict[str, object], ...]]) -> None:
        for item in change["new"]:
            content = item["content"]
            if isinstance(content, memoryview | bytes):
                self._open_model(bytes(content), str(item["name"]).removesuffix(".onnx"))

    def _on_target(self, _change: object) -> None:
        if not self._muted:
            self._set_target(self.target)
