"""Cost models: which of two graphs is faster on a target, and how sure that is."""

from explorer.cost.measured import MeasuredCost
from explorer.cost.operator_sum import OperatorSum
from explorer.cost.protocol import CostModel
from explorer.runtime import Delta, Source, Verdict

__all__ = ["CostModel", "Delta", "MeasuredCost", "OperatorSum", "Source", "Verdict"]
