"""Rewrite rules, the places where they apply, applying one, and checking that nothing changed."""

from explorer.rewrite.candidate import Candidate, Enumeration, Rejection, place_of
from explorer.rewrite.engine import apply, apply_many
from explorer.rewrite.equivalence import EquivalenceReport, check_equivalence
from explorer.rewrite.rule import Match, NumericClass, PatternRule, Refusal, Rule, loosest
from explorer.rewrite.ruleset import RuleSet, all_rules, default_rules
from explorer.rewrite.scanning import Scan, find_candidates, rescan, scan

__all__ = [
    "Candidate",
    "Enumeration",
    "EquivalenceReport",
    "Match",
    "NumericClass",
    "PatternRule",
    "Refusal",
    "Rejection",
    "Rule",
    "RuleSet",
    "Scan",
    "all_rules",
    "apply",
    "apply_many",
    "check_equivalence",
    "default_rules",
    "find_candidates",
    "loosest",
    "place_of",
    "rescan",
    "scan",
]
