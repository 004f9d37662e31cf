from __future__ import annotations

import gc
import json
import os
import re
from pathlib import Path

import numpy as np
import onnx
import pytest

from explorer.errors import RuntimeFailure
from explorer.graph import freeze_weights, load, make_feeds
from explorer.runtime import Target
from explorer.runtime.backend import backend_for, model_label, stored_name
from explorer.runtime.backends.ort_errors import shorten
from explorer.runtime.backends.ort_log import acting
from explorer.runtime.store import ModelStore
from tests.models import model
from tests.runtime.models import CHAIN, CHAIN_WITH_IDENTITY, TWO_INPUTS, proto, write

CASES = Path(__file__).resolve().parents[1] / "cases"
ORT = backend_for("ort")
ALL = Target.parse("ort:level=all")
DISABLE = Target.parse("ort:level=disable")


def run(path, target, feeds):
    session = ORT.open(path, target)
    try:
        return dict(zip(session.output_names, session.bind(feeds)(), strict=True))
    finally:
        session.close()


def open_sessions():
    import onnxruntime

    gc.collect()
    return sum(isinstance(o, onnxruntime.InferenceSession) for o in gc.get_objects())


@pytest.mark.parametrize("level", ["disable", "basic", "extended", "all"])
@pytest.mark.parametrize("threads", [1, 2])
def test_every_level_computes_the_same(tmp_path, level, threads):
    path = write(TWO_INPUTS, tmp_path / "sum.onnx")
    feeds = {n: np.full((2, 3), v, np.float32) for n, v in {"left": 2, "right": 5}.items()}
    outputs = run(path, Target.parse(f"ort:level={level},threads={threads}"), feeds)
    assert list(outputs) == ["total", "product"]
    np.testing.assert_array_equal(outputs["total"], np.full((2, 3), 7, np.float32))
    np.testing.assert_array_equal(outputs["product"], np.full((2, 3), 10, np.float32))


def test_surplus_inputs_are_ignored_and_missing_ones_named(tmp_path):
    path = write(TWO_INPUTS, tmp_path / "sum.onnx")
    x = np.ones((2, 3), np.float32)
    assert run(path, ALL, {"left": x, "right": x, "extra": x})["total"][0, 0] == 2
    with pytest.raises(RuntimeFailure, match=r"'sum.onnx' needs a value for its input 'right'"):
        run(path, ALL, {"left": x})


def test_inputs_of_the_wrong_type_or_shape_are_explained(tmp_path):
    path = write(TWO_INPUTS, tmp_path / "sum.onnx")
    x = np.ones((2, 3), np.float32)
    with pytest.raises(
        RuntimeFailure, match=r"'sum.onnx' expects tensor\(float\) for its input 'left', not int64"
    ):
        run(path, ALL, {"left": x.astype(np.int64), "right": x})
    with pytest.raises(RuntimeFailure, match=r"could not run 'sum.onnx' at level=all.*expected: .*"):
        run(path, ALL, {"left": x.astype(np.float64), "right": x})
    with pytest.raises(RuntimeFailure, match=r"could not run 'sum.onnx' at level=all.*left"):
        run(path, ALL, {"left": x[:1], "right": x})


def test_arrays_that_are_not_contiguous_are_accepted(tmp_path):
    path = write(TWO_INPUTS, tmp_path / "sum.onnx")
    x = np.arange(6, dtype=np.float32).reshape(3, 2).T
    np.testing.assert_array_equal(run(path, ALL, {"left": x, "right": x})["total"], 2 * x)


def recorded(name):
    """Inputs and outputs recorded for a case."""
    with np.load(CASES / f"{name}.npz") as data:
        arrays = {key: data[key] for key in data.files}
    return (
        {k.removeprefix("in|"): v for k, v in arrays.items() if k.startswith("in|")},
        {k.removeprefix("out|"): v for k, v in arrays.items() if k.startswith("out|")},
    )


RUNNABLE = [
    case["name"]
    for case in json.loads((CASES / "cases.json").read_text(encoding="utf-8"))
    if case["feeds"].get("default", {}).get("disable") == "ok"
]


@pytest.mark.parametrize("name", RUNNABLE)
def test_difficult_models_give_their_recorded_outputs_without_optimisation(name):
    feeds, expected = recorded(name)
    outputs = run(CASES / f"{name}.onnx", DISABLE, feeds)
    assert list(outputs) == list(expected)
    for output, value in expected.items():
        if value.dtype.kind == "U":
            assert outputs[output].tolist() == value.tolist()
        else:
            np.testing.assert_allclose(outputs[output], value, rtol=1e-4, atol=1e-4)


def test_strings_may_be_objects():
    feeds, expected = recorded("string_tensors")
    feeds = {"words": feeds["words"].astype(object)}
    outputs = run(CASES / "string_tensors.onnx", ALL, feeds)
    assert outputs["echo"].dtype == object
    assert outputs["echo"].tolist() == expected["echo"].tolist()


@pytest.mark.parametrize("target", [ALL, DISABLE])
def test_an_unknown_operator_is_named_with_its_node(target):
    with pytest.raises(RuntimeFailure) as caught:
        ORT.open(CASES / "unknown_custom_op.onnx", target)
    message = str(caught.value)
    node = next(n for n in onnx.load(CASES / "unknown_custom_op.onnx").graph.node if n.op_type == "FancyGate")
    assert "vendor.ops::FancyGate" in message
    assert f"'{node.name}'" in message
    assert "'unknown_custom_op.onnx'" in message
    assert "custom operator libraries are never loaded" in message


def test_an_optimiser_that_throws_is_named_with_a_way_out():
    path = CASES / "relu_then_clip_negative_min_double.onnx"
    with pytest.raises(RuntimeFailure) as caught:
        ORT.open(path, ALL)
    assert str(caught.value) == (
        "ONNX Runtime could not optimise 'relu_then_clip_negative_min_double.onnx' at level=all: "
        "Unexpected data type for Clip 'min' input of 11. The model may be valid: try level=disable."
    )
    ORT.open(path, DISABLE).close()


def test_files_that_are_no_models_are_explained(tmp_path):
    with pytest.raises(RuntimeFailure, match=r"could not load 'none.onnx'.*File doesn't exist"):
        ORT.open(tmp_path / "none.onnx", ALL)
    (tmp_path / "junk.onnx").write_bytes(b"\xff" * 100)
    with pytest.raises(RuntimeFailure, match=r"'junk.onnx' at level=all: .*[Pp]rotobuf"):
        ORT.open(tmp_path / "junk.onnx", ALL)


def test_long_messages_keep_their_useful_part():
    text = (
        "[ONNXRuntimeError] : 1 : FAIL : Load model from /tmp/x.onnx failed:"
        "/onnxruntime_src/onnxruntime/core/graph/model.cc:180 onnxruntime::Model::Model(int&&, "
        "const onnxruntime::PathString&) Unsupported model IR version: 99, max supported 13"
    )
    assert shorten(text) == "Unsupported model IR version: 99, max supported 13"
    assert len(shorten("x" * 1000)) == 300
    assert shorten("plain words") == "plain words"


def test_the_optimised_graph_shows_what_the_runtime_removed(tmp_path):
    path = write(CHAIN_WITH_IDENTITY, tmp_path / "net.onnx")
    counts = {}
    for target in (ALL, DISABLE):
        out = tmp_path / f"{target.level}.onnx"
        ORT.save_optimized(path, target, out)
        counts[target.level] = [node.op_type for node in onnx.load(out).graph.node]
    assert "Identity" not in counts["all"]
    assert counts["disable"] == ["Relu", "Identity", "Sigmoid", "Add"]


def test_closing_frees_the_session(tmp_path):
    path = write(CHAIN, tmp_path / "net.onnx")
    before = open_sessions()
    session = ORT.open(path, ALL)
    call = session.bind({"x": np.ones((1, 8, 16, 16), np.float32)})
    call()
    assert open_sessions() == before + 1
    del call
    session.close()
    assert open_sessions() == before
    with pytest.raises(RuntimeFailure, match="closed"):
        session.bind({})


def test_disabled_optimisers_reach_the_session(tmp_path):
    path = write(CHAIN_WITH_IDENTITY, tmp_path / "net.onnx")
    out = tmp_path / "out.onnx"
    ORT.save_optimized(path, Target.parse("ort:level=basic,disabled=EliminateIdentity"), out)
    assert "Identity" in [node.op_type for node in onnx.load(out).graph.node]


def test_settings_and_timer_are_stated():
    settings = ORT.settings(
        Target.parse("ort:level=basic,threads=2,disabled=NoopElimination+CastElimination")
    )
    assert settings["graph_optimization_level"] == "ORT_ENABLE_BASIC"
    assert settings["intra_op_num_threads"] == "2"
    assert settings["disabled_optimizers"] == "CastElimination+NoopElimination"
    assert settings["session.intra_op.allow_spinning"] == "0"
    assert ORT.timer_name(Target.parse("ort:threads=2")) == "perf_counter_ns"


def test_stored_names_are_safe_and_read_back():
    name = stored_name("../a b<é>", "0123456789abcdef" * 2)
    assert name == "_a_b_.0123456789abcdef.onnx"
    assert model_label(Path("/tmp") / stored_name("resnet18", "0123456789abcdef00")) == "resnet18"
    assert model_label(Path("/tmp/resnet18.onnx")) == "resnet18.onnx"


def test_the_listed_optimisers_are_in_the_library():
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as library

    from explorer.runtime.backends.ort_optimizers import OPTIMIZERS

    if not onnxruntime.__version__.startswith("1.32."):
        pytest.skip("the list was made for ONNX Runtime 1.32")
    content = Path(library.__file__).read_bytes()
    stems = {re.sub(r"^Level\d|_CPUExecutionProvider$", "", name) for name in OPTIMIZERS}
    assert sorted(stem for stem in stems if stem.encode() not in content) == []


def test_a_profile_has_one_time_per_run_and_names_what_was_fused(tmp_path):
    graph = load(proto(CHAIN_WITH_IDENTITY))
    with ModelStore(tmp_path) as store:
        executed = ORT.profile(
            store.put_marked(graph), DISABLE, {"x": np.ones((1, 8, 16, 16), np.float32)}, 4
        )
    assert [(e.op_type, e.name) for e in executed] == [
        ("Relu", "node~n0~"),
        ("Identity", "node~n1~"),
        ("Sigmoid", "node~n2~"),
        ("Add", "node~n3~"),
    ]
    assert all(len(e.durations_ns) == 4 for e in executed)
    assert "value~n3~0" in executed[3].mentions


def conv_relu(listed: bool = False):
    """A Conv that ONNX Runtime can give a blocked layout, unless callers may replace its weight."""
    inputs = "float[1,8,16,16] x" + (", float[8,8,3,3] w" if listed else "")
    weight = np.random.default_rng(3).standard_normal((8, 8, 3, 3)).astype("f4")
    return model(f"({inputs}) => (float[1,8,14,14] y) {{ c = Conv(x, w) y = Relu(c) }}", w=weight)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("ort:level=disable", ()),
        ("ort:level=basic", ()),
        ("ort:level=extended", ("ConvActivationFusion",)),
        ("ort:level=all", ("ConvActivationFusion", "NchwcTransformer")),
        ("ort:level=all,disabled=NchwcTransformer", ("ConvActivationFusion",)),
        ("ort:level=all,disabled=ConvActivationFusion", ("NchwcTransformer",)),
    ],
)
def test_it_tells_which_of_its_optimisers_changed_the_model(tmp_path, spec, expected):
    path = tmp_path / "net.onnx"
    onnx.save(conv_relu(), path)
    assert ORT.acting_optimizers(path, Target.parse(spec)) == expected
    assert open_sessions() == 0


def test_freezing_a_weight_lets_the_layout_optimiser_act(tmp_path):
    open_weight = load(conv_relu(listed=True))
    with ModelStore(tmp_path) as store:
        listed, frozen = (store.put(g) for g in (open_weight, freeze_weights(open_weight)))
        assert ORT.acting_optimizers(listed, ALL) == ("ConvActivationFusion",)
        assert ORT.acting_optimizers(frozen, ALL) == ("ConvActivationFusion", "NchwcTransformer")


def test_standard_error_is_put_back_even_if_the_model_does_not_load(tmp_path, capfd):
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"no model")
    with pytest.raises(RuntimeFailure):
        ORT.acting_optimizers(path, ALL)
    os.write(2, b"still here")
    assert capfd.readouterr().err == "still here"


def test_only_optimisers_that_a_target_can_disable_are_read_from_the_log():
    log = """
    2026 [I:onnxruntime:, x.cc:15 Apply] GraphTransformer NchwcTransformer modified: 0 with status: OK
    2026 [I:onnxruntime:, x.cc:15 Apply] GraphTransformer GeluFusionL2 modified: 1 with status: OK
    2026 [I:onnxruntime:, x.cc:15 Apply] GraphTransformer MemcpyTransformer modified: 1 with status: OK
    2026 [I:onnxruntime:, x.cc:15 Apply] GraphTransformer ConstantFolding modified: 1 with status: OK
    2026 [I:onnxruntime:, x.cc:15 Apply] GraphTransformer GeluFusionL2 modified: 1 with status: OK
    """
    assert acting(log) == ("GeluFusionL2", "ConstantFolding")


def test_input_of_a_type_that_python_cannot_hand_over_is_named(tmp_path):
    path = tmp_path / "half.onnx"
    onnx.save(model("(bfloat16[2] x) => (float[2] y) { y = Cast<to=1>(x) }", opset=21), path)
    session = ORT.open(path, ALL)
    with pytest.raises(RuntimeFailure, match=r"'half.onnx' takes bfloat16 for its input 'x', .* Cast"):
        session.bind(make_feeds(load(path)))
