"""Searches over rewrites, as generators of events that can be watched, paused and overridden."""

from explorer.search.events import Evaluated, Evaluating, Event, Failed, Finished, Proposed, Taken
from explorer.search.greedy import Answer, Greedy
from explorer.search.moves import Move, apply_move, group_moves
from explorer.search.trajectory import Step, Trajectory, replay

__all__ = [
    "Answer",
    "Evaluated",
    "Evaluating",
    "Event",
    "Failed",
    "Finished",
    "Greedy",
    "Move",
    "Proposed",
    "Step",
    "Taken",
    "Trajectory",
    "apply_move",
    "group_moves",
    "replay",
]
