"""Sets of rules, and what every rule must state."""

import re

import pytest

from explorer.errors import InputError
from explorer.rewrite import NumericClass, RuleSet, all_rules, default_rules
from tests.rewrite.planted import planted


def test_lookup_by_name():
    rules = all_rules()
    assert rules["eliminate-identity"].family == "A1"
    assert "eliminate-identity" in rules
    assert "eliminate-everything" not in rules
    assert len(rules) == len(list(rules)) == len({rule.name for rule in rules})


def test_unknown_name_is_an_error_in_words():
    with pytest.raises(
        InputError, match="No rule is called 'eliminate-everything'; list them with `explorer rules`"
    ):
        all_rules()["eliminate-everything"]
    with pytest.raises(InputError, match="No rule is called 'x'"):
        all_rules().only(["eliminate-identity", "x"])
    with pytest.raises(InputError, match="No rule is called 'x'"):
        all_rules().without(["x"])


def test_only_and_without_divide_the_rules():
    names = ["eliminate-identity", "merge-casts"]
    some, others = all_rules().only(names), all_rules().without(names)
    assert [rule.name for rule in some] == names
    assert len(some) + len(others) == len(all_rules())
    assert not {rule.name for rule in others} & set(names)


def test_rules_are_found_by_anchor_and_everywhere():
    here, everywhere = (
        planted(lambda n, c: None, anchors=("Relu",)),
        planted(lambda n, c: None, name="anywhere"),
    )
    rules = RuleSet([here, everywhere])
    assert rules.anchored_at("Relu") == (here, everywhere)
    assert rules.anchored_at("Neg") == (everywhere,)
    assert RuleSet([here]).anchored_at("Neg") == ()


def test_default_rules_leave_the_opt_in_ones_out():
    rules = {rule.name: rule for rule in all_rules()}
    assert {rule.name for rule in default_rules()} == {name for name, rule in rules.items() if rule.default}


@pytest.mark.parametrize("rule", list(all_rules()), ids=lambda rule: rule.name)
def test_every_rule_states_what_it_is(rule):
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    assert re.fullmatch(r"[A-HK]\d+[a-z]*(\+[A-H]\d+)?", rule.family), rule.family
    assert rule.title
    assert rule.preconditions.endswith(".")
    assert rule.evidence.endswith(".")
    assert rule.anchors
    assert type(rule).__doc__


@pytest.mark.parametrize("rule", [r for r in all_rules() if r.inverse], ids=lambda rule: rule.name)
def test_inverses_exist(rule):
    assert rule.inverse in all_rules()


@pytest.mark.parametrize("rule", list(all_rules()), ids=lambda rule: rule.name)
def test_rules_that_change_values_are_opt_in(rule):
    if rule.numeric_class in {NumericClass.DOMAIN, NumericClass.APPROXIMATE}:
        assert not rule.default
