from __future__ import annotations

import numpy as np
import pytest

from explorer.cost import OperatorSum, Source, Verdict
from explorer.errors import RuntimeFailure
from explorer.graph import load
from explorer.runtime import InlineExecutor, Measurer, Target
from explorer.runtime.cache import ResultCache
from explorer.runtime.dummy import PlantedMeasurer
from explorer.runtime.operators import operator_keys
from tests.models import model

TARGET = Target.parse("ort:level=disable")
EMPTY_NS = 5_000.0
COSTS = {"Exp": 100_000.0, "Neg": 10_000.0, "Abs": 50_000.0}
X = {"x": np.zeros(64, "f4")}


def net(*ops):
    names = ["x", *(f"v{i}" for i in range(1, len(ops))), "y"]
    nodes = "\n".join(f"{names[i + 1]} = {op}({names[i]})" for i, op in enumerate(ops))
    return load(model(f"(float[64] x) => (float[64] y) {{ {nodes} }}"))


class Counted(PlantedMeasurer):
    """Operators take what ``COSTS`` says, on top of what any run takes; counts what is timed."""

    def __init__(self):
        super().__init__(lambda graph, _: EMPTY_NS + sum(COSTS.get(n.op_type, 0.0) for n in graph.nodes))
        self.timed = []

    def _time_one(self, graph, request):
        self.timed.append([n.op_type for n in graph.nodes])
        return super()._time_one(graph, request)


@pytest.fixture
def measurer():
    with Counted() as one:
        yield one


def test_the_sum_is_that_of_the_operators_without_the_empty_run(measurer):
    cost = OperatorSum(measurer, TARGET, X)
    assert cost.total_ns(net("Exp", "Neg", "Exp"))[1] == pytest.approx(210_000, rel=0.01)


def test_taken_for_the_truth_the_ratio_is_that_of_the_sums_and_says_what_it_is(measurer):
    delta = OperatorSum(measurer, TARGET, X, literal=True).compare(net("Exp", "Abs"), net("Exp", "Neg"))
    assert delta.ratio == pytest.approx(110 / 150, rel=0.01)
    assert delta.source is Source.PREDICTED
    assert delta.verdict is Verdict.FASTER
    assert (delta.low, delta.high) == (delta.ratio, delta.ratio)
    assert delta.protocol == "sum of isolated operator times, taken for the truth"
    assert delta.target == str(TARGET)


def test_the_interval_grows_with_what_changes_and_covers_what_the_whole_may_do(measurer):
    cost = OperatorSum(measurer, TARGET, X)
    delta = cost.compare(net("Exp", "Abs"), net("Exp", "Neg"))
    assert delta.low == pytest.approx((110 - 0.24 * 60) / 150, rel=0.01)
    assert delta.high == pytest.approx((110 + 0.24 * 60) / 150, rel=0.01)
    same = cost.compare(net("Exp", "Abs"), net("Abs", "Exp"))
    assert (same.low, same.ratio, same.high, same.verdict) == (1, 1, 1, Verdict.WITHIN_NOISE)


def test_operators_of_one_type_err_alike(measurer):
    pair = net("Exp", "Abs"), net("Exp", "Exp", "Neg")
    delta = OperatorSum(measurer, TARGET, X).compare(*pair)
    error = 0.24 * (100 + 50 + 10)
    assert delta.high - delta.ratio == pytest.approx(error / 150, rel=0.02)


def test_taken_for_the_truth_a_small_change_counts_too(measurer):
    many = ["Exp"] * 20
    pair = net(*many), net(*many, "Neg")  # 2,000 and 2,010 microseconds
    literal = OperatorSum(measurer, TARGET, X, literal=True).compare(*pair)
    assert literal.ratio == pytest.approx(1.005, rel=1e-3)
    assert literal.verdict is Verdict.SLOWER
    assert OperatorSum(measurer, TARGET, X).compare(*pair).verdict is Verdict.WITHIN_NOISE


def test_a_small_change_is_not_claimed(measurer):
    delta = OperatorSum(measurer, TARGET, X).compare(net("Exp", "Neg"), net("Exp", "Neg", "Identity"))
    assert delta.verdict is Verdict.WITHIN_NOISE


def test_only_new_operators_are_timed(measurer):
    cost = OperatorSum(measurer, TARGET, X)
    cost.compare(net("Exp", "Exp", "Abs"), net("Exp", "Abs"))
    assert sorted(map(tuple, measurer.timed)) == [("Abs",), ("Exp",), ("Relu",)]
    measurer.timed.clear()
    cost.compare(net("Exp", "Abs"), net("Exp", "Abs", "Neg"))
    assert measurer.timed == [["Neg"]]


def test_times_are_kept_on_disk_for_the_next_session(tmp_path):
    for expected in (2, 0):
        with Counted() as measurer:
            measurer._cache = ResultCache(tmp_path)
            OperatorSum(measurer, TARGET, X).total_ns(net("Exp"))
            assert len(measurer.timed) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(float[8] x) => (float[8] y) { y = Exp(x) }", "(float[9] x) => (float[9] y) { y = Exp(x) }"),
        ("(float[8] x) => (float[8] y) { y = Exp(x) }", "(double[8] x) => (double[8] y) { y = Exp(x) }"),
        (
            "(float[8] x) => (float[8] y) { y = LeakyRelu<alpha=0.1>(x) }",
            "(float[8] x) => (float[8] y) { y = LeakyRelu<alpha=0.2>(x) }",
        ),
        (
            "(float[8] x) => (float[8] y) { e = Constant<value=float {2.0}>()\n y = Pow(x, e) }",
            "(float[8] x) => (float[8] y) { e = Constant<value=float {3.5}>()\n y = Pow(x, e) }",
        ),
    ],
)
def test_what_a_time_depends_on_is_part_of_the_key(one, other):
    first, second = (set(operator_keys(load(model(text))).values()) for text in (one, other))
    assert first != second


def test_names_and_weights_are_not():
    text = "(float[1,3,8,8] x) => (float[1,4,8,8] y) { y = Conv<pads=[1,1,1,1]>(x, w) }"
    rng = np.random.default_rng(0)
    keys = [
        operator_keys(load(model(text.replace("y", name), w=rng.standard_normal((4, 3, 3, 3)).astype("f4"))))
        for name in ("y", "z")
    ]
    assert keys[0] == keys[1]


def test_an_operator_that_cannot_run_alone_is_refused_only_where_it_matters(tmp_path):
    odd = "(float[4] x) => (float[4] y) { a = local.Odd(x)\n y = Neg(a) }"
    longer = odd.replace("y = Neg(a)", "b = Neg(a)\n y = Neg(b)")
    proto = [load(model(text, domains={"local": 1})) for text in (odd, longer)]
    for graph in proto:
        for node in graph.nodes:
            node.outputs[0].shape, node.outputs[0].dtype = graph.inputs[0].shape, graph.inputs[0].dtype
    with Measurer(executor=InlineExecutor(), cache=ResultCache(tmp_path)) as measurer:
        cost = OperatorSum(measurer, TARGET, {"x": np.zeros(4, "f4")})
        assert cost.compare(proto[0], proto[1]).ratio >= 1
        assert "Odd" in cost.failures(proto[0])
        with pytest.raises(RuntimeFailure, match="Odd cannot be timed alone"):
            cost.compare(load(model("(float[4] x) => (float[4] y) { y = Neg(x) }")), proto[0])


def test_dynamic_sizes_come_from_the_inputs(measurer):
    graph = load(model("(float[n] x) => (float[n] y) { y = Exp(x) }"))
    cost = OperatorSum(measurer, TARGET, {"x": np.zeros(7, "f4")})
    cost.total_ns(graph)
    (key,) = operator_keys(cost._with_sizes(graph)).values()
    assert "('7',)" in key
