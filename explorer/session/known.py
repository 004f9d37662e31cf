"""What a session has found out and a screen reads without waiting; of it only the matrix is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from explorer.runtime.operators import OperatorTimes
from explorer.session.memory import CandidateKey
from explorer.session.ranking import Ranking

if TYPE_CHECKING:
    from explorer.runtime.profile import Profile
    from explorer.runtime.roofs import Roofs
    from explorer.runtime.runtime_view import RuntimeView
    from explorer.search.portability import Matrix


class Known:
    """Findings by graph and target, or by place as well.

    Attributes:
        profiles: which node costs what.
        roofs: what a target reaches at best, by target.
        views: the graph as the runtime executes it.
        unpredicted: why a candidate could not be predicted.
        operators: times of operators alone, by target.
        matrix: the portability matrix as far as it was filled, or read from a file.
        ranking: which candidates promise most before anything is known of them.
    """

    def __init__(self) -> None:
        self.profiles: dict[tuple[str, str], Profile] = {}
        self.roofs: dict[str, Roofs] = {}
        self.views: dict[tuple[str, str], RuntimeView] = {}
        self.unpredicted: dict[CandidateKey, str] = {}
        self.operators: dict[str, OperatorTimes] = {}
        self.matrix: Matrix | None = None
        self.ranking = Ranking()
