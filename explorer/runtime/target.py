"""``Target``: which runtime, with which options, a runtime is measured on; written as a spec string.

``ort:level=all,threads=1`` names the runtime before the colon and its options after it. The options
a runtime has are declared by its backend; nothing here loads a runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

from explorer.errors import TargetError
from explorer.runtime.backend import backend_for, backend_names

MAX_THREADS = 256


@dataclass(frozen=True)
class Option:
    """One option of a runtime.

    Attributes:
        name: key in the spec string.
        default: canonical text of the default; an option that has its default "" is left out.
        allowed: what is accepted, in words, for error messages.
        canonical: turns accepted text into its canonical form; raises ValueError otherwise.
        choices: the words it takes one of; empty if it takes something else.
    """

    name: str
    default: str
    allowed: str
    canonical: Callable[[str], str]
    choices: tuple[str, ...] = ()


def choice(name: str, choices: tuple[str, ...], default: str) -> Option:
    """An option that takes one of a few words."""

    def canonical(text: str) -> str:
        if text not in choices:
            raise ValueError(text)
        return text

    return Option(name, default, f"{name}={'|'.join(choices)}", canonical, choices)


def thread_count() -> Option:
    """The option every runtime has: the number of threads, 1 by default."""

    def canonical(text: str) -> str:
        if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_THREADS):
            raise ValueError(text)
        return str(int(text))

    return Option("threads", "1", f"threads=1..{MAX_THREADS}", canonical)


def name_set(name: str, known: tuple[str, ...]) -> Option:
    """An option that takes names joined by ``+``; order and repeats do not matter.

    Args:
        name: key in the spec string.
        known: the names there are; for another one, the error says which is the most similar.
    """

    def canonical(text: str) -> str:
        names = sorted(set(text.split("+"))) if text else []
        for one in names:
            if one not in known:
                raise UnknownNameError(one, known)
        return "+".join(names)

    return Option(name, "", f"{name}=NameA+NameB", canonical)


class UnknownNameError(ValueError):
    """A name that an option does not know; the text says which ones are similar."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        similar = get_close_matches(name, known, n=3, cutoff=0.6) or list(known[:3])
        super().__init__(f"there is no '{name}'; the most similar are {', '.join(similar)}.")


@dataclass(frozen=True)
class Target:
    """A runtime and its options, validated and canonical; equal targets have equal ``str()``.

    Args:
        runtime: registered name of the runtime, such as ``"ort"``.
        options: (name, text) pairs; missing ones get the runtime's defaults.

    Raises:
        TargetError: unknown runtime, unknown option or refused value; the message lists what is allowed.
    """

    runtime: str
    options: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", _canonical_options(self.runtime, self.options))

    @classmethod
    def parse(cls, spec: str | Target) -> Target:
        """Read ``runtime:option=value,option=value``; a ``Target`` is returned as it is."""
        if isinstance(spec, Target):
            return spec
        runtime, _, rest = spec.strip().partition(":")
        pairs = [part.partition("=") for part in rest.split(",") if part.strip()]
        return cls(runtime.strip(), tuple((k.strip(), v.strip()) for k, _, v in pairs))

    def __str__(self) -> str:
        shown = ",".join(f"{name}={text}" for name, text in self.options)
        return f"{self.runtime}:{shown}"

    def option(self, name: str) -> str:
        """Canonical text of an option; "" if it is not set or the runtime has none of that name."""
        return dict(self.options).get(name, "")

    @cached_property
    def threads(self) -> int:
        """Number of threads a session may use."""
        return int(self.option("threads"))

    @property
    def level(self) -> str:
        """The runtime's own optimisation level; "" where a runtime has none."""
        return self.option("level")

    @property
    def disabled(self) -> tuple[str, ...]:
        """Names of the runtime's optimisers that are switched off."""
        text = self.option("disabled")
        return tuple(text.split("+")) if text else ()

    @property
    def label(self) -> str:
        """The target in words, for people."""
        parts = [backend_for(self.runtime).title]
        if self.level:
            parts.append(f"level {self.level}")
        parts.append("1 thread" if self.threads == 1 else f"{self.threads} threads")
        if self.disabled:
            parts.append(f"without {', '.join(self.disabled)}")
        return ", ".join(parts)

    def replace(self, **options: object) -> Target:
        """The same target with some options changed: ``target.replace(level="disable")``."""
        changed = {name: str(value) for name, value in options.items()}
        return Target(self.runtime, tuple({**dict(self.options), **changed}.items()))


def _canonical_options(runtime: str, given: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    if runtime not in backend_names():
        raise TargetError(
            f"'{runtime}' is not a known runtime; a target starts with one of: "
            f"{', '.join(backend_names())}, as in 'ort:level=all,threads=1'."
        )
    known = {option.name: option for option in backend_for(runtime).options}
    texts: dict[str, str] = {}
    for name, text in given:
        texts[name] = _canonical_text(runtime, known, name, text, repeated=name in texts)
    merged = {name: texts.get(name, option.default) for name, option in known.items()}
    return tuple((name, text) for name, text in merged.items() if text)


def _canonical_text(runtime: str, known: dict[str, Option], name: str, text: str, *, repeated: bool) -> str:
    allowed = ", ".join(option.allowed for option in known.values())
    if name not in known:
        raise TargetError(f"The runtime '{runtime}' has no option '{name}'; allowed: {allowed}.")
    if repeated:
        raise TargetError(f"The target option '{name}' is given twice; allowed once: {allowed}.")
    try:
        return known[name].canonical(text)
    except UnknownNameError as error:
        raise TargetError(f"'{name}={text}' is not possible for the runtime '{runtime}': {error}") from None
    except ValueError:
        raise TargetError(
            f"'{name}={text}' is not possible for the runtime '{runtime}'; allowed: {allowed}."
        ) from None
