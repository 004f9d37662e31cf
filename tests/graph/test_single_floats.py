"""``structure_fingerprint``: single floats choose a kernel's way, all other float weights only its numbers."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.graph import load
from tests.models import model

POW = "(float[8] x) => (float[8] y) { y = Pow(x, e) }"
ADD = "(float[8] x) => (float[8] y) { y = Add(x, w) }"


def structure(text: str, **weights: np.ndarray) -> str:
    return load(model(text, **weights)).structure_fingerprint()


def constant(value: float) -> str:
    return f"(float[8] x) => (float[8] y) {{ e = Constant<value = float {{{value}}}>()\n y = Pow(x, e) }}"


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_single_floats_count(shape: tuple[int, ...]) -> None:
    two, other = (structure(POW, e=np.full(shape, value, "f4")) for value in (2.0, 3.5))
    assert two != other


def test_those_in_constant_nodes_count_too() -> None:
    assert structure(constant(2.0)) != structure(constant(3.5))
    assert structure(constant(2.0)) == structure(POW, e=np.array(2, "f4"))


def test_the_last_digits_that_a_fold_changes_do_not_count() -> None:
    assert structure(POW, e=np.array(2.0, "f4")) == structure(POW, e=np.array(2.0000002, "f4"))
    assert structure(ADD, w=np.full(8, 2, "f4")) == structure(ADD, w=np.full(8, 3.5, "f4"))


def test_it_matters_which_node_reads_which_single_float() -> None:
    text = "(float[8] x) => (float[8] y) { a = Pow(x, e)\n y = Mul(a, f) }"
    one = structure(text, e=np.array(2, "f4"), f=np.array(3, "f4"))
    assert one != structure(text, e=np.array(3, "f4"), f=np.array(2, "f4"))


def test_the_full_fingerprint_tells_all_contents_apart() -> None:
    one, other = (load(model(ADD, w=np.full(8, value, "f4"))).fingerprint() for value in (2.0, 2.0000002))
    assert one != other
