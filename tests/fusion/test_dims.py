"""Sizes of unknown dimensions as text and as JSON."""

from __future__ import annotations

import pytest

from explorer.errors import InputError
from explorer.fusion.dims import dims_text, read_dims, recorded_dims, unknown_dim, with_example
from explorer.records import Record


def test_sizes_and_shapes_are_read_and_written() -> None:
    found = read_dims(" N=1, x:0=3 , f=1x4x4,")
    assert found == {"N": 1, "x:0": 3, "f": (1, 4, 4)}
    assert dims_text(found) == "N=1, x:0=3, f=1x4x4"
    assert read_dims(dims_text(found)) == found


@pytest.mark.parametrize("text", ["N", "=3", "N=two", "f=1xx4", "f=1x-4"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no size of a dimension"):
        read_dims(text)


def test_they_survive_json() -> None:
    assert recorded_dims(Record({"dims": {"N": 2, "f": [1, 4]}}, "plan"), "dims") == (("N", 2), ("f", (1, 4)))
    with pytest.raises(InputError, match=r"as 'N', not 1\.5"):
        recorded_dims(Record({"dims": {"N": 1.5}}, "plan"), "dims")


def test_the_example_is_written_as_it_has_to_be_given() -> None:
    def option(name: str, size: str) -> str:
        return f"--set {name} {size}"

    told = str(unknown_dim("net", "f", None))
    assert with_example(told, option).endswith("for example --set f 1x8x8.")
    told = str(unknown_dim("net", "x", (3, "N")))
    assert with_example(told, option).endswith("for example --set N 1.")
