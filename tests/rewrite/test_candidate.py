"""Candidates as values: places, ids, looking them up."""

from dataclasses import FrozenInstanceError, replace

import pytest

from explorer.errors import CandidateError
from explorer.rewrite import Candidate, Enumeration, NumericClass, all_rules, apply, find_candidates, place_of
from tests.rewrite.harness import candidates, graph_of

PLAIN = Candidate(
    rule="fold-it",
    anchor="n2",
    nodes=("n1", "n2"),
    variant="",
    fingerprint="0123456789abcdef",
    numeric_class=NumericClass.EXACT,
    portable=True,
    summary="it is folded",
    bytes_delta=-8,
)
HALF = replace(PLAIN, variant="x2")


def test_id_is_rule_nodes_variant_and_fingerprint():
    assert PLAIN.id == "fold-it:n1+n2:01234567"
    assert HALF.id == "fold-it:n1+n2~x2:01234567"
    assert replace(PLAIN, nodes=()).id == "fold-it::01234567"


def test_place_leaves_the_fingerprint_out():
    assert PLAIN.place == "fold-it:n1+n2"
    assert replace(PLAIN, fingerprint="f" * 32).place == PLAIN.place


@pytest.mark.parametrize("candidate", [PLAIN, HALF, replace(PLAIN, nodes=())])
def test_place_of_an_id_or_a_place(candidate):
    assert place_of(candidate.id) == candidate.place
    assert place_of(candidate.place) == candidate.place


def test_node_that_looks_like_a_fingerprint_is_no_fingerprint():
    assert place_of("fold-it:deadbee") == "fold-it:deadbee"
    assert place_of("deadbeef") == "deadbeef"


def test_candidates_are_frozen_values():
    with pytest.raises(FrozenInstanceError):
        PLAIN.rule = "other"
    assert replace(PLAIN) == PLAIN
    assert len({PLAIN, replace(PLAIN), HALF}) == 2


def test_find_by_id_and_by_place():
    listed = Enumeration(PLAIN.fingerprint, (PLAIN, HALF), ())
    assert listed.find(HALF.id) is HALF
    assert listed.find(PLAIN.place) is PLAIN


def test_find_by_an_id_of_an_earlier_version():
    listed = Enumeration("f" * 32, (replace(PLAIN, fingerprint="f" * 32),), ())
    assert listed.find(PLAIN.id).fingerprint == "f" * 32


def test_find_says_what_to_do_when_there_is_none():
    listed = Enumeration(PLAIN.fingerprint, (PLAIN,), ())
    with pytest.raises(CandidateError, match="No candidate 'fold-it:n7' in this graph; list them with"):
        listed.find("fold-it:n7")


def test_place_survives_a_rewrite_elsewhere():
    graph = graph_of(
        "(float[2] x) => (float[2] y) { a = Identity(x) b = Relu(a) c = Identity(b) y = Neg(c) }"
    )
    first, second = candidates(graph, "eliminate-identity")
    after = find_candidates(apply(graph, first, all_rules()), all_rules())
    found = after.find(second.id)
    assert found.place == second.place
    assert found.id != second.id
