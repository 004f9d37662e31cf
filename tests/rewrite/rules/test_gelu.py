"""E6, E7 and E8: Gelu as exporters write it, as one node, with and without its bias."""

import numpy as np
import pytest

from explorer.rewrite import NumericClass, all_rules, default_rules
from tests.rewrite.harness import (
    apply_checked,
    apply_only,
    assert_inverse_restores,
    candidates,
    graph_of,
    ops,
    reasons,
)

MS = {"com.microsoft": 1}
NUMBERS = {
    "r2": np.sqrt(2.0),
    "ir2": 1 / np.sqrt(2.0),
    "one": 1.0,
    "half": 0.5,
    "two": 2.0,
    "three": 3.0,
    "cube": 0.044715,
    "scale": np.sqrt(2 / np.pi),
    "both": 0.044715 * np.sqrt(2 / np.pi),
}
ERF_FORMS = {
    "torchscript": "d = Div(x, r2)  e = Erf(d)  a = Add(e, one)  m = Mul(x, a)  y = Mul(m, half)",
    "tf2onnx": "d = Mul(x, ir2)  e = Erf(d)  a = Add(one, e)  h = Mul(half, x)  y = Mul(h, a)",
    "keras": "h = Mul(x, half)  d = Div(x, r2)  e = Erf(d)  a = Add(e, one)  y = Mul(a, h)",
    "half gate": "d = Div(x, r2)  e = Erf(d)  a = Add(e, one)  g = Mul(a, half)  y = Mul(x, g)",
    "halved by division": "d = Div(x, r2)  e = Erf(d)  a = Add(e, one)  m = Mul(a, x)  y = Div(m, two)",
    "affine gate": "d = Div(x, r2)  e = Erf(d)  h = Mul(e, half)  a = Add(h, half)  y = Mul(x, a)",
}
TANH_FORMS = {
    "dynamo": """h = Mul(x, half)  p = Pow(x, three)  q = Mul(p, cube)  s = Add(x, q)  u = Mul(s, scale)
        t = Tanh(u)  a = Add(t, one)  y = Mul(h, a)""",
    "products": """p = Mul(x, x)  p3 = Mul(x, p)  q = Mul(cube, p3)  s = Add(q, x)  u = Mul(scale, s)
        t = Tanh(u)  a = Add(one, t)  m = Mul(x, a)  y = Mul(m, half)""",
    "factored": """c = Mul(x, cube)  p = Mul(c, x)  b = Add(p, one)  v = Mul(x, b)  u = Mul(v, scale)
        t = Tanh(u)  a = Add(t, one)  g = Mul(a, half)  y = Mul(x, g)""",
    "factored, x scaled": """k = Mul(x, scale)  c = Mul(x, cube)  p = Mul(c, x)  b = Add(p, one)  u = Mul(k, b)
        t = Tanh(u)  a = Add(t, one)  h = Mul(x, half)  y = Mul(h, a)""",
    "squared": """p = Pow(x, two)  q = Mul(p, cube)  b = Add(one, q)  v = Mul(b, x)  u = Mul(v, scale)
        t = Tanh(u)  a = Add(t, one)  h = Mul(x, half)  y = Mul(h, a)""",
}


def written(body, kind="float", dtype="f4", opset=20, **changed):
    names = [name for name in NUMBERS if f" {name})" in body or f"({name}," in body]
    constants = {name: np.array(NUMBERS[name], dtype) for name in names}
    return graph_of(
        f"({kind}[n,3,4] x) => ({kind}[n,3,4] y) {{ {body} }}", opset=opset, **{**constants, **changed}
    )


@pytest.mark.parametrize("form", ERF_FORMS.values(), ids=ERF_FORMS)
@pytest.mark.parametrize(("rule", "domain"), [("fuse-gelu", ""), ("fuse-microsoft-gelu", "com.microsoft")])
def test_forms_with_erf(form, rule, domain):
    (node,) = apply_only(written(form), rule).nodes
    assert (node.op_type, node.domain) == ("Gelu", domain)


@pytest.mark.parametrize("form", TANH_FORMS.values(), ids=TANH_FORMS)
@pytest.mark.parametrize(("rule", "op_type"), [("fuse-tanh-gelu", "Gelu"), ("fuse-fastgelu", "FastGelu")])
def test_forms_with_tanh(form, rule, op_type):
    (node,) = apply_only(written(form), rule).nodes
    assert node.op_type == op_type
    assert node.attributes.get_string("approximate", "") == ("tanh" if op_type == "Gelu" else "")


@pytest.mark.parametrize(
    ("fuse", "form"),
    [
        ("fuse-gelu", ERF_FORMS["torchscript"]),
        ("fuse-microsoft-gelu", ERF_FORMS["torchscript"]),
        (
            "fuse-tanh-gelu",
            """p = Pow(x, three)  q = Mul(p, cube)  s = Add(x, q)  u = Mul(s, scale)
            t = Tanh(u)  a = Add(t, one)  m = Mul(x, a)  y = Mul(m, half)""",
        ),
        (
            "fuse-fastgelu",
            """p = Pow(x, three)  q = Mul(p, cube)  s = Add(x, q)  u = Mul(s, scale)
            t = Tanh(u)  a = Add(t, one)  m = Mul(x, a)  y = Mul(m, half)""",
        ),
    ],
)
def test_gelu_and_back(fuse, form):
    graph = written(form)
    (candidate,) = candidates(graph, fuse)
    assert_inverse_restores(graph, candidate)
    fused = apply_checked(graph, candidate)
    (split,) = candidates(fused, all_rules()[fuse].inverse)
    apply_checked(fused, split)


def test_half_precision_has_coarse_constants():
    graph = written(ERF_FORMS["tf2onnx"], "float16", "f2")
    assert ops(apply_only(graph, "fuse-gelu")) == {"Gelu": 1}
    assert reasons(graph, "fuse-microsoft-gelu") == ["'y' has element type float16; the rule handles float"]


@pytest.mark.parametrize(
    ("name", "number"), [("r2", 1.5), ("one", 0.5), ("half", 0.25)], ids=["argument", "gate", "factor"]
)
def test_other_constants_are_no_gelu(name, number):
    graph = written(ERF_FORMS["torchscript"], **{name: np.array(number, "f4")})
    assert candidates(graph, "fuse-gelu") == []


@pytest.mark.parametrize(("name", "number"), [("cube", 0.05), ("scale", 0.8), ("three", 2.0)])
def test_other_constants_are_no_tanh_gelu(name, number):
    graph = written(TANH_FORMS["dynamo"], **{name: np.array(number, "f4")})
    assert candidates(graph, "fuse-tanh-gelu") == []


def test_vector_constants_and_other_arguments_are_no_gelu():
    vector = written(ERF_FORMS["torchscript"], half=np.full(4, 0.5, "f4"))
    assert candidates(vector, "fuse-gelu") == []
    other = graph_of(
        "(float[2,4] x, float[2,4] z) => (float[2,4] y) { "
        + ERF_FORMS["torchscript"].replace("Mul(x, a)", "Mul(z, a)")
        + "}",
        **{name: np.array(NUMBERS[name], "f4") for name in ("r2", "one", "half")},
    )
    assert candidates(other, "fuse-gelu") == []


def test_constant_that_enlarges_the_result_is_no_gelu():
    graph = graph_of(
        "(float[3,4] x) => (float[1,3,4] y) { " + ERF_FORMS["torchscript"] + " }",
        opset=20,
        r2=np.array(NUMBERS["r2"], "f4"),
        one=np.array(1, "f4"),
        half=np.full((1, 1, 1), 0.5, "f4"),
    )
    assert candidates(graph, "fuse-gelu") == []


def test_inner_value_that_others_read_is_refused():
    graph = graph_of(
        "(float[3,4] x) => (float[3,4] y, float[3,4] z) { " + ERF_FORMS["torchscript"] + "  z = Neg(a) }",
        opset=20,
        **{name: np.array(NUMBERS[name], "f4") for name in ("r2", "one", "half")},
    )
    assert reasons(graph, "fuse-gelu") == ["'a', inside the pattern, is also read by an unnamed Neg"]


def test_old_opset_is_refused_for_the_standard_operator_only():
    graph = written(ERF_FORMS["torchscript"], opset=17)
    assert reasons(graph, "fuse-gelu") == ["the result needs opset 20, the model imports 17"]
    assert ops(apply_only(graph, "fuse-microsoft-gelu")) == {"Gelu": 1}


def test_two_gelus_that_share_their_constants():
    graph = written(
        ERF_FORMS["torchscript"].replace("y =", "v =")
        + "  d2 = Div(v, r2)  e2 = Erf(d2)  a2 = Add(e2, one)  m2 = Mul(v, a2)  y = Mul(m2, half)"
    )
    found = candidates(graph, "fuse-gelu")
    assert [c.bytes_delta for c in found] == [0, 0]
    assert ops(apply_only(apply_checked(graph, found[0]), "fuse-gelu")) == {"Gelu": 2}


def test_approximation_is_marked_and_opt_in():
    graph = written("y = Gelu(x)")
    (candidate,) = candidates(graph, "approximate-gelu")
    assert candidate.numeric_class is NumericClass.APPROXIMATE
    assert "approximate-gelu" not in default_rules()
    assert ops(apply_checked(graph, candidate)) == {"FastGelu": 1}
    assert candidates(written('y = Gelu<approximate="tanh">(x)'), "approximate-gelu") == []


def test_attribute_decides_which_gelu_is_split():
    tanh = written('y = Gelu<approximate="tanh">(x)')
    assert candidates(tanh, "split-gelu") == []
    assert ops(apply_only(tanh, "split-tanh-gelu"))["Tanh"] == 1


def test_match_inside_a_branch():
    graph = graph_of(
        """(bool k, float[3,4] x) => (float[3,4] y) {
            y = If(k) <
                then_branch = t () => (float[3,4] o) {
                    d = Div(x, r2)  e = Erf(d)  a = Add(e, one)  m = Mul(x, a)  o = Mul(m, half)
                },
                else_branch = e () => (float[3,4] q) { q = Relu(x) }
            >
        }""",
        opset=20,
        **{name: np.array(NUMBERS[name], "f4") for name in ("r2", "one", "half")},
    )
    assert ops(apply_only(graph, "fuse-gelu")) == {"If": 1, "Gelu": 1, "Relu": 1}


BIAS = np.random.default_rng(10).standard_normal(4).astype("f4")


@pytest.mark.parametrize("total", ["Add(x, b)", "Add(b, x)"])
@pytest.mark.parametrize(
    ("gelu", "fused"),
    [("Gelu", "BiasGelu"), ("com.microsoft.Gelu", "BiasGelu"), ("com.microsoft.FastGelu", "FastGelu")],
)
def test_bias_moves_into_the_gelu(total, gelu, fused):
    graph = written(f"s = {total}  y = {gelu}(s)", b=BIAS, domains=MS)
    (node,) = apply_only(graph, "fuse-bias-gelu").nodes
    assert (node.op_type, [v.name for v in node.inputs]) == (fused, ["x", "b"])


@pytest.mark.parametrize(
    ("gelu", "opset"), [("Gelu", 20), ("com.microsoft.Gelu", 17), ("com.microsoft.FastGelu", 17)]
)
def test_bias_gelu_and_back(gelu, opset):
    graph = written(f"s = Add(x, b)  y = {gelu}(s)", opset=opset, b=BIAS, domains=MS)
    assert_inverse_restores(graph, candidates(graph, "fuse-bias-gelu")[0])


def test_bias_that_is_no_row_and_tanh_gelu_are_not_fused():
    row = written("s = Add(x, b)  y = Gelu(s)", b=BIAS[:1].copy())
    assert reasons(row, "fuse-bias-gelu") == ["'b' [1] is not one row of 'x' [n, 3, 4]"]
    column = written("s = Add(x, b)  y = Gelu(s)", b=np.ones((3, 1), "f4"))
    assert candidates(column, "fuse-bias-gelu") == []
    tanh = written('s = Add(x, b)  y = Gelu<approximate="tanh">(s)', b=BIAS)
    assert candidates(tanh, "fuse-bias-gelu") == []


def test_sum_that_others_read_is_refused():
    graph = graph_of(
        "(float[3,4] x) => (float[3,4] y, float[3,4] z) { s = Add(x, b)  y = Gelu(s)  z = Neg(s) }",
        opset=20,
        b=BIAS,
    )
    assert reasons(graph, "fuse-bias-gelu") == ["'s', inside the pattern, is also read by an unnamed Neg"]
