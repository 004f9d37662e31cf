"""What a timing job is asked: inputs, targets, protocol, validated; and what identifies its answer."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from explorer.errors import InputError
from explorer.runtime.backend import Feeds, as_feeds
from explorer.runtime.environment import Environment
from explorer.runtime.executor import CancelToken
from explorer.runtime.lane import JobOptions
from explorer.runtime.measurement import FORMAT, targets_text
from explorer.runtime.progress import OnProgress
from explorer.runtime.protocol import Mode, Protocol
from explorer.runtime.target import Target

_SHORTEST_LIMIT_S = 120.0
_BUDGETS_UNTIL_HUNG = 10


@dataclass(frozen=True)
class Request:
    """What a timing job needs besides the models, validated."""

    feeds: Feeds
    target: Target
    protocol: Protocol
    progress: OnProgress
    cancel: CancelToken | None
    b_target: Target | None = None

    @property
    def arguments(self) -> tuple[Feeds, Target, Protocol]:
        """The arguments of a timing job after the paths."""
        return self.feeds, self.target, self.protocol

    def options(self, what: str) -> JobOptions:
        """Options of the job, with a time limit at which it must be hung."""
        limit_s = max(_SHORTEST_LIMIT_S, _BUDGETS_UNTIL_HUNG * self.protocol.budget_ns / 1e9)
        where = targets_text(self.target, self.b_target)
        return JobOptions(f"{what} on {where}", limit_s, self.progress)

    @classmethod
    def of(
        cls,
        feeds: Feeds,
        target: str | Target,
        mode: str | Mode | Protocol,
        progress: OnProgress,
        cancel: CancelToken | None,
        b_target: str | Target | None = None,
    ) -> Request:
        """A request from what ``Measurer.measure`` is given.

        Raises:
            InputError: bad target or mode, or two targets that cannot be compared.
        """
        target = Target.parse(target)
        other = None if b_target is None else Target.parse(b_target)
        if other is not None and (other.runtime, other.threads) != (target.runtime, target.threads):
            raise InputError(
                f"'{other}' and '{target}' cannot be compared in one measurement: sessions that take turns need "
                "the same runtime and as many threads."
            )
        protocol = Protocol.of(mode).for_threads(target.threads)
        other = None if other == target else other
        return cls(as_feeds(feeds), target, protocol, progress, cancel, other)

    def key(self, kind: str, fingerprints: Sequence[str], where: Environment) -> dict[str, Any]:
        """What a result of this kind is filed under: everything that its time depends on."""
        return {
            "kind": kind,
            "format": FORMAT,
            "graphs": list(fingerprints),
            "target": str(self.target),
            **({"b_target": str(self.b_target)} if self.b_target else {}),
            "protocol": self.protocol.to_json(),
            "feeds": feeds_digest(self.feeds),
            "environment": where.to_json(),
        }


def feeds_digest(feeds: Feeds) -> str:
    """Hash of names, types, shapes and contents of a set of inputs."""
    digest = hashlib.blake2b(digest_size=16)
    for name, array in sorted(as_feeds(feeds).items()):
        digest.update(repr((name, str(array.dtype), array.shape)).encode())
        content = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
        digest.update(content)
    return digest.hexdigest()
