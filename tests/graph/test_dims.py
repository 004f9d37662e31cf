"""Unknown dimensions of a graph, fixed."""

from __future__ import annotations

import pytest

from explorer.errors import InputError
from explorer.graph import describe, load, with_dims
from tests.models import model


def test_sizes_reach_every_tensor_and_the_original_stays():
    graph = load(
        model("(float[N,4] x, float[?,4] y) => (float[?,4] z) { a = Relu(x)  z = Concat<axis=0>(a, y) }")
    )
    sized = describe(with_dims(graph, {"N": 3, "y:0": 2}))
    assert [t.shape for t in (*sized.inputs, *sized.outputs)] == [(3, 4), (2, 4), (5, 4)]
    assert describe(graph).inputs[0].shape == ("N", 4)


@pytest.mark.parametrize(
    ("dims", "said"), [({"M": 3}, "no unknown dimension 'M'"), ({"N": -1}, "Dimension 'N' cannot be -1")]
)
def test_what_fits_nothing_or_is_no_size_is_refused(dims, said):
    graph = load(model("(float[N,4] x) => (float[N,4] y) { y = Relu(x) }"))
    with pytest.raises(InputError, match=said):
        with_dims(graph, dims)
