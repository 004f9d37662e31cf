"""Numbers for people. The canvas formats in the same way (js/units.js)."""

from __future__ import annotations


def bytes_text(value: float) -> str:
    """Bytes with a binary-free unit: 784 kB, 3.2 MB (1 kB = 1,000 bytes)."""
    return _scaled(value, ("B", "kB", "MB", "GB", "TB"))


def count_text(value: float) -> str:
    """A count: 9.4 k, 118 M."""
    return _scaled(value, ("", "k", "M", "G", "T")).strip()


def time_text(nanoseconds: float) -> str:
    """A duration: 640 ns, 12.5 µs, 1.24 ms, 3.1 s."""
    return _scaled(nanoseconds, ("ns", "µs", "ms", "s"))


def _scaled(value: float, units: tuple[str, ...]) -> str:
    size, unit = abs(float(value)), 0
    while size >= 999.5 and unit < len(units) - 1:
        size, unit = size / 1000, unit + 1
    digits = 0 if size >= 99.5 or (unit == 0 and size == int(size)) else 1 if size >= 9.95 else 2
    text = f"{size:.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"{'-' if value < 0 else ''}{text} {units[unit]}"
