"""How a name from a stranger's file appears in a message: quoted, short, on one line."""

from __future__ import annotations

_LIMIT, _HEAD, _TAIL = 200, 60, 120  # the end of a path says more than its beginning


def quoted(name: object) -> str:
    """The name in quotation marks; control characters escaped, the middle of a long one left out."""
    return f"'{_plain(name)}'"


def node_label(name: object, op_type: object, domain: object = "") -> str:
    """A node in words, such as ``node 'conv1' (Conv)`` or ``an unnamed vendor.ops::FancyGate node``."""
    operator = _plain(op_type if domain in {"", "ai.onnx"} else f"{domain}::{op_type}")
    return f"node {quoted(name)} ({operator})" if name else f"an unnamed {operator} node"


def _plain(name: object) -> str:
    text = name.decode(errors="replace") if isinstance(name, bytes) else str(name)
    if len(text) > _LIMIT:
        text = f"{text[:_HEAD]}...{text[-_TAIL:]}"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
