"""Measure many candidates one after the other, as one job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from explorer.errors import RewriteError, RuntimeFailure, WorkerError
from explorer.runtime import Mode, Progress
from explorer.session.jobs import Job

if TYPE_CHECKING:
    from explorer.session.session import Session


def measure_all(session: Session, identifiers: Sequence[str], mode: str | Mode, job: Job[None]) -> None:
    """See ``Session.measure_all``: one that fails costs only itself."""
    failures = []
    for number, identifier in enumerate(identifiers):
        job.raise_if_cancelled()
        report = job.part(number, len(identifiers))
        report(Progress(0, 1, "starting"))
        try:
            session.measure(identifier, mode, report, job.token)
        except (RewriteError, RuntimeFailure, WorkerError) as failure:
            failures.append(f"{session.find(identifier).place}: {failure}")
    if failures:
        raise RuntimeFailure(
            f"{len(failures)} of {len(identifiers)} could not be measured; the first is {failures[0]}"
        )
