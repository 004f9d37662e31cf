"""A set of rules, looked up by name and by the operator at which they start matching."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache

from explorer.errors import InputError
from explorer.rewrite.rule import Rule


class RuleSet:
    """An ordered, immutable collection of rules with unique names."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._by_name = {rule.name: rule for rule in rules}
        self._by_anchor: dict[str, list[Rule]] = defaultdict(list)
        self._asked: dict[str, tuple[Rule, ...]] = {}
        for rule in self._by_name.values():
            for anchor in rule.anchors:
                self._by_anchor[anchor].append(rule)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Rule:
        try:
            return self._by_name[name]
        except KeyError:
            raise InputError(f"No rule is called '{name}'; list them with `explorer rules`.") from None

    def anchored_at(self, operator: str) -> tuple[Rule, ...]:
        """Rules that start matching at this operator (``"*"`` rules start anywhere)."""
        found = self._asked.get(operator)
        if found is None:
            found = (*self._by_anchor.get(operator, ()), *self._by_anchor.get("*", ()))
            self._asked[operator] = found
        return found

    def only(self, names: Iterable[str]) -> RuleSet:
        """The rules with these names; InputError for an unknown one."""
        return RuleSet(self[name] for name in names)

    def of_families(self, letters: Iterable[str]) -> RuleSet:
        """The rules of these families of the catalogue (``"A"``: elimination, folding, sharing)."""
        wanted = set(letters)
        return RuleSet(rule for rule in self if rule.family[0] in wanted)

    def without(self, names: Iterable[str]) -> RuleSet:
        """All rules but these; InputError for an unknown name."""
        left_out = {self[name].name for name in names}
        return RuleSet(rule for rule in self if rule.name not in left_out)


@cache
def all_rules() -> RuleSet:
    """Every rule there is, opt-in ones included."""
    from explorer.rewrite.rules import RULES

    return RuleSet(RULES)


@cache
def default_rules() -> RuleSet:
    """The rules offered unless the user asks otherwise."""
    return RuleSet(rule for rule in all_rules() if rule.default)
