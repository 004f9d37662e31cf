from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ipywidgets
import numpy as np
import pytest

from explorer.ui.graphview import (
    EdgeValues,
    GraphView,
    Group,
    Scene,
    by_time,
)
from tests.ui.graphview.examples import chain, conditional, hostile, scene_from, scoped

SCOPES = [()] + [("net", "a")] * 5 + [("net", "b")] * 5 + [()]


@pytest.fixture
def view() -> Iterator[GraphView]:
    made = GraphView(scoped(SCOPES))
    yield made
    made.close()


def click(view: GraphView, command: str, argument: str = "") -> None:
    """What the canvas sends for a double-click on a block, a button, a choice."""
    content = {"method": "custom", "content": {"command": command, "argument": argument}}
    view._handle_msg({"content": {"data": content}, "buffers": []})


def boxes(view: GraphView) -> int:
    return len(view.picture["boxes"]) // 16


def test_a_click_reaches_the_callbacks(view: GraphView) -> None:
    heard: list[tuple[str, ...]] = []
    view.on_select(heard.append)
    view.set_state({"selection": ["n3"]})
    view.set_state({"selection": ["n3", "n4"]})
    view.on_select(heard.append, remove=True)
    view.set_state({"selection": []})
    assert heard == [("n3",), ("n3", "n4")]


def test_a_double_click_reaches_the_callbacks(view: GraphView) -> None:
    heard: list[str] = []
    view.on_activate(heard.append)
    click(view, "activate", "n5")
    assert heard == ["n5"]


def test_blocks_open_and_close_by_message(view: GraphView) -> None:
    click(view, "collapse_all")
    assert boxes(view) == 3
    click(view, "toggle", "scope:net")
    assert boxes(view) == 5
    click(view, "toggle", "scope:net/scope:a")
    assert boxes(view) == 10
    click(view, "toggle", "scope:net")
    assert (boxes(view), view.opened) == (3, frozenset())
    click(view, "expand_all")
    assert boxes(view) == 15


def test_expand_all_and_back_gives_the_same_picture(view: GraphView) -> None:
    view.collapse_all()
    before = view.picture
    view.expand_all()
    view.collapse_all()
    assert view.picture == before


def test_opening_what_does_not_exist_changes_nothing(view: GraphView) -> None:
    before = view.picture
    for command in ("toggle", "reveal", "nonsense"):
        click(view, command, "<nothing>")
    assert view.picture == before


def test_opening_a_host_opens_its_bodies() -> None:
    view = GraphView(conditional())
    view.collapse_all()
    view.expand("host:n1")
    assert len(view.opened) == 3


def test_a_highlight_opens_the_blocks_around_it(view: GraphView) -> None:
    view.collapse_all()
    view.highlight(["n2", "gone"], "fold")
    assert view.opened == {"scope:net", "scope:net/scope:a"}
    assert (view.highlighted["nodes"], view.highlighted["label"]) == (["n2"], "fold")
    view.clear_highlight()
    assert view.highlighted == {}


def test_highlighting_the_same_site_again_is_told_again(view: GraphView) -> None:
    view.highlight(["n2"])
    first = view.highlighted
    view.highlight(["n2"])
    assert view.highlighted != first


def test_selecting_from_python_opens_and_tells(view: GraphView) -> None:
    heard: list[tuple[str, ...]] = []
    view.on_select(heard.append)
    view.collapse_all()
    view.select(["n7", "gone"])
    assert heard == [("n7",)]
    assert view.opened == {"scope:net", "scope:net/scope:b"}


def test_a_search_hit_in_a_closed_block_is_opened(view: GraphView) -> None:
    view.collapse_all()
    click(view, "reveal", "n9")
    assert view.opened == {"scope:net", "scope:net/scope:b"}


def test_colourings_are_offered_and_chosen(view: GraphView) -> None:
    view.offer(by_time({"n0": 5.0}, "measured"))
    assert [colouring["key"] for colouring in view.colourings] == ["op", "time"]
    click(view, "colour", "time")
    assert view.colour_by == "time"
    with pytest.raises(ValueError, match="offered are op, time"):
        view.colour("weight")
    view.offer()
    assert view.colour_by == "op"


def test_another_scene_drops_what_lay_over_the_old_one(view: GraphView) -> None:
    view.highlight(["n2"], "fold")
    view.set_groups([Group("g", "group", ["n1"])])
    view.set_edge_values(EdgeValues("Score", {("n0", "n1"): 1.0}))
    view.set_state({"selection": ["n3"]})
    view.show(chain(3))
    assert (view.highlighted, view.groups, view.edge_values, view.selection) == ({}, [], {}, [])
    assert view.names["stay"] is False


def test_another_version_keeps_open_blocks(view: GraphView) -> None:
    view.collapse_all()
    view.expand("scope:net")
    view.show(scoped([*SCOPES, ()]), keep_open=True)
    assert view.opened == {"scope:net"}
    assert view.names["stay"] is True


def test_a_comparison_opens_what_changed(view: GraphView) -> None:
    view.collapse_all()
    before = view.scene
    view.compare(before, before, changed=["n8"], mode="merged", titles=("Now", "Then"))
    assert view.opened == {"scope:net", "scope:net/scope:b"}
    assert view.comparison == {"mode": "merged", "before": "Now", "after": "Then"}
    view.show(before, keep_open=True)
    assert view.comparison == {}


def test_an_unknown_mode_is_refused(view: GraphView) -> None:
    with pytest.raises(ValueError, match="mode 'sideways'"):
        view.compare(view.scene, view.scene, mode="sideways")


def test_edge_values_and_groups_are_sent(view: GraphView) -> None:
    view.set_edge_values(EdgeValues("Score", {("n0", "n1"): 0.25}))
    assert np.frombuffer(view.edge_values["values"], dtype=np.float32)[0] == 0.25
    view.set_edge_values(None)
    assert view.edge_values == {}
    view.set_groups([Group("g", "group", ["n1"])])
    assert view.groups[0]["label"] == "group"


def test_all_of_a_scene_is_sent_at_once(view: GraphView, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[set[str]] = []
    monkeypatch.setattr(view, "send_state", lambda key=None: sent.append(_keys(key)))
    view.show(chain(4))
    with_picture = [keys for keys in sent if "picture" in keys]
    assert len(with_picture) == 1
    assert {"names", "picture"} <= with_picture[0]


def _keys(key: Any) -> set[str]:
    return {key} if isinstance(key, str) else set(key or ())


def test_redrawing_creates_no_further_widgets(view: GraphView) -> None:
    def count() -> int:
        return len(ipywidgets.widget._instances)

    before = count()
    for i in range(20):
        view.show(chain(3 + i % 2))
        view.highlight(["n1"])
        view.compare(chain(3), chain(4))
    assert count() == before


def test_two_views_do_not_share_anything() -> None:
    one, two = GraphView(chain(3)), GraphView(chain(5))
    one.set_state({"selection": ["n1"]})
    assert two.selection == []
    assert (boxes(one), boxes(two)) == (3, 5)


def test_an_empty_view_is_possible() -> None:
    view = GraphView()
    assert (boxes(view), view.drawing.height) == (0, 0)
    view.expand_all()
    view.highlight(["n0"])
    assert view.highlighted["nodes"] == []


def test_the_repr_is_short_and_readable() -> None:
    scene = Scene(scene_from([(0, 1)], 2).nodes, (), "model")
    assert repr(GraphView(scene)) == "GraphView('model', 2 nodes, 0 blocks open)"
    assert GraphView(hostile()).scene.nodes[2].name == ""
