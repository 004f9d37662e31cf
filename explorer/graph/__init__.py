"""Models as values: open, save, shapes, fingerprints, differences, statistics, sample models."""

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
    "Graph",
    "bodies_of",
    "constant_tensor",
    "holder_of",
    "is_constant_node",
    "load",
    "node_id",
    "sample_names",
    "samples_dir",
    "save",
]
