"""Where a search stands: the moves that lead on, and the graphs that are not gone back to."""

from __future__ import annotations

import pytest

from explorer.rewrite import default_rules
from explorer.search.ahead import Part
from explorer.search.moves import Move
from explorer.search.position import Position
from tests.rewrite.harness import ops
from tests.search.test_greedy import two_blocks

FOLD, FUSE, UNFUSE = "fold-batchnorm-into-conv", "fuse-conv-activation", "unfuse-conv-activation"
FIRST, SECOND = f"{FOLD}:n0+n1", f"{FOLD}:n3+n4"


@pytest.fixture
def position() -> Position:
    return Position(two_blocks(), default_rules().only([FOLD, FUSE, UNFUSE]))


def test_all_sites_of_a_rule_are_one_move(position: Position):
    assert position.moves() == [Move(FOLD, (FIRST, SECOND))]


def test_banned_places_are_not_offered():
    position = Position(two_blocks(), default_rules().only([FOLD]), frozenset({FIRST}))
    assert position.moves() == [Move(FOLD, (SECOND,))]
    assert not position.offers(Move(FOLD, (FIRST,)))
    assert position.offers(Move(FOLD, (FIRST, SECOND)))


def test_what_a_move_opens_is_a_chain_that_begins_with_it(position: Position):
    (fold,) = position.moves()
    applied = position.apply(fold)
    assert applied is not None
    (opened,) = position.opened_by(applied)
    assert (opened.rule, len(opened.places), opened.after) == (FUSE, 2, fold)
    chained = position.apply(opened)
    assert chained is not None
    assert ops(chained.graph) == {"FusedConv": 2}
    assert len(chained.candidates) == 4


def test_a_move_that_leads_back_is_none(position: Position):
    (fold,) = position.moves()
    applied = position.apply(fold)
    assert applied is not None
    position.go(applied)
    (fuse,) = position.moves()
    fused = position.apply(fuse)
    assert fused is not None
    position.go(fused)
    (back,) = [move for move in position.moves() if move.rule == UNFUSE]
    assert position.apply(back) is None
    assert position.apply(Move(UNFUSE, back.places[:1])) is not None
    assert position.join([Part(back, 0.9)]) is None


def test_a_path_is_applied_once(position: Position):
    (fold,) = position.moves()
    path = position.join([Part(fold, 0.9)])
    assert path is not None
    assert position.apply(path.applied.move) is path.applied
