"""The unmeasured baseline: smaller, equal, and it ends."""

from explorer.rewrite import check_equivalence, default_rules
from explorer.search.simplify import simplify
from tests.rewrite.harness import ops, run
from tests.search.test_greedy import two_blocks


def test_everything_that_shrinks_is_applied_and_nothing_changes():
    graph = two_blocks()
    result = simplify(graph, default_rules())
    assert ops(result) == {"FusedConv": 2}
    assert check_equivalence(graph, result, run).passed


def test_a_graph_that_cannot_shrink_stays():
    result = simplify(two_blocks(), default_rules())
    assert simplify(result, default_rules()).fingerprint() == result.fingerprint()
