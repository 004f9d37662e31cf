"""F2: RMSNorm as exporters write it, as one node, and back."""

import numpy as np
import onnx
import pytest

from explorer.graph import load
from explorer.rewrite import all_rules, apply
from tests.models import run
from tests.rewrite.harness import (
    apply_all,
    apply_checked,
    apply_only,
    assert_inverse_restores,
    candidates,
    graph_of,
    ops,
    reasons,
)

FUSE, SPLIT = "fuse-rmsnorm", "split-rmsnorm"
GAMMA = np.random.default_rng(12).uniform(0.5, 1.5, 6).astype("f4")
HEAD = "q = Pow(x, two)  v = ReduceMean(q, axes)  e = Add(v, eps)  s = Sqrt(e)"
FORMS = {
    "div": f"{HEAD}  n = Div(x, s)  y = Mul(n, gamma)",
    "dynamo": f"{HEAD}  r = Reciprocal(s)  n = Mul(x, r)  y = Mul(gamma, n)",
    "mul": HEAD.replace("Pow(x, two)", "Mul(x, x)") + "  n = Div(x, s)  y = Mul(gamma, n)",
    "one over root": f"{HEAD}  r = Div(one, s)  n = Mul(r, x)  y = Mul(n, gamma)",
    "inverse power": HEAD.replace("Sqrt(e)", "Pow(e, minus)") + "  n = Mul(x, s)  y = Mul(n, gamma)",
}


def norm(body, kind="float", dtype="f4", opset=23, **changed):
    numbers = {"two": 2.0, "eps": np.float32(1e-6), "one": 1.0, "minus": -0.5}
    constants = {k: np.array(v, dtype) for k, v in numbers.items() if f" {k})" in body or f"({k}," in body}
    if "axes)" in body:
        constants["axes"] = np.array([-1])
    if "gamma" in body:
        constants["gamma"] = GAMMA.astype(dtype)
    text = f"({kind}[n,3,6] x) => ({kind}[n,3,6] y) {{ {body} }}"
    return graph_of(text, opset=opset, **{**constants, **changed})


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(("kind", "dtype"), [("float", "f4"), ("double", "f8"), ("float16", "f2")])
def test_forms(form, kind, dtype):
    if kind == "float16":  # 1e-6 is smaller than what half precision resolves
        graph = norm(form, kind, dtype, eps=np.array(1e-3, "f2"))
    else:
        graph = norm(form, kind, dtype)
    (node,) = apply_only(graph, FUSE).nodes
    assert (node.op_type, node.attributes.get_int("axis")) == ("RMSNormalization", -1)


def test_fused_and_back():
    graph = norm(FORMS["div"])
    (candidate,) = candidates(graph, FUSE)
    assert_inverse_restores(graph, candidate)


def test_missing_scale_becomes_ones_and_a_bias_stays_outside():
    graph = norm(FORMS["div"].replace("y = Mul(n, gamma)", "y = Add(n, gamma)"))
    (candidate,) = candidates(graph, FUSE)
    assert candidate.bytes_delta == 6 * 4 - 4 - 4 - 8
    assert ops(apply_checked(graph, candidate)) == {"RMSNormalization": 1, "Add": 1}


def test_before_opset_23_there_is_no_operator_for_it():
    graph = norm(FORMS["dynamo"], opset=20)
    assert candidates(graph, FUSE) == []
    (reason,) = reasons(graph, FUSE)
    assert reason == (
        "RMSNormalization needs opset 23, the model imports 20; written with Pow and Div (rules mul-to-square, "
        "mul-reciprocal-to-div) ONNX Runtime fuses it itself"
    )


def test_form_with_div_and_pow_is_what_the_runtime_fuses(tmp_path):
    import onnxruntime as ort

    from explorer.graph import save

    def optimised(graph):
        options = ort.SessionOptions()
        options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
        ort.InferenceSession(
            str(save(graph, tmp_path / "m.onnx")), options, providers=["CPUExecutionProvider"]
        )
        return {node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node}

    dynamo = norm(FORMS["dynamo"], opset=20)
    assert "SimplifiedLayerNormalization" not in optimised(dynamo)
    assert "SimplifiedLayerNormalization" in optimised(apply_only(dynamo, "mul-reciprocal-to-div"))
    squares = norm(FORMS["mul"], opset=20)
    assert "SimplifiedLayerNormalization" in optimised(apply_only(squares, "mul-to-square"))


def test_layernorm_is_no_rmsnorm():
    body = "m = ReduceMean(x, axes)  d = Sub(x, m)  " + FORMS["div"].replace("x, two", "d, two").replace(
        "Div(x", "Div(d"
    )
    graph = norm(body)
    assert candidates(graph, FUSE) == reasons(graph, FUSE) == []
    assert len(candidates(graph, "fuse-layernorm")) == 1


def test_inner_value_that_others_read_is_refused():
    graph = graph_of(
        f"(float[2,6] x) => (float[2,6] y, float[2,1] z) {{ {FORMS['div']}  z = Neg(s) }}",
        opset=23,
        two=np.array(2, "f4"),
        eps=np.array(1e-6, "f4"),
        axes=np.array([-1]),
        gamma=GAMMA,
    )
    assert reasons(graph, FUSE) == ["'s', inside the pattern, is also read by an unnamed Neg"]


@pytest.mark.parametrize("opset", [17, 20])
def test_operator_of_the_runtime_is_written_out(opset):
    model = graph_of("(float[2,3,6] x) => (float[2,3,6] y) { y = Relu(x) }", opset=opset, gamma=GAMMA)
    import onnx_ir as ir

    proto = ir.serde.serialize_model(model.model)
    del proto.graph.node[:]
    proto.graph.node.append(
        onnx.helper.make_node("SimplifiedLayerNormalization", ["x", "gamma"], ["y"], axis=-1, epsilon=1e-6)
    )
    proto.graph.initializer.append(onnx.numpy_helper.from_array(GAMMA, "gamma"))
    graph = load(proto, name="simplified")  # the checker refuses it, so there is no apply_checked here
    (candidate,) = candidates(graph, SPLIT)
    result = apply(graph, candidate, all_rules())
    assert ops(result)["ReduceMean"] == 1
    x = {"x": np.random.default_rng(0).standard_normal((2, 3, 6)).astype("f4")}
    np.testing.assert_allclose(run(graph, x)[0], run(result, x)[0], rtol=1e-5, atol=1e-6)


def test_two_norms_and_a_branch():
    body = FORMS["div"].replace("y =", "w =")
    graph = graph_of(
        f"""(bool k, float[2,6] x) => (float[2,6] y) {{
            y = If(k) <
                then_branch = t () => (float[2,6] w) {{ {body} }},
                else_branch = e () => (float[2,6] u) {{ {body.replace("w =", "u =")} }}
            >
        }}""",
        opset=23,
        two=np.array(2, "f4"),
        eps=np.array(1e-6, "f4"),
        axes=np.array([-1]),
        gamma=GAMMA,
    )
    assert ops(apply_all(graph, FUSE)) == {"If": 1, "RMSNormalization": 2}
