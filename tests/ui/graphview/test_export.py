from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

from explorer.graph import describe, load
from explorer.ui.graphview import GraphView, scene_of
from explorer.ui.graphview.assets import _FOLDER, PARTS, module_text, style_text
from tests.ui.graphview.examples import HOSTILE, conditional, hostile, scene_from, scoped

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("dark", [False, True])
def test_svg_of_a_sample_holds_every_operator(dark: bool) -> None:
    view = GraphView(scene_of(describe(load("squeezenet1_1"))))
    svg = view.to_svg(dark=dark)
    assert sum(text.startswith("Conv") for text in texts(svg)) == 26
    root = ElementTree.fromstring(svg)
    assert float(root.get("height", 0)) == pytest.approx(view.drawing.height + 56, abs=1)


def test_svg_escapes_hostile_names() -> None:
    svg = GraphView(hostile()).to_svg()
    root = ElementTree.fromstring(svg)
    assert not root.findall(f".//{SVG}img")
    assert {element.tag for element in root.iter()} <= {
        SVG + name for name in ("svg", "g", "title", "rect", "path", "text", "tspan", "circle")
    }
    clean = HOSTILE.replace("\x00", "\ufffd")
    assert root.findtext(f"{SVG}title") == clean


def test_svg_marks_changes_with_signs_and_dashes() -> None:
    view = GraphView()
    view.compare(scene_from([(0, 1)], 2), scene_from([(0, 1), (1, 2)], 3), changed=["n0"])
    assert {"+", "~"} <= set(texts(view.to_svg()))
    view.compare(scene_from([(0, 1), (1, 2)], 3), scene_from([(0, 1)], 2))
    svg = view.to_svg()
    assert "−" in texts(svg)
    assert "stroke-dasharray" in svg


def test_svg_draws_closed_blocks_frames_and_stubs() -> None:
    view = GraphView(scoped([("a",)] * 5 + [("b",)] * 5))
    view.collapse_all()
    view.expand(view.tree.blocks[0].id)
    shown = texts(view.to_svg())
    assert {"a", "b", "5 nodes"} <= set(shown)
    wide = scene_from([(0, i) for i in range(1, 12)], 12)
    assert "t0 → 10" in texts(GraphView(wide).to_svg())
    assert "then_branch" in texts(GraphView(conditional()).to_svg())


def test_the_page_holds_everything_and_nothing_from_elsewhere() -> None:
    view = GraphView(hostile())
    page = view.to_html()
    assert not re.search(r"""(src|href)\s*=\s*["']?\s*https?:""", page)
    assert "default-src 'none'" in page
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    traits = json.loads(data.group(1))
    assert HOSTILE in traits["names"]["texts"]
    assert traits["height"] == view.height


def test_the_page_is_written(tmp_path) -> None:
    target = tmp_path / "graph.html"
    text = GraphView(conditional()).to_html(target)
    assert target.read_text(encoding="utf-8") == text


def test_every_part_of_the_script_is_used_once() -> None:
    files = {path.stem for path in (_FOLDER / "js").glob("*.js")}
    assert files == set(PARTS)
    module = module_text()
    assert not re.search(r"^\s*import\s", module, re.MULTILINE)
    assert re.findall(r"^export .*", module, re.MULTILINE) == ["export default makeWidget;"]
    parts = [(_FOLDER / "js" / f"{name}.js").read_text(encoding="utf-8") for name in PARTS]
    declared = [
        name
        for part in parts
        for name in re.findall(
            r"^(?:export )?(?:class|const|let|(?:async )?function\*?) (\w+)", part, re.MULTILINE
        )
    ]
    assert sorted(declared) == sorted(set(declared))


def test_names_never_become_markup() -> None:
    for path in (_FOLDER / "js").glob("*.js"):
        source = path.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", source)


def test_styles_touch_nothing_but_the_view() -> None:
    selectors = re.findall(r"([^{}]+)\{[^{}]*\}", re.sub(r"@media[^{]*", "", style_text()))
    for group in selectors:
        for selector in group.split(","):
            assert selector.strip(" {}\n").startswith(".explorer-graph")
