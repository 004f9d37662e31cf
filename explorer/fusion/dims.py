"""Sizes of dimensions as text and in files, and the sentence that asks for one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from explorer.errors import InputError
from explorer.records import Record

Size = int | tuple[int, ...]
_EXAMPLE = re.compile(r"dims=\{'([^']+)': (\d+|\([\d, ]+\))\}")


def read_dims(text: str) -> dict[str, Size]:
    """Sizes from a text such as "N=1, f=1x4x4"; raises InputError for anything else."""
    found: dict[str, Size] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, size = part.rpartition("=")
        numbers = size.strip().split("x")
        if not name.strip() or not all(number.isdigit() for number in numbers):
            raise InputError(
                f"'{part}' is no size of a dimension; write sizes like N=1, S=128 and shapes like f=1x4x4."
            )
        sizes = tuple(int(number) for number in numbers)
        found[name.strip()] = sizes if len(sizes) > 1 else sizes[0]
    return found


def dims_text(dims: Mapping[str, Size]) -> str:
    """The text that ``read_dims`` reads."""
    return ", ".join(f"{name}={_size_text(size)}" for name, size in dims.items())


def recorded_dims(record: Record, key: str) -> tuple[tuple[str, Size], ...]:
    """Sizes in a JSON object; a shape is a list. Raises InputError for anything else."""
    found: list[tuple[str, Size]] = []
    for name, size in record.items_of(key):
        one = Record({name: size}, "list of dimensions")
        found.append((name, one.integers(name) if isinstance(size, list) else one.integer(name)))
    return tuple(found)


def with_example(message: str, form: Callable[[str, str], str]) -> str:
    """A message of ``unknown_dim`` whose example is written as it has to be given here."""
    return _EXAMPLE.sub(lambda m: form(m[1], m[2].strip("()").replace(", ", "x")), message)


def _size_text(size: Size) -> str:
    return str(size) if isinstance(size, int) else "x".join(map(str, size))


def unknown_dim(model: str, tensor: str, dims: tuple[int | str | None, ...] | None) -> InputError:
    """The error for a tensor that is not fully known: it says which dimension, and how to fix it."""
    if dims is None:
        return InputError(
            f"The shape of tensor '{tensor}' of '{model}' is unknown; "
            f"give it, for example dims={{'{tensor}': (1, 8, 8)}}."
        )
    axis = next(a for a, d in enumerate(dims) if not isinstance(d, int))
    symbol = dims[axis]
    key = f"{tensor}:{axis}" if symbol is None else symbol
    called = f"{axis}" if symbol is None else f"{axis} ('{symbol}')"
    return InputError(
        f"Dimension {called} of tensor '{tensor}' of '{model}' is unknown; "
        f"fix it, for example dims={{'{key}': 1}}."
    )
