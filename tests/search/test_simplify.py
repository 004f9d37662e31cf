"""The unmeasured baseline: smaller, equal, and it ends."""

from explorer.rewrite import check_equivalence, default_rules, find_candidates
from explorer.search.moves import apply_move
from explorer.search.simplify import FOLDING_FAMILIES, simplify
from tests.rewrite.harness import ops, run
from tests.search.test_greedy import two_blocks


def test_everything_that_shrinks_is_applied_and_nothing_changes():
    graph = two_blocks()
    done = simplify(graph, default_rules())
    assert done is not None
    assert ops(done.graph) == {"FusedConv": 2}
    assert check_equivalence(graph, done.graph, run).passed
    assert len(done.candidates) == sum(len(move.places) for move in done.move.chain)


def test_the_chain_leads_from_the_start_to_the_result():
    graph = two_blocks()
    done = simplify(graph, default_rules())
    assert done is not None
    again = apply_move(graph, done.move, default_rules())
    assert again is not None
    assert again.graph.fingerprint() == done.graph.fingerprint()


def test_banned_places_stay():
    graph = two_blocks()
    folding = default_rules().of_families(FOLDING_FAMILIES)
    first = find_candidates(graph, folding).candidates[0]
    done = simplify(graph, folding, frozenset({first.place}))
    assert done is not None
    assert first.place not in {candidate.place for candidate in done.candidates}


def test_a_graph_that_cannot_shrink_stays():
    done = simplify(two_blocks(), default_rules())
    assert done is not None
    assert simplify(done.graph, default_rules()) is None
