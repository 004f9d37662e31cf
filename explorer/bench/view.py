"""How fast the graph view is: time to draw, frames per second while panning, click to highlight.

Measured in a headless Chromium on the self-contained page, so without Jupyter's own share.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from explorer.errors import InputError
from explorer.graph import describe, load
from explorer.ui.graphview import GraphView, Kind, Scene, SceneEdge, SceneNode, scene_of
from explorer.ui.graphview.palette import family_of

if TYPE_CHECKING:
    from playwright.sync_api import Page

SYNTHETIC_NODES = 5000
#: What the interface promises.
TARGETS = {"first_ms": 1000, "drawn_ms": 1000, "frames_per_s": 30, "click_ms": 150}
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]

_READY = "() => Number(document.getElementById('graph').dataset.drawn) >= 1"
_FIRST = "() => document.getElementById('graph').explorerGraph.view.firstPaint - graphStart"
_REDRAW = """async () => {
    const graph = document.getElementById('graph');
    const before = Number(graph.dataset.drawn);
    const start = performance.now();
    graphModel.set('names', graphModel.get('names'));
    while (Number(graph.dataset.drawn) === before) await new Promise(requestAnimationFrame);
    return performance.now() - start;
}"""
_PAN = """async ({ scale, seconds }) => {
    const view = document.getElementById('graph').explorerGraph.view;
    const { picture } = view.state;
    const fit = view.camera.fitting(view.ports()[0].port, [0, 0, picture.width, picture.height]);
    const shown = scale ?? fit[2];
    view.camera.set(picture.width / 2, scale ? 0 : picture.height / 2, shown);
    const start = performance.now();
    let frames = 0;
    while (performance.now() - start < seconds * 1000) {
        const down = Math.floor(frames / 60) % 2 ? -1 : 1;
        view.camera.pan(scale ? 0 : 2 * down, -14 * down);
        view.touch('paint');
        await new Promise(requestAnimationFrame);
        frames += 1;
    }
    return frames / ((performance.now() - start) / 1000);
}"""
_CLICK = """async () => {
    const graph = document.getElementById('graph');
    const view = graph.explorerGraph.view;
    const { scene, picture } = view.state;
    const node = [...Array(scene.count).keys()].find((n) => scene.kind(n) === 0);
    view.camera.set(picture.x(picture.home[node]), picture.y(picture.home[node]), 1);
    view.touch('paint');
    await new Promise(requestAnimationFrame);
    const { x, y } = graph.explorerGraph.position(scene.id(node));
    const canvas = view.canvas;
    const options = { clientX: x, clientY: y, button: 0, pointerId: 1, bubbles: true };
    canvas.setPointerCapture = () => {};
    const start = performance.now();
    canvas.dispatchEvent(new PointerEvent('pointerdown', options));
    canvas.dispatchEvent(new PointerEvent('pointerup', options));
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    if (!view.state.selected.has(node)) throw new Error('the click selected nothing');
    return performance.now() - start;
}"""


def synthetic_scene(nodes: int = SYNTHETIC_NODES, seed: int = 0) -> Scene:
    """A network of residual and branching stages with ``nodes`` operators, always the same."""
    choice = random.Random(seed)  # noqa: S311 (a reproducible picture, not a secret)
    ops = ["Conv", "BatchNormalization", "Relu", "Add", "Concat", "MatMul", "Softmax", "Reshape"]
    made = [SceneNode("in0", "input", Kind.INPUT, detail="1×3×224×224", family="io")]
    edges: list[SceneEdge] = []
    for i in range(nodes):
        op = choice.choice(ops)
        made.append(SceneNode(f"n{i}", op, detail="1×64×56×56", family=family_of(op)))
        edges.append(SceneEdge(max(0, i - choice.randrange(3)), i + 1, f"t{i}", "1×64×56×56", 802816))
        if i > 12 and choice.random() < 0.35:
            edges.append(SceneEdge(i - choice.randrange(2, 12), i + 1, f"s{i}", "1×64×56×56"))
    return Scene(tuple(made), tuple(edges), f"synthetic {nodes}")


def run(repeats: int = 5) -> dict[str, Any]:
    """Measure ResNet-152 and the synthetic graph, all blocks open.

    Args:
        repeats: How often each drawing and click is timed; the median is reported.

    Returns:
        ``rows`` with, per graph: ``first_ms`` from the arrival of the data in a fresh page to the
        first picture (once), ``drawn_ms`` the same for new data in a page that has drawn before,
        ``frames_per_s`` panning at 1:1 and ``frames_per_s_whole`` with everything in view,
        ``click_ms`` from the click to the picture that shows the selection, ``sent_bytes``;
        and ``targets``.
    """
    scenes = {"resnet152": scene_of(describe(load("resnet152"))), "synthetic": synthetic_scene()}
    rows = []
    with tempfile.TemporaryDirectory() as folder, _page() as page:
        for name, scene in scenes.items():
            view = GraphView(scene)
            view.expand_all()
            path = Path(folder) / f"{name}.html"
            view.to_html(path)
            rows.append({"graph": name, "nodes": len(scene.nodes), **_measure(page, path, repeats)})
    return {"rows": rows, "targets": TARGETS, "protocol": f"median of {repeats}, headless Chromium"}


def _measure(page: Page, path: Path, repeats: int) -> dict[str, float]:
    page.goto(path.as_uri())
    page.wait_for_function(_READY, timeout=60_000)
    first = float(page.evaluate(_FIRST))
    median = sorted(float(page.evaluate(_REDRAW)) for _ in range(repeats))[repeats // 2]
    clicks = sorted(float(page.evaluate(_CLICK)) for _ in range(repeats))[repeats // 2]
    near = page.evaluate(_PAN, {"scale": 1, "seconds": 2})
    whole = page.evaluate(_PAN, {"scale": None, "seconds": 2})
    return {
        "first_ms": round(first, 1),
        "drawn_ms": round(median, 1),
        "frames_per_s": round(float(near), 1),
        "frames_per_s_whole": round(float(whole), 1),
        "click_ms": round(clicks, 1),
        "sent_bytes": path.stat().st_size,
    }


@contextmanager
def _page() -> Iterator[Page]:
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        raise InputError(
            "`explorer bench view` drives a browser and needs playwright: pip install playwright."
        ) from None
    path = next((found for name in _CHROMIUM if (found := shutil.which(name))), None)
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=_FLAGS)
        except Error as error:
            raise InputError(
                f"`explorer bench view` found no Chromium that starts: {error.message.splitlines()[0]}"
            ) from error
        yield browser.new_page(viewport={"width": 1400, "height": 900})
        browser.close()
