"""Small scenes that several tests draw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from explorer.ui.graphview import EdgeStyle, Kind, Scene, SceneEdge, SceneNode

HOSTILE = "<img src=x onerror=\"document.title='owned'\">]]>&'\x00\u202e</script><!--"


def scene_from(pairs: Iterable[tuple[int, int]], count: int, labels: Sequence[str] = ()) -> Scene:
    """Operators n0, n1 ... joined by edges with a tensor per source."""
    nodes = tuple(
        SceneNode(f"n{i}", labels[i] if labels else "Relu", name=f"/node{i}", detail="1×8×4×4")
        for i in range(count)
    )
    return Scene(nodes, tuple(SceneEdge(a, b, f"t{a}", "1×8×4×4", 512) for a, b in pairs))


def chain(count: int) -> Scene:
    """A path of operators."""
    return scene_from([(i, i + 1) for i in range(count - 1)], count)


def scoped(scopes: Sequence[tuple[str, ...]], pairs: Iterable[tuple[int, int]] = ()) -> Scene:
    """Operators in these scopes; a chain unless told otherwise."""
    joins = list(pairs) or [(i, i + 1) for i in range(len(scopes) - 1)]
    nodes = tuple(SceneNode(f"n{i}", "Conv", scope=scope) for i, scope in enumerate(scopes))
    return Scene(nodes, tuple(SceneEdge(a, b, f"t{a}") for a, b in joins))


def conditional() -> Scene:
    """An If with two bodies that both capture the tensor of an operator outside."""
    nodes = (
        SceneNode("in0", "x", Kind.INPUT, family="io"),
        SceneNode("n0", "Identity"),
        SceneNode("n1", "If", family="control"),
        SceneNode("n2", "Sub", parent="n1", branch="then_branch"),
        SceneNode("n3", "Mul", parent="n1", branch="else_branch"),
        SceneNode("n4", "Neg", parent="n1", branch="else_branch"),
        SceneNode("out0", "y", Kind.OUTPUT, family="io"),
    )
    edges = (
        SceneEdge(0, 1, "x"),
        SceneEdge(1, 3, "x_id", style=EdgeStyle.CAPTURE),
        SceneEdge(1, 4, "x_id", style=EdgeStyle.CAPTURE),
        SceneEdge(4, 5, "m"),
        SceneEdge(2, 6, "y"),
    )
    return Scene(nodes, edges, "conditional")


def hostile() -> Scene:
    """Names that would do harm if they were taken for mark-up; one of them empty."""
    nodes = (
        SceneNode("in0", HOSTILE, Kind.INPUT, name=HOSTILE, family="io"),
        SceneNode("n0", HOSTILE, hint=HOSTILE, name=HOSTILE, detail=HOSTILE, tooltip=(HOSTILE,)),
        SceneNode("n1", "Relu", name="", detail="1×3", family="activation"),
    )
    return Scene(nodes, (SceneEdge(0, 1, HOSTILE, HOSTILE), SceneEdge(1, 2, HOSTILE)), HOSTILE)
