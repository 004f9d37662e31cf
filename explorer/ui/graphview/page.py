"""The view as a page of its own: data, style and script in one file, no kernel, no network."""

from __future__ import annotations

import base64
import html
import json
from typing import TYPE_CHECKING, Any

from explorer.ui.graphview.assets import module_text, style_text

if TYPE_CHECKING:
    from explorer.ui.graphview.widget import GraphView

_TRAITS = (
    "names", "picture", "colourings", "colour_by", "highlighted", "groups", "edge_values",
    "comparison", "selection", "height",
)  # fmt: skip

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data: blob:; \
script-src 'unsafe-inline'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}
html, body {{ margin: 0; height: 100%; }}
body > div > .explorer-graph {{ height: 100vh !important; border: 0; border-radius: 0; resize: none; }}
</style>
</head>
<body>
<div id="graph"></div>
<script type="application/json" id="data">{data}</script>
<script type="module">
{module}
{starter}
</script>
</body>
</html>
"""

# Stands in for the widget model: the same data, and a kernel that never answers.
_STARTER = """
function revive(value) {
  if (Array.isArray(value)) return value.map(revive);
  if (value === null || typeof value !== "object") return value;
  if (typeof value.base64 === "string") {
    return new DataView(Uint8Array.from(atob(value.base64), (c) => c.charCodeAt(0)).buffer);
  }
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, revive(inner)]));
}
const traits = revive(JSON.parse(document.getElementById("data").textContent));
const listeners = new Map();
const model = {
  get: (name) => traits[name],
  set: (name, value) => {
    traits[name] = value;
    for (const call of listeners.get(`change:${name}`) ?? []) call();
  },
  on: (name, call) => { listeners.set(name, [...(listeners.get(name) ?? []), call]); },
  off: (name, call) => { listeners.set(name, (listeners.get(name) ?? []).filter((c) => c !== call)); },
  save_changes: () => {},
  send: (message) => { for (const call of listeners.get("sent") ?? []) call(message); },
};
window.graphModel = model;
window.graphStart = performance.now();
makeWidget().render({ model, el: document.getElementById("graph") });
"""


def page_of(view: GraphView) -> str:
    """A self-contained HTML document that shows the view as it is now."""
    traits = {name: getattr(view, name) for name in _TRAITS}
    data = json.dumps(_plain(traits), separators=(",", ":"))
    # Inside a script element only "<" could end it or start a comment.
    safe = data.replace("<", "\\u003c")
    return _PAGE.format(
        title=html.escape(view.scene.title or "graph"),
        style=style_text(),
        data=safe,
        module=module_text().replace("export default makeWidget;", ""),
        starter=_STARTER,
    )


def _plain(value: Any) -> Any:  # noqa: ANN401 (any JSON value, with bytes inside)
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
