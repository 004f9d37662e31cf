"""Models as values: open, save, shapes, fingerprints, differences, statistics, sample models."""

from explorer.graph.describe import EdgeInfo, GraphSummary, NodeInfo, TensorInfo, describe
from explorer.graph.diff import Contents, GraphDiff, changed_contents, contents, diff
from explorer.graph.dims import with_dims
from explorer.graph.feeds import Feeds, FeedSet, Sizes, Style, check_feeds, make_feeds
from explorer.graph.freeze import freeze_weights, names_text
from explorer.graph.graph import (
    Graph,
    bodies_of,
    constant_tensor,
    holder_of,
    is_constant_node,
    node_id,
)
from explorer.graph.load import load
from explorer.graph.samples import sample_names, samples_dir
from explorer.graph.save import save

__all__ = [
    "Contents",
    "EdgeInfo",
    "FeedSet",
    "Feeds",
    "Graph",
    "GraphDiff",
    "GraphSummary",
    "NodeInfo",
    "Sizes",
    "Style",
    "TensorInfo",
    "bodies_of",
    "changed_contents",
    "check_feeds",
    "constant_tensor",
    "contents",
    "describe",
    "diff",
    "freeze_weights",
    "holder_of",
    "is_constant_node",
    "load",
    "make_feeds",
    "names_text",
    "node_id",
    "sample_names",
    "samples_dir",
    "save",
    "with_dims",
]
