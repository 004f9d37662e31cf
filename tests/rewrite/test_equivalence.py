"""The numerical check: what counts as equal, what is caught, and what it says."""

import numpy as np
import onnx_ir as ir
import pytest

from explorer.errors import RuntimeFailure
from explorer.graph import freeze_weights, load
from explorer.rewrite import (
    Match,
    NumericClass,
    RuleSet,
    all_rules,
    apply,
    check_equivalence,
    find_candidates,
)
from explorer.rewrite.equivalence import _Worst, compare_outputs, tolerance_for
from tests.models import case_path
from tests.rewrite.harness import candidates, graph_of, run
from tests.rewrite.planted import planted

E, R, D, A = NumericClass
PLAIN = "(float[2,3] x) => (float[2,3] y) { y = Neg(x) }"


def answering(change):
    """A runner: the given graph's outputs, and for the second graph what ``change`` makes of them."""
    first = []

    def runner(graph, feeds):
        outputs = run(first[0] if first else graph, feeds)
        if not first:
            first.append(graph)
            return outputs
        return [change({k: np.array(v) for k, v in output.items()}) for output in outputs]

    return runner


def report_of(text, change, numeric_class=R, **weights):
    graph = graph_of(text, **weights)
    return check_equivalence(graph, graph.clone(), answering(change), numeric_class)


def test_equal_graphs_pass():
    report = report_of(PLAIN, lambda outputs: outputs)
    assert report.passed
    assert report.reacts
    assert report.max_error == report.max_abs_error == 0
    assert report.sentence() == "equal on 5 inputs (no difference at all)"
    assert "normal values, seed 0" in report.inputs
    assert "zeros values" in report.inputs


def test_error_beyond_the_tolerance_is_caught_with_tensor_and_size():
    text = "(float[2,3] x) => (float[2,3] y, float[2,3] z) { y = Neg(x) z = Sin(x) }"
    report = report_of(text, lambda outputs: {**outputs, "z": outputs["z"] + np.float32(0.01)})
    assert not report.passed
    assert report.worst_tensor == "z"
    assert report.max_abs_error == pytest.approx(0.01, rel=1e-3)
    assert report.problem.startswith("output 'z' differs by ")
    assert report.problem.endswith("of its largest value, more than 2e-04 (normal values, seed 0)")
    assert report.sentence() == report.problem


@pytest.mark.parametrize(("scale", "passes"), [(1e6, True), (1.0, False)])
def test_errors_are_relative_to_the_largest_value(scale, passes):
    report = report_of(
        "(float[2,3] x) => (float[2,3] y) { h = Sin(x) s = Add(h, one) y = Mul(s, c) }",
        lambda outputs: {"y": outputs["y"] + np.float32(0.02)},
        c=np.float32(scale),
        one=np.float32(2),
    )
    assert report.passed is passes
    assert report.max_abs_error == pytest.approx(0.02, abs=0.07 * scale / 1e6 + 1e-3)


def test_zero_outputs_have_scale_one():
    report = report_of(
        "(float[2] x) => (float[2] y) { y = Sub(x, x) }", lambda o: {"y": o["y"] + np.float32(1e-5)}
    )
    assert report.passed
    assert not report.reacts


# NaN and infinity


def planted_values(values):
    return lambda outputs: {"y": np.broadcast_to(np.array(values, "f4"), outputs["y"].shape).copy()}


NONFINITE = "(float[2,3] x) => (float[2,3] y) { z = Mul(x, zero) y = Add(z, c) }"
SPECIAL = np.array([np.nan, np.inf, -np.inf], "f4")


def test_nan_and_infinity_in_the_same_places_are_equal_and_prove_nothing():
    report = report_of(NONFINITE, planted_values(SPECIAL), zero=np.float32(0), c=SPECIAL)
    assert report.passed
    assert report.nonfinite == 6 * len(report.inputs)
    assert not report.reacts
    assert (
        f"; {report.nonfinite} elements were NaN or infinite in both and prove nothing" in report.sentence()
    )
    assert report.sentence().endswith("the outputs do not react to the inputs, so this proves little")


@pytest.mark.parametrize(
    "values",
    [[0, np.inf, -np.inf], [np.nan, -np.inf, -np.inf], [np.nan, np.inf, np.nan], [np.inf, np.nan, -np.inf]],
)
def test_other_places_or_signs_are_caught(values):
    report = report_of(NONFINITE, planted_values(values), zero=np.float32(0), c=SPECIAL)
    assert not report.passed
    assert report.problem == "output 'y' differs in NaN or infinite elements (normal values, seed 0)"


def test_original_that_gives_nan_and_infinity_itself():
    graph = load(case_path("nan_and_inf_in_outputs"))
    report = check_equivalence(graph, graph.clone(), run)
    assert report.passed
    assert report.nonfinite > 0


# other types


def test_strings_are_compared_exactly():
    graph = load(case_path("string_tensors"))
    assert check_equivalence(graph, graph.clone(), run).passed
    text = "(string[9] x) => (string[9] y) { y = Identity(x) }"
    assert report_of(text, lambda outputs: outputs).reacts

    def last_letter(outputs):
        changed = outputs["y"].copy()
        changed[-1] = "explorer!"
        return {"y": changed}

    report = report_of(text, last_letter)
    assert report.problem == "output 'y' differs in 1 of 9 elements (normal values, seed 0)"
    assert (report.worst_tensor, report.max_error) == ("y", 1.0)


@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8"])
def test_integers_and_booleans_are_compared_exactly(dtype):
    text = f"({dtype}[9,9] x) => ({dtype}[9,9] y) {{ y = Identity(x) }}"

    def flipped(outputs):
        y = outputs["y"].copy()
        y[0, 0] = not y[0, 0]
        return {"y": y}

    assert report_of(text, lambda o: o).passed
    assert (
        report_of(text, flipped).problem == "output 'y' differs in 1 of 81 elements (normal values, seed 0)"
    )


def test_sequences_are_compared():
    text = "(float[4] x) => (seq(float[2]) y) { y = SplitToSequence<axis=0>(x, two) }"
    graph = graph_of(text, two=np.array(2))
    assert check_equivalence(graph, graph.clone(), run).passed
    other = graph_of(text, two=np.array(1))
    report = check_equivalence(graph, other, run)
    assert report.problem.startswith("output 'y' is ")


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda y: y.reshape(3, 2), "float32[3, 2]"),
        (lambda y: y.astype("f8"), "float64[2, 3]"),
        (lambda y: y[:1], "float32[1, 3]"),
    ],
)
def test_other_shape_or_type_is_caught(change, found):
    report = report_of(PLAIN, lambda outputs: {"y": change(outputs["y"])})
    assert report.problem == f"output 'y' is {found} instead of float32[2, 3] (normal values, seed 0)"


def test_missing_output_is_caught():
    report = report_of(PLAIN, lambda outputs: {})
    assert report.problem.startswith("output 'y' is object[] instead of float32[2, 3]")


# what runs


def test_candidate_that_does_not_run():
    def runner(graph, feeds, seen=[]):  # noqa: B006 (remembers the calls of one test)
        seen.append(graph)
        if len(seen) > 1:
            raise RuntimeFailure("Neg exploded.")
        return run(graph, feeds)

    graph = graph_of(PLAIN)
    report = check_equivalence(graph, graph.clone(), runner)
    assert not report.passed
    assert report.problem == "the rewritten graph does not run: Neg exploded."


def test_inputs_on_which_the_original_fails_are_left_out():
    """A Gather whose index is an offset away from its range fails for some of the drawn inputs only."""
    graph = graph_of(
        "(float[5] x, int64 i) => (float y) { j = Mul(i, four) y = Gather(x, j) }", four=np.array(3)
    )
    report = check_equivalence(graph, graph.clone(), run)
    assert report.passed
    assert 0 < len(report.inputs) < 5


def test_original_that_runs_on_no_input():
    graph = graph_of("(float[5] x) => (float y) { y = Gather(x, j) }", j=np.array(77))
    with pytest.raises(RuntimeFailure):
        check_equivalence(graph, graph.clone(), run)


def test_graph_that_ignores_its_inputs_proves_little():
    graph = graph_of("(float[2] x) => (float[2] y) { z = Mul(x, w) y = Relu(z) }", w=np.zeros(2, "f4"))
    report = check_equivalence(graph, graph.clone(), run)
    assert report.passed
    assert not report.reacts
    assert report.sentence().endswith("the outputs do not react to the inputs, so this proves little")


def test_dynamic_dims_are_tried_at_two_sizes():
    shapes = []

    def runner(graph, feeds):
        shapes.append([feed["x"].shape for feed in feeds])
        return run(graph, feeds)

    graph = graph_of("(float[N,3] x) => (float[N,3] y) { y = Neg(x) }")
    report = check_equivalence(graph, graph.clone(), runner)
    assert "a second size of the dynamic dims" in report.inputs
    assert shapes[0] == shapes[1]
    assert len(set(shapes[0])) == 2


def test_rewrite_that_freezes_a_dynamic_dim_is_caught():
    graph = graph_of("(float[N,2] x) => (float[?] y) { h = Reshape(x, s) y = Neg(h) }", s=np.array([-1]))
    frozen = graph_of("(float[N,2] x) => (float[?] y) { h = Reshape(x, s) y = Neg(h) }", s=np.array([4]))
    report = check_equivalence(graph, frozen, run)
    assert not report.passed
    assert "does not run" in report.problem


def test_rewrite_that_trusts_a_default_is_caught_by_overriding_it():
    text = "(float[2] x, float[2] w) => (float[2] y) { y = Mul(x, w) }"
    graph = graph_of(text, w=np.array([2, 3], "f4"))

    def frozen(match, build):
        constant = build.constant(np.array([2, 3], "f4"))
        return [build.op("Mul", [match.nodes[0].inputs[0], constant], like=match.outputs[0])]

    rules = RuleSet([planted(lambda n, c: Match((n,), tuple(n.outputs)), frozen)])
    result = apply(graph, find_candidates(graph, rules).candidates[0], rules)
    report = check_equivalence(graph, result, run)
    assert "overridden default weights" in report.inputs
    assert report.problem.endswith("(overridden default weights)")


def test_wrong_rewrite_of_a_real_rule_is_caught():
    """Folding a scale into only half of the channels: what a bug in a rule would look like."""
    graph = graph_of("(float[2,4] x) => (float[2,4] y) { y = Div(x, c) }", c=np.array([2, 4, 8, 10], "f4"))
    (candidate,) = candidates(graph, "div-to-mul")
    good = apply(graph, candidate, all_rules())
    assert check_equivalence(graph, good, run, candidate.numeric_class).passed
    wrong = good.clone()
    (weight,) = wrong.initializers()
    elements = weight.const_value.numpy().copy()
    elements[-1] *= 1.01
    weight.const_value = ir.tensor(elements, name=weight.name)
    report = check_equivalence(graph, wrong, run, candidate.numeric_class)
    assert not report.passed
    assert report.worst_tensor == "y"


# tolerance


def outputs_of(dtype):
    return [{"y": np.ones(3, dtype)}]


@pytest.mark.parametrize(
    ("numeric_class", "dtype", "tolerance"),
    [
        (E, "f4", 8 * 2.0**-23),
        (R, "f4", 2000 * 2.0**-23),
        (D, "f4", 2000 * 2.0**-23),
        (A, "f4", 40000 * 2.0**-23),
        (R, "f8", 2000 * 2.0**-52),
        (E, "f2", 8 * 2.0**-10),
        (R, "f2", 2e-2),
        (R, "i8", 2000 * 2.0**-23),
    ],
)
def test_tolerance_follows_class_and_type(numeric_class, dtype, tolerance):
    kind = {"f4": "float", "f8": "double", "f2": "float16", "i8": "int64"}[dtype]
    graph = graph_of(f"({kind}[3] x) => ({kind}[3] y) {{ y = Neg(x) }}")
    assert tolerance_for(graph, numeric_class, outputs_of(dtype)) == pytest.approx(tolerance)


def test_half_precision_on_the_way_counts_unless_exact():
    graph = graph_of("(float[3] x) => (float[3] y) { h = Cast<to=10>(x) k = Neg(h) y = Cast<to=1>(k) }")
    assert tolerance_for(graph, R, outputs_of("f4")) == 2e-2
    assert tolerance_for(graph, E, outputs_of("f4")) == pytest.approx(8 * 2.0**-23)
    brain = graph_of("(float[3] x) => (float[3] y) { h = Cast<to=16>(x) y = Cast<to=1>(h) }")
    assert tolerance_for(brain, R, outputs_of("f4")) == 2e-2


def test_division_in_half_precision_passes_between_float_casts():
    graph = graph_of(
        "(float[99] x) => (float[99] y) { h = Cast<to=10>(x) k = Div(h, c) y = Cast<to=1>(k) }",
        c=np.float16(3),
    )
    (candidate,) = candidates(graph, "div-to-mul")
    result = apply(graph, candidate, all_rules())
    report = check_equivalence(graph, result, run, candidate.numeric_class)
    assert report.passed
    assert report.max_error > 2000 * 2.0**-23


def test_quantised_models_may_differ_by_a_step():
    graph = graph_of(
        "(float[3] x) => (float[3] y) { q = QuantizeLinear(x, s) y = DequantizeLinear(q, s) }",
        s=np.float32(0.1),
    )
    assert tolerance_for(graph, R, outputs_of("f4")) == 1e-2
    assert tolerance_for(graph, E, outputs_of("f4")) < 1e-5


def test_worst_error_over_all_outputs_and_inputs_is_kept():
    worst = _Worst()
    ones = np.ones(3, "f4")
    compare_outputs({"a": ones, "b": ones}, {"a": ones * 1.001, "b": ones}, 1, worst, "first")
    compare_outputs({"a": ones, "b": ones}, {"a": ones, "b": ones * 1.01}, 1, worst, "second")
    compare_outputs({"a": ones, "b": ones}, {"a": ones * 1.001, "b": ones}, 1, worst, "third")
    assert worst.tensor == "b"
    assert worst.error == pytest.approx(0.01, rel=1e-3)
    assert worst.problem == ""


def test_a_frozen_default_passes_only_where_it_may_no_longer_be_replaced():
    graph = load(case_path("initializer_is_overridable_input"))
    frozen = freeze_weights(graph)
    assert not check_equivalence(graph, frozen, run, E).passed
    report = check_equivalence(graph, frozen, run, E, override=False)
    assert report.passed
    assert "overridden default weights" not in report.inputs


def test_the_candidate_may_run_elsewhere_than_the_original():
    def one_more(graph, feeds):
        return [{name: value + 1 for name, value in outputs.items()} for outputs in run(graph, feeds)]

    graph = graph_of(PLAIN)
    assert check_equivalence(graph, graph, run, E, run_candidate=run).passed
    report = check_equivalence(graph, graph, run, E, run_candidate=one_more)
    assert report.problem.startswith("output 'y' differs")
