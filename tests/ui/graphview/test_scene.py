from __future__ import annotations

import pytest

from explorer.ui.graphview import Scene, SceneEdge, SceneNode


def test_index_leads_from_id_to_position() -> None:
    scene = Scene((SceneNode("n7", "Add"), SceneNode("n3", "Mul")))
    assert scene.index == {"n7": 0, "n3": 1}


def test_repeated_id_is_refused() -> None:
    with pytest.raises(ValueError, match="share one id"):
        Scene((SceneNode("n0", "Add"), SceneNode("n0", "Mul")))


def test_unknown_parent_is_refused() -> None:
    with pytest.raises(ValueError, match="'n9', which does not exist"):
        Scene((SceneNode("n0", "Add", parent="n9"),))


@pytest.mark.parametrize("pair", [(0, 2), (-1, 0)])
def test_edge_to_nowhere_is_refused(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="'t' joins a node that does not exist"):
        Scene((SceneNode("a", "Add"), SceneNode("b", "Mul")), (SceneEdge(*pair, "t"),))
