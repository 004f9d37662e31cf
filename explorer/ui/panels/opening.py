"""Choose a model (sample, path, upload), where its time counts, how it is timed, which rules are offered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import ipywidgets as widgets

from explorer.graph import sample_names
from explorer.runtime import Mode, Protocol, Target
from explorer.runtime.backend import backend_for, backend_names, is_installed
from explorer.session import Kept, Snapshot, recent
from explorer.ui.panels.parts import button, field, marked
from explorer.ui.upload import FileUpload

_LEVELS = (
    ("ONNX Runtime, all optimisations", "all"),
    ("ONNX Runtime, extended", "extended"),
    ("ONNX Runtime, basic", "basic"),
    ("ONNX Runtime, as written", "disable"),
)
_TIMINGS = (("validated, up to 60 s", Mode.VALIDATED), ("screening, up to 10 s", Mode.SCREENING))
_RULES = (("exact, re-associated", False), ("all, on request too", True))
_CURRENT = "current"
OpenModel = Callable[[str | bytes, str | None], None]


@dataclass(frozen=True)
class OpeningActions:
    """What the bar asks the app to do; ``open_model`` takes a path, a sample's name, or bytes and a name."""

    open_model: OpenModel
    set_target: Callable[[str], None]
    set_opt_in: Callable[[bool], None]
    set_protocol: Callable[[Protocol], None]
    error: Callable[[BaseException], None]


class OpeningPanel:
    """The bar on top: model on the left, how its time is measured on the right."""

    def __init__(self, actions: OpeningActions) -> None:
        self._actions = actions
        self._muted = False
        self._protocol: Protocol | None = None
        self._name = ""
        self.sample = field(widgets.Dropdown(options=_models(""), description="Model"))
        self.path = field(
            widgets.Text(placeholder="path of an .onnx file or a saved session", description="File"),
            grow=True,
        )
        self.open = button("Open", "Open the file at this path (Enter)", self._open_path)
        self.upload = FileUpload(actions.open_model, actions.error)
        self.runtime = marked(
            field(widgets.Dropdown(options=target_options(), description="Runtime")), "runtime"
        )
        self.threads = field(widgets.BoundedIntText(value=1, min=1, max=256, description="Threads"))
        self.timing = field(widgets.Dropdown(options=_TIMINGS, description="Timing"))
        self.opt_in = field(widgets.Dropdown(options=_RULES, description="Rules"))
        self._observe()
        self.box = marked(
            widgets.HBox(
                [self.sample, self.path, self.open, self.upload, self.runtime, self.threads, self.timing,
                 self.opt_in]
            ),
            "bar",
        )  # fmt: skip

    @property
    def target(self) -> str:
        """The spec of the target that is chosen."""
        return str(Target.parse(self.runtime.value).replace(threads=self.threads.value))

    @property
    def protocol(self) -> Protocol:
        """How to time, as chosen."""
        custom = self._protocol if self.timing.value == _CURRENT else None
        return custom or Protocol.of(self.timing.value)

    def render(self, snapshot: Snapshot | None) -> None:
        """Show what is open, if anything, without triggering anything."""
        with self._mute():
            self._show_model("" if snapshot is None else snapshot.name)
            if snapshot is not None and snapshot.name != self._name:
                self._name = snapshot.name
                self.path.value = ""  # the path of a file that is not open misleads
            if snapshot is not None:
                self.opt_in.value = snapshot.is_opt_in
                self._show_target(Target.parse(snapshot.target))
                self._show_protocol(snapshot.protocol)

    def disable(self, is_busy: bool) -> None:
        """No other model or setting while something is measured."""
        for widget in (self.sample, self.path, self.open, self.upload, self.runtime, self.threads,
                       self.timing, self.opt_in):  # fmt: skip
            widget.disabled = is_busy

    def _observe(self) -> None:
        actions = self._actions
        self.sample.observe(self._on_sample, "value")
        self.path.on_msg(self._on_enter)
        for widget, action in (
            (self.runtime, lambda: actions.set_target(self.target)),
            (self.threads, lambda: actions.set_target(self.target)),
            (self.timing, lambda: actions.set_protocol(self.protocol)),
            (self.opt_in, lambda: actions.set_opt_in(bool(self.opt_in.value))),
        ):
            widget.observe(self._unless_muted(action), "value")

    def _unless_muted(self, action: Callable[[], None]) -> Callable[[object], None]:
        return lambda _change: None if self._muted else action()

    @contextmanager
    def _mute(self) -> Iterator[None]:
        self._muted = True
        try:
            yield
        finally:
            self._muted = False

    def _show_model(self, name: str) -> None:
        options = _models(name)
        if tuple(self.sample.options) != options:
            self.sample.options = options
        self.sample.value = name if name in {"", *sample_names()} else _CURRENT
        self.sample.tooltip = name

    def _show_target(self, target: Target) -> None:
        plain = target.replace(threads=1)
        if str(plain) not in [value for _, value in self.runtime.options]:
            self.runtime.options = (*target_options(), (_short(plain), str(plain)))
        self.runtime.value, self.threads.value = str(plain), target.threads
        self.runtime.tooltip = target.label

    def _show_protocol(self, protocol: Protocol) -> None:
        self._protocol = protocol
        known = next((mode for _, mode in _TIMINGS if Protocol.of(mode) == protocol), None)
        if known is None:
            text = f"{protocol.mode}, up to {protocol.budget_ns / 1e9:g} s"
            self.timing.options = (*_TIMINGS, (text, _CURRENT))
        self.timing.value = known or _CURRENT

    def _on_sample(self, change: dict[str, str]) -> None:
        value = change["new"]
        if value in {"", _CURRENT} or self._muted:
            return
        self._actions.open_model(value, None)

    def _on_enter(self, _text: object, content: dict[str, object], _buffers: object) -> None:
        if content.get("event") == "submit":
            self._open_path()

    def _open_path(self) -> None:
        if self.path.value.strip():
            self._actions.open_model(self.path.value.strip(), None)


def _models(current: str) -> tuple[tuple[str, str], ...]:
    """Options: what is open (or a request), the samples, sessions to go on with."""
    samples = tuple((name, name) for name in sample_names())
    first = (("choose a model …", ""),) if not current else ()
    if current and current not in sample_names():
        first = ((current, _CURRENT),)
    return (*first, *samples, *((_kept_text(kept), str(kept.path)) for kept in recent()))


def _short(target: Target) -> str:
    """A target in few words; how many threads it has stands beside it."""
    off = f"{len(target.disabled)} switched off" if target.disabled else ""
    return ", ".join(filter(None, (backend_for(target.runtime).title, target.level, off)))


def _kept_text(kept: Kept) -> str:
    return f"↺ {kept.name}, session of {kept.written_at:%d %b %H:%M:%S}"


def target_options() -> tuple[tuple[str, str], ...]:
    """Options: the levels of ONNX Runtime, and the other runtimes that are installed."""
    levels = tuple((title, str(Target("ort", (("level", level),)))) for title, level in _LEVELS)
    others = [name for name in backend_names() if name != "ort" and is_installed(name)]
    return (*levels, *((backend_for(name).title, str(Target(name))) for name in others))
