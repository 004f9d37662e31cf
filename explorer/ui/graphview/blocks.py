"""The tree of blocks of a scene: name scopes, repeated stretches, bodies of If, Loop and Scan.

Contracting any set of blocks leaves an acyclic graph (where the scene is acyclic): a scope that is
left and entered again, such as one activation module used twice, is cut into parts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from explorer.ui.graphview.acyclic import cut_cycles
from explorer.ui.graphview.repeats import repeated_stretches
from explorer.ui.graphview.scene import Kind, Scene

#: A scope with fewer nodes is not worth a frame of its own.
MIN_BLOCK_NODES = 4
#: A level with at least this many loose nodes is searched for repeated stretches.
MIN_LOOSE_NODES = 60

Key = tuple[str, int]
Path = tuple[Key, ...]


class BlockKind(StrEnum):
    """Where a block comes from."""

    SCOPE = "scope"
    REPEAT = "repeat"
    HOST = "host"
    BODY = "body"


@dataclass(frozen=True, slots=True)
class Block:
    """A set of nodes that can be drawn as one box or as a frame around its content.

    Attributes:
        id: Stable while names and structure stay the same.
        kind: Scope, repeated stretch, a node with bodies, or one of its bodies.
        title: What stands on the box or frame.
        parent: Index of the enclosing block in ``Tree.blocks``, or None.
        nodes: Indices of all nodes inside, at any depth, without the host itself.
        host: Index of the If, Loop or Scan node this block stands for, or None.
    """

    id: str
    kind: BlockKind
    title: str
    parent: int | None
    nodes: tuple[int, ...]
    host: int | None = None


@dataclass(frozen=True, slots=True)
class Tree:
    """All blocks, parents before children, and the innermost block of every node (or None)."""

    blocks: tuple[Block, ...]
    home: tuple[int | None, ...]

    def children(self) -> dict[int | None, tuple[list[int], list[int]]]:
        """For each block (None is the whole graph): its blocks and its direct nodes."""
        inside: dict[int | None, tuple[list[int], list[int]]] = {None: ([], [])}
        inside.update({i: ([], []) for i in range(len(self.blocks))})
        hosts = {block.host for block in self.blocks if block.host is not None}
        for i, block in enumerate(self.blocks):
            inside[block.parent][0].append(i)
        for node, block_index in enumerate(self.home):
            if node not in hosts:
                inside[block_index][1].append(node)
        return inside


def build_tree(scene: Scene) -> Tree:
    """Group the nodes of a scene."""
    paths = _paths(scene)
    pairs = [(edge.source, edge.target) for edge in scene.edges]
    paths = cut_cycles(paths, pairs)
    paths = _without_small(paths)
    paths = _with_repeats(scene, paths, pairs)
    return _tree_of(scene, paths)


def _paths(scene: Scene) -> list[Path]:
    """Key path of every node: scopes of the hosts around it, the host, its branch, own scopes."""
    paths: list[Path | None] = [None] * len(scene.nodes)
    for start in range(len(scene.nodes)):
        chain = [start]
        while paths[chain[-1]] is None and (parent := scene.nodes[chain[-1]].parent) is not None:
            chain.append(scene.index[parent])
            if len(chain) > len(scene.nodes):
                raise ValueError(f"node {parent!r} lies inside itself")
        for node in reversed(chain):
            paths[node] = paths[node] or _path_of(scene, node, paths)
    hosts = {scene.index[node.parent] for node in scene.nodes if node.parent is not None}
    return [
        (path or ()) + (((_host_key(scene, i), 0),) if i in hosts else ()) for i, path in enumerate(paths)
    ]


def _host_key(scene: Scene, node: int) -> str:
    return f"host:{scene.nodes[node].id}"


def _path_of(scene: Scene, node: int, paths: Sequence[Path | None]) -> Path:
    value = scene.nodes[node]
    outer: Path = ()
    if value.parent is not None:
        host = scene.index[value.parent]
        outer = (*(paths[host] or ()), (_host_key(scene, host), 0))
        if value.branch:
            outer = (*outer, (f"body:{value.branch}", 0))
    if value.kind is not Kind.OP:
        return outer
    return outer + tuple((f"scope:{part}", 0) for part in value.scope)


def _fixed(key: Key) -> bool:
    """Hosts and bodies are structure of the graph; they are never dissolved."""
    return key[0].startswith(("host:", "body:"))


def _without_small(paths: list[Path]) -> list[Path]:
    """Drop scopes with few nodes, and scopes that hold just what the scope around them holds."""
    size: Counter[Path] = Counter(path[:depth] for path in paths for depth in range(1, len(path) + 1))

    def keep(path: Path, depth: int) -> bool:
        prefix = path[:depth]
        if _fixed(prefix[-1]):
            return True
        return MIN_BLOCK_NODES <= size[prefix] != size.get(prefix[:-1], 0)

    return [tuple(path[d - 1] for d in range(1, len(path) + 1) if keep(path, d)) for path in paths]


def _with_repeats(scene: Scene, paths: list[Path], pairs: Sequence[tuple[int, int]]) -> list[Path]:
    """Give long unscoped levels blocks of their own where a stretch of operators repeats."""
    loose: defaultdict[Path, list[int]] = defaultdict(list)
    for node, path in enumerate(paths):
        if scene.nodes[node].kind is Kind.OP:
            loose[path].append(node)
    result = list(paths)
    for path, nodes in loose.items():
        if len(nodes) < MIN_LOOSE_NODES:
            continue
        labels = [scene.nodes[node].label for node in nodes]
        for stretch in repeated_stretches(labels, nodes, pairs):
            for node in nodes[stretch.start : stretch.stop]:
                result[node] = (*path, (f"repeat:{stretch.title}", 0))
    return cut_cycles(result, pairs) if result != paths else result


def _tree_of(scene: Scene, paths: Sequence[Path]) -> Tree:
    members: dict[Path, list[int]] = {}
    for node, path in enumerate(paths):
        for depth in range(1, len(path) + 1):
            members.setdefault(path[:depth], []).append(node)
    order = sorted(members, key=lambda path: (len(path), members[path][0]))
    position = {path: i for i, path in enumerate(order)}
    blocks = tuple(_block(scene, path, members[path], position) for path in order)
    home = tuple(position[path] if path else None for path in paths)
    return Tree(blocks, home)


def _block(scene: Scene, path: Path, nodes: Sequence[int], position: dict[Path, int]) -> Block:
    kind, _, text = path[-1][0].partition(":")
    host = scene.index[text] if kind == BlockKind.HOST else None
    parent = position[path[:-1]] if len(path) > 1 else None
    title = scene.nodes[host].label if host is not None else text
    inside = tuple(node for node in nodes if node != host)
    return Block(_block_id(path), BlockKind(kind), title, parent, inside, host)


def _block_id(path: Path) -> str:
    """Two different paths give two different ids, whatever the names contain."""
    parts = [f"{key}#{part}" if part else key for key, part in path]
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)
