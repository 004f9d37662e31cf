"""One tree of errors meant for people.

Every message is one sentence or two: it names the file, node or tensor at fault and says what to do.
The command line prints the message alone; the app shows it in its strip.
"""

from __future__ import annotations


class ExplorerError(Exception):
    """Something the user can act on. ``exit_code`` is what the command line returns."""

    exit_code = 1


class InputError(ExplorerError):
    """What was given (file, name, option, id) is not usable; another input would be."""

    exit_code = 2


class ModelError(InputError):
    """A model file cannot be read, is not valid, or is not safe to open."""


class TargetError(InputError):
    """A target specification is not understood or its runtime is not installed."""


class CandidateError(InputError):
    """A candidate does not exist in, or does not belong to, the graph it is applied to."""


class RewriteError(ExplorerError):
    """A rewrite broke a promise (structure, interface or checker) and was not applied."""


class VerificationError(ExplorerError):
    """The rewritten graph does not compute what the original computes."""


class RuntimeFailure(ExplorerError):
    """The target runtime could not load or run a model."""


class WorkerError(ExplorerError):
    """A worker process crashed, hung or ran out of memory; only its job is lost."""


class Cancelled(ExplorerError):
    """The user stopped a job before it finished."""
