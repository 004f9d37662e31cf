"""LS: the K best plans, each edited once per generation."""

from __future__ import annotations

from explorer.fusion.plan import Plan
from explorer.fusion.repair import Repair
from explorer.fusion.scheme import Scheme
from explorer.fusion.searches.base import PlanSearch
from explorer.fusion.space import Masks

POPULATION = 10


class LocalSearch(PlanSearch):
    """A population of the best K distinct plans; each step edits the next of them at random."""

    name = "ls"

    def __init__(
        self,
        scheme: Scheme,
        *,
        seed: int = 0,
        repair: Repair | None = None,
        start: Plan | None = None,
        population: int = POPULATION,
    ) -> None:
        super().__init__(scheme, seed=seed, repair=repair, start=start)
        self.size = population
        self.population: list[tuple[int, Masks]] = []
        self.offspring: list[tuple[int, Masks]] = []

    def _step(self) -> int:
        if len(self.population) + len(self.offspring) < self.size and self.plans < self.size:
            masks = self._first_plan() if self.plans == 0 else self.space.random_plan(self.rng)
            self.population.append(self._scored(masks))
            return self.population[-1][0]
        parent = self.population[len(self.offspring) % len(self.population)]
        self.offspring.append(self._scored(self.space.edited(parent[1], self.rng)))
        proposed = self.offspring[-1][0]
        if len(self.offspring) == len(self.population):
            self._select()
        return proposed

    def _scored(self, masks: Masks) -> tuple[int, Masks]:
        fitted, total = self._accept(masks)
        return total, fitted

    def _select(self) -> None:
        """Keep the best of parents and offspring, a plan that comes up twice once."""
        distinct = {frozenset(masks): (total, masks) for total, masks in self.population + self.offspring}
        self.population = sorted(distinct.values(), key=lambda scored: scored[0])[: self.size]
        self.offspring = []
