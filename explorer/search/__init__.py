"""Searches over rewrites, as generators of events that can be watched, paused and overridden."""

from explorer.search.ahead import Scout
from explorer.search.events import (
    Evaluated,
    Evaluating,
    Event,
    Failed,
    Finished,
    LeftOut,
    Proposed,
    Scouted,
    Scouting,
    Taken,
)
from explorer.search.greedy import Answer, Greedy
from explorer.search.moves import Move, apply_move, group_moves
from explorer.search.trajectory import FREEZE, SWITCH, Step, Trajectory, after_switch, replay

__all__ = [
    "FREEZE",
    "SWITCH",
    "Answer",
    "Evaluated",
    "Evaluating",
    "Event",
    "Failed",
    "Finished",
    "Greedy",
    "LeftOut",
    "Move",
    "Proposed",
    "Scout",
    "Scouted",
    "Scouting",
    "Step",
    "Taken",
    "Trajectory",
    "after_switch",
    "apply_move",
    "group_moves",
    "replay",
]
