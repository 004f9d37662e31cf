"""Take the pictures of the README anew: ``python docs/make_screenshots.py [NAME ...]``.

Everything on them is real: JupyterLab in Chromium, sample models, measurements of the machine this runs on.
Needs what the tests need (`make test` installs it) and a few quiet minutes.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import sync_playwright

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from tests.ui.app_page import WORK_MS, AppPage  # noqa: E402 (found from here, wherever the script is started)
from tests.ui.chromium import MISSING, find_chromium  # noqa: E402
from tests.ui.conftest import FLAGS, VIEWPORT  # noqa: E402
from tests.ui.harness import Lab  # noqa: E402
from tests.ui.server import JupyterServer, jupyter_server  # noqa: E402

FOLD = "fold-batchnorm-into-conv"
LONG_MS = 20 * 60_000


def light(app: AppPage) -> None:
    """ResNet-18 with the site of a candidate."""
    app.filter("fold batchnormalization")
    app.select(f"{FOLD}:n0+n1")


def dark(app: AppPage) -> None:
    """EfficientNet-B0, coloured by measured time, with the details of a node."""
    app.tab("Node")
    app.press("Time per node")
    app.app.get_by_text("per run on").wait_for(timeout=WORK_MS)
    app.idle()
    app.click_node("n0")
    app.app.get_by_text("% of the model").wait_for()
    app.page.mouse.move(5, 5)


def diff(app: AppPage) -> None:
    """Before and after one rewrite."""
    app.filter("fold batchnormalization")
    app.select(f"{FOLD}:n4+n5")
    app.press("Before / after")
    app.page.get_by_role("button", name="Merged").wait_for(timeout=WORK_MS)


def measured(app: AppPage) -> None:
    """Deltas of a dozen candidates, with intervals and verdicts."""
    app.choose("Timing", "screening, up to 10 s")
    places = [row.get_attribute("data-place") or "" for row in app.rows.all()[:12]]
    for place in places:
        app.select(place)
        app.press("Measure")
        app.row(place).locator(".et-value").wait_for(timeout=WORK_MS)
        app.idle()
    app.page.get_by_role("button", name="Measured").click()  # the fastest first
    app.rows.first.click()


def optimise(app: AppPage) -> None:
    """A finished search with its curve."""
    app.tab("Optimise")
    app.page.locator(".explorer-chart-widget[data-points]").wait_for(timeout=WORK_MS)
    app.app.get_by_role("spinbutton", name="Budget").fill("6")
    app.press("Run")
    app.app.locator(".explorer-next").get_by_text("Result").wait_for(timeout=LONG_MS)
    app.idle()


def fuse(app: AppPage) -> None:
    """The optimum's groups against a 256 KB buffer, with the bill of the group of a node."""
    app.tab("Fuse")
    app.app.locator(".explorer-fuse-why").first.wait_for(timeout=WORK_MS)
    app.idle()
    app.click_node("n4")
    app.idle()
    app.page.mouse.move(5, 5)


def roofline(app: AppPage) -> None:
    """Each executed operator under the target's measured roofs."""
    app.tab("Runtime")
    app.press("Roofline")
    app.press("Measure roofline")
    app.page.locator(".explorer-rt-chart .point").first.wait_for(timeout=WORK_MS)
    app.idle()
    app.page.locator(".explorer-rt-chart .point").first.hover(force=True)


def view(app: AppPage) -> None:
    """The runtime's own graph beside the model, every candidate compared."""
    app.tab("Runtime")
    app.press("Runtime's view")
    app.press("Ask the runtime")
    app.page.get_by_role("button", name="Side by side").wait_for(timeout=WORK_MS)
    app.idle()


def portability(app: AppPage) -> None:
    """A small matrix by screening: two levels and an operator sum, minutes of measuring."""
    app.tab("Runtime")
    app.press("Portability")
    app.choose("Cells", "screening, up to 10 s each")
    line = app.app.locator(".explorer-rt-line", has_text="all optimisations")
    line.get_by_role("checkbox", name="by operator sum").check()
    app.app.locator(".explorer-rt-part").get_by_role("spinbutton", name="Budget").fill("6")
    app.press("Run")
    app.page.locator(".hm-cell").nth(5).wait_for(timeout=LONG_MS)
    app.idle()


PICTURES: dict[str, tuple[str, str, bool, Callable[[AppPage], None]]] = {
    "app-light": ("resnet18", "ort:level=all,threads=1", False, light),
    "app-dark": ("efficientnet_b0", "ort:level=all,threads=1", True, dark),
    "app-diff": ("resnet18", "ort:level=all,threads=1", False, diff),
    "app-measured": ("mobilenet_v2", "ort:level=disable,threads=1", False, measured),
    "app-roofline": ("mobilenet_v2", "ort:level=all,threads=1", True, roofline),
    "app-view": ("resnet18", "ort:level=all,threads=1", False, view),
    "app-portability": ("squeezenet1_1", "ort:level=all,threads=1", False, portability),
    "app-optimise": ("resnet18", "ort:level=all,threads=1", False, optimise),
    "app-fuse": ("resnet18", "ort:level=all,threads=1", False, fuse),
}


@contextmanager
def notebook(server: JupyterServer, model: str, target: str, is_dark: bool) -> Iterator[AppPage]:
    """The app on a notebook of its own, with the side bar closed."""
    path = find_chromium()
    if path is None:
        sys.exit(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        lab = Lab(browser.new_context(viewport=VIEWPORT), server)
        lab.open_notebook([f'import explorer\n\nexplorer.open("{model}", target="{target}")'], name="explore")
        for command, arguments in (
            ("apputils:change-theme", {"theme": f"JupyterLab {'Dark' if is_dark else 'Light'}"}),
            ("application:toggle-left-area", {}),
        ):
            lab.page.evaluate(
                "([command, arguments]) => window.jupyterapp.commands.execute(command, arguments)",
                [command, arguments],
            )
        lab.page.wait_for_function(
            f"() => document.body.dataset.jpThemeLight === '{str(not is_dark).lower()}'"
        )
        lab.run_all()
        app = AppPage(lab.page)
        app.wait_open(model)
        yield app
        server.shut_down_kernels()
        browser.close()


def main(names: list[str]) -> None:
    """Take the pictures with these names, or all."""
    unknown = set(names) - set(PICTURES)
    if unknown:
        sys.exit(f"No picture is called {', '.join(sorted(unknown))}; there are {', '.join(PICTURES)}.")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["EXPLORER_CACHE_DIR"] = f"{folder}/cache"  # nothing measured earlier, nobody's sessions
        take(names or list(PICTURES), Path(folder))


def take(names: list[str], folder: Path) -> None:
    """Take pictures with a server whose files are in a folder."""
    with jupyter_server(folder) as server:
        for name in names:
            model, target, is_dark, act = PICTURES[name]
            with notebook(server, model, target, is_dark) as app:
                act(app)
                for question in app.page.get_by_role("button", name="No", exact=True).all():
                    question.click()  # JupyterLab asks about news
                app.page.wait_for_timeout(1500)  # the camera glides
                path = REPOSITORY / "docs" / f"{name}.png"
                app.page.screenshot(path=path)
                sys.stdout.write(f"{path} {path.stat().st_size / 1000:.0f} kB\n")


if __name__ == "__main__":
    main(sys.argv[1:])
