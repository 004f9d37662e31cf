"""NSGA-II over edge bits: DRAM traffic against the number of groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from explorer.fusion.plan import Plan
from explorer.fusion.repair import Repair
from explorer.fusion.scheme import Scheme
from explorer.fusion.searches.base import PlanSearch
from explorer.fusion.searches.local_search import POPULATION


class Nsga2Search(PlanSearch):
    """pymoo's NSGA-II; repaired plans are written back into the population."""

    name = "nsga2"

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
        self.seed = seed
        self.algorithm: Any = None  # pymoo is untyped, and loaded when the search starts
        self.infills: Any = None
        self.scores: list[tuple[int, int]] = []

    def _step(self) -> int:
        if not self.space.edges:
            self.is_done = True
            return self._accept(self.space.alone())[1]
        if self.infills is None:
            self._ask()
        individual = self.infills[len(self.scores)]
        masks, total = self._accept(self.space.decoded(individual.X.tolist()))
        individual.X = np.array(self.space.encoded(masks))
        self.scores.append((total, len(masks)))
        if len(self.scores) == len(self.infills):
            self._tell()
        return total

    def _ask(self) -> None:
        if self.algorithm is None:
            self._set_up()
        self.infills = self.algorithm.ask()

    def _tell(self) -> None:
        from pymoo.core.evaluator import Evaluator
        from pymoo.problems.static import StaticProblem

        static = StaticProblem(self.algorithm.problem, F=np.array(self.scores, dtype=float))
        Evaluator().eval(static, self.infills)
        self.algorithm.tell(infills=self.infills)
        self.infills, self.scores = None, []

    def _set_up(self) -> None:
        from pymoo.algorithms.moo.nsga2 import NSGA2
        from pymoo.core.problem import Problem
        from pymoo.core.termination import NoTermination
        from pymoo.operators.crossover.pntx import TwoPointCrossover
        from pymoo.operators.mutation.bitflip import BitflipMutation

        first = [self._first_plan()] + [self.space.random_plan(self.rng) for _ in range(self.size - 1)]
        self.algorithm = NSGA2(
            pop_size=self.size,
            sampling=np.array([self.space.encoded(masks) for masks in first]),
            crossover=TwoPointCrossover(),
            mutation=BitflipMutation(),
        )
        problem = Problem(n_var=len(self.space.edges), n_obj=2, xl=0, xu=1, vtype=bool)
        self.algorithm.setup(problem, termination=NoTermination(), seed=self.seed, verbose=False)
