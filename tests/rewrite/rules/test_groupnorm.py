"""F9: GroupNorm written with InstanceNormalization, as one node, and back."""

import numpy as np
import pytest

from tests.rewrite.harness import (
    apply_only,
    assert_inverse_restores,
    candidates,
    graph_of,
    ops,
    reasons,
)

FUSE, SPLIT = "fuse-groupnorm", "split-groupnorm"
RNG = np.random.default_rng(16)
GAMMA, BETA = (RNG.uniform(0.5, 1.5, (6, 1, 1)).astype("f4") for _ in range(2))
BODY = """g = Reshape(x, grouped)  i = InstanceNormalization<epsilon=1e-4>(g, ones, zeros)  r = Reshape(i, back)
    m = Mul(r, gamma)  y = Add(m, beta)"""


def norm(body=BODY, kind="float", dtype="f4", opset=21, shape="[2,6,4,5]", outputs="", **changed):
    constants = {
        "grouped": np.array([0, 3, -1]),
        "back": np.array([2, 6, 4, 5]),
        "ones": np.ones(3, dtype),
        "zeros": np.zeros(3, dtype),
        "gamma": GAMMA.astype(dtype),
        "beta": BETA.astype(dtype),
    }
    used = {k: v for k, v in {**constants, **changed}.items() if f"{k})" in body or f"{k}," in body}
    return graph_of(f"({kind}{shape} x) => ({kind}{shape} y{outputs}) {{ {body} }}", opset=opset, **used)


@pytest.mark.parametrize(("kind", "dtype"), [("float", "f4"), ("float16", "f2")])
def test_parts_become_one_node(kind, dtype):
    (node,) = apply_only(norm(kind=kind, dtype=dtype), FUSE).nodes
    assert (node.op_type, node.attributes.get_int("num_groups")) == ("GroupNormalization", 3)
    assert node.attributes.get_float("epsilon") == pytest.approx(1e-4)


def test_fused_and_back():
    graph = norm()
    (candidate,) = candidates(graph, FUSE)
    assert_inverse_restores(graph, candidate)


def test_operands_swapped_and_parameters_of_full_rank():
    body = BODY.replace("Mul(r, gamma)", "Mul(gamma, r)").replace("Add(m, beta)", "Add(beta, m)")
    graph = norm(body, gamma=GAMMA[None], beta=np.array(0.5, "f4"))
    assert ops(apply_only(graph, FUSE)) == {"GroupNormalization": 1}


def test_without_scale_and_bias():
    graph = norm(BODY.replace("r = Reshape", "y = Reshape").split("m =")[0])
    assert ops(apply_only(graph, FUSE)) == {"GroupNormalization": 1}


def test_parameters_that_vary_over_other_axes_stay_outside():
    graph = norm(gamma=np.ones((4, 1), "f4"))
    assert ops(apply_only(graph, FUSE)) == {"GroupNormalization": 1, "Mul": 1, "Add": 1}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"grouped": np.array([1, 6, -1]), "ones": np.ones(6, "f4"), "zeros": np.zeros(6, "f4")}, "'g' [1, 6, 40] does not group the channels of 'x' [2, 6, 4, 5]"),
        ({"ones": np.array([1, 2, 1], "f4")}, "scale and bias of the InstanceNormalization are not constant ones and zeros"),
    ],
)  # fmt: skip
def test_near_misses_are_refused(changed, reason):
    assert reasons(norm(**changed), FUSE) == [reason]


def test_old_opset_other_shape_and_second_reader_are_refused():
    assert reasons(norm(opset=20), FUSE) == ["the result needs opset 21, the model imports 20"]
    shared = norm(BODY + "  z = Relu(r)", outputs=", float[2,6,4,5] z")
    fused = apply_only(shared, FUSE)  # scale and bias stay outside
    assert ops(fused) == {"GroupNormalization": 1, "Mul": 1, "Add": 1, "Relu": 1}
    escaped = norm(BODY + "  z = Relu(i)", outputs=", float[2,3,40] z")
    assert reasons(escaped, FUSE) == ["'i', inside the pattern, is also read by an unnamed Relu"]


@pytest.mark.parametrize("shape", ["[2,6,4,5]", "[n,6,h,5]", "[n,6,l]"])
def test_operator_is_written_out(shape):
    graph = norm(
        "y = GroupNormalization<num_groups=2>(x, s, b)",
        shape=shape,
        s=GAMMA.ravel().copy(),
        b=BETA.ravel().copy(),
    )
    expected = {"Reshape": 2, "InstanceNormalization": 1, "Mul": 1, "Add": 1}
    if "n" in shape:
        expected["Shape"] = 1
    assert ops(apply_only(graph, SPLIT)) == expected


def test_computed_parameters_are_refused():
    graph = norm(
        "s = Identity(t)  y = GroupNormalization<num_groups=2>(x, s, b)",
        t=GAMMA.ravel().copy(),
        b=BETA.ravel().copy(),
    )
    assert reasons(graph, SPLIT) == ["'s' is not a constant"]


def test_match_inside_a_branch():
    graph = norm(
        f"""y = If(k) <
            then_branch = t () => (float[2,6,4,5] o) {{ {BODY.replace("y =", "o =")} }},
            else_branch = e () => (float[2,6,4,5] p) {{ p = Relu(x) }}
        >""",
        k=np.array(True),
    )
    assert ops(apply_only(graph, FUSE)) == {"If": 1, "GroupNormalization": 1, "Relu": 1}
