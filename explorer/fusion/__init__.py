"""Layer fusion: groups against the buffer, plans against DRAM traffic, searches against the optimum.

``fuse(graph, scheme="lbdf", buffer_kb=128)`` does it all; the parts are listed below and explained in the
``README.md`` beside this file. Sizes are in bytes unless a name says otherwise; KB is 1024 bytes.
"""

from explorer.fusion.blame import Blame, EdgeBlame, NodeBlame, blame
from explorer.fusion.brr import Brr
from explorer.fusion.build import fusion_network
from explorer.fusion.fuse import FuseResult, fuse, weigh_plan
from explorer.fusion.group import FusionGroup, group_problem
from explorer.fusion.lbdf import Lbdf
from explorer.fusion.network import KB, MB, FusionEdge, FusionNetwork, FusionNode, FusionTensor, Read
from explorer.fusion.optimum import Optimum, OptimumProgress, optimum, optimum_steps
from explorer.fusion.plan import Plan
from explorer.fusion.plan_file import PlanFile, plan_json
from explorer.fusion.repair import RandomSplit, Repair, Repaired
from explorer.fusion.report import BufferReport, BufferTerm, TermKind
from explorer.fusion.scheme import GroupCost, GroupRules, Removed, Scheme
from explorer.fusion.schemes import SCHEMES, make_scheme
from explorer.fusion.searches.base import PlanSearch, SearchEvent
from explorer.fusion.searches.registry import SEARCHES, make_search
from explorer.fusion.streaming import Mode, OpClass

__all__ = [
    "KB",
    "MB",
    "SCHEMES",
    "SEARCHES",
    "Blame",
    "Brr",
    "BufferReport",
    "BufferTerm",
    "EdgeBlame",
    "FuseResult",
    "FusionEdge",
    "FusionGroup",
    "FusionNetwork",
    "FusionNode",
    "FusionTensor",
    "GroupCost",
    "GroupRules",
    "Lbdf",
    "Mode",
    "NodeBlame",
    "OpClass",
    "Optimum",
    "OptimumProgress",
    "Plan",
    "PlanFile",
    "PlanSearch",
    "RandomSplit",
    "Read",
    "Removed",
    "Repair",
    "Repaired",
    "Scheme",
    "SearchEvent",
    "TermKind",
    "blame",
    "fuse",
    "fusion_network",
    "group_problem",
    "make_scheme",
    "make_search",
    "optimum",
    "optimum_steps",
    "plan_json",
    "weigh_plan",
]
