"""The fusion bench: what a screen would do, without a screen. 5,973.75 KB is the known optimum of ResNet-18."""

from __future__ import annotations

import json
import threading

import pytest

from explorer.errors import Cancelled, InputError
from explorer.fusion import KB, OptimumProgress, Plan, PlanFile
from explorer.graph import load
from explorer.runtime import InlineExecutor, Measurer
from explorer.runtime.cache import NoCache
from explorer.session import JobState, Session
from explorer.session.fusion_traffic import blame_edges, dram_edges, plan_difference, tensor_bytes
from explorer.session.view import summary_of
from tests.models import model

OPTIMUM = int(5973.75 * KB)


def open_session(source):
    return Session(source, measurer=Measurer(executor=InlineExecutor(), cache=NoCache()))


@pytest.fixture(scope="module")
def graph():
    return load("resnet18")


@pytest.fixture
def session(graph):
    with open_session(graph) as one:
        yield one
        one.measurer.close()


@pytest.fixture
def bench(session):
    return session.fusion


def test_the_optimum_is_there_at_once(bench):
    view = bench.view()
    assert view.problem is None
    assert view.current.found.search == "exact"
    assert view.current.dram_bytes == OPTIMUM
    assert view.current.removed == 14
    assert view.current.gap_ratio == 0
    assert view.optimum.is_proved
    assert view.current.layer_by_layer_bytes > OPTIMUM
    assert view.current.largest_bytes < 128 * KB
    assert [facts.found.search for facts in view.plans] == ["greedy", "exact"]


def test_a_larger_buffer_moves_less_and_keeps_more(bench):
    seen = []
    for buffer_kb in (128, 256, 512, 1024, 2048):
        bench.configure(buffer_bytes=buffer_kb * KB)
        current = bench.view().current
        assert current.found.settings.text == f"LBDF, {buffer_kb} KB"
        assert current.largest_bytes < buffer_kb * KB
        seen.append(current.removed)
    assert seen == sorted(seen, reverse=True)
    assert seen[0] == 14
    bench.configure(buffer_bytes=128 * KB)
    assert bench.view().current.dram_bytes == OPTIMUM


def test_a_convex_choice_gets_bill_and_blame(bench):
    bench.choose(["n4", "n6", "n7", "in0"])
    choice = bench.view().choice
    assert choice.problem is None
    assert choice.nodes == ("n4", "n5", "n6", "n7", "n8")
    assert choice.operations == 3
    assert sum(term.bytes for term in choice.report.terms) == choice.report.demand_bytes == 190720
    assert not choice.report.fits
    assert {b.node: b.held_bytes for b in choice.blame.nodes} == {"n4": 95360, "n6": 0, "n7": 95360}
    assert choice.dram_bytes < choice.alone_bytes
    bench.configure(buffer_bytes=256 * KB)
    assert bench.view().choice.report.fits


def test_a_choice_that_is_not_convex_shows_the_path(bench):
    bench.choose(["n3", "n9"])
    choice = bench.view().choice
    assert "n3 -> n4 -> n6 -> n7 -> n9" in choice.problem
    assert choice.path == ("n3", "n4", "n6", "n7", "n9")
    assert choice.report is None


def test_a_choice_that_falls_apart_shows_what_would_join_it(bench):
    bench.choose(["n4", "n10"])
    choice = bench.view().choice
    assert "do not hang together" in choice.problem
    assert choice.path[0] == "n4"
    assert choice.path[-1] == "n10"
    assert choice.path[1:-1] == ("n6", "n7", "n9")
    bench.choose([])
    assert bench.view().choice is None


def test_a_group_is_taken_from_the_plan(bench):
    nodes = bench.choose_group_of("n5") if bench.view() else ()
    assert nodes == ("n4", "n5", "n6")
    assert bench.view().choice.report.fits
    with pytest.raises(InputError, match="fits no group"):
        bench.choose_group_of("n68")


def test_searches_draw_a_curve_above_the_floor(bench):
    told = []
    found = bench.search("ls", budget=60, seed=1, note=lambda: told.append(1))
    view = bench.view()
    assert told
    assert view.current.found is found
    (curve,) = view.curves
    assert curve.points[0][0] == 1
    assert curve.points[-1] == (60, found.plan.dram_bytes)
    best = [size for _, size in curve.points]
    assert best == sorted(best, reverse=True)
    assert min(best) >= view.optimum.bound_bytes
    assert view.current.gap_ratio == found.plan.dram_bytes / OPTIMUM - 1


def test_a_cancelled_search_keeps_what_it_found(session):
    bench = session.fusion
    begun = threading.Event()
    job = session.start(
        "Searching",
        lambda job: bench.search("rs", budget=10**9, cancel=job.token, note=begun.set),
    )
    assert begun.wait(60)
    job.cancel()
    with pytest.raises(Cancelled):
        job.result(60)
    assert job.state is JobState.CANCELLED
    found = bench.view().current.found
    assert found.is_stopped
    assert found.plan.is_valid


def test_two_plans_side_by_side(bench):
    bench.view()
    bench.configure(scheme="brr")
    brr = bench.view().current.found.label
    bench.configure(scheme="lbdf")
    bench.compare(brr)
    view = bench.view()
    assert (view.current.found.settings.scheme, view.compared.found.settings.scheme) == ("lbdf", "brr")
    bench.use(brr)
    assert bench.view().settings.scheme == "brr"
    bench.compare("")
    assert bench.view().compared is None
    with pytest.raises(InputError, match="no plan 'nope'"):
        bench.compare("nope")


def test_an_exported_plan_can_be_read_again(bench, tmp_path):
    bench.view()
    document = json.loads(bench.export(tmp_path / "plan.json").read_text())
    assert document["dram_bytes"] == OPTIMUM
    assert document["optimum_proved"] is True
    assert PlanFile.of(document).plan(bench.scheme()).dram_bytes == OPTIMUM


def test_an_exported_plan_is_taken_in_again(session, bench, tmp_path):
    bench.configure(buffer_bytes=256 * KB)
    bench.search("rs", budget=5)
    path = bench.export(tmp_path / "mine.json")
    with open_session(session.original) as other:
        found = other.fusion.load_plan(path)
        view = other.fusion.view()
        assert view.current.found is found
        assert found.label == "mine.json · LBDF, 256 KB"
        assert view.settings.buffer_bytes == 256 * KB
        assert view.current.dram_bytes == json.loads(path.read_text())["dram_bytes"]
        assert view.current.gap_ratio > 0
        other.measurer.close()


@pytest.mark.parametrize(
    ("text", "words"),
    [("{", "not valid JSON"), ("{}", "as 'version'"), ('{"version": 1, "groups": []}', "as 'model'")],
)
def test_a_file_that_is_no_plan_is_refused_in_words(bench, tmp_path, text, words):
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(InputError, match=words):
        bench.load_plan(tmp_path / "bad.json")


def test_the_plan_of_another_model_is_refused_in_words(bench, tmp_path):
    with open_session(load("squeezenet1_1")) as other:
        other.fusion.view()
        path = other.fusion.export(tmp_path / "plan.json")
        other.measurer.close()
    with pytest.raises(InputError, match="made for 'squeezenet1_1', not for 'resnet18'"):
        bench.load_plan(path)
    assert bench.view().current.dram_bytes == OPTIMUM


def test_an_optimum_that_takes_long_is_left_to_a_job(bench, monkeypatch):
    monkeypatch.setattr("explorer.session.fusion_finder.INSTANT_SECONDS", -1.0)
    tried = []

    def endless(scheme, **_options):
        tried.append(scheme.capacity_bytes // KB)
        while True:
            yield OptimumProgress(0.1, 1.0)

    with monkeypatch.context() as patch:
        patch.setattr("explorer.session.fusion_finder.optimum_steps", endless)
        assert bench.view().current.found.search == "greedy"
        assert bench.view().current.gap_ratio is None
        bench.configure(buffer_bytes=256 * KB)
        assert bench.view().current.found.search == "greedy"
        assert tried == [128]  # a larger buffer takes longer still
    bench.configure(buffer_bytes=128 * KB)
    assert bench.search("exact").plan.dram_bytes == OPTIMUM
    assert bench.view().current.gap_ratio == 0


def test_where_the_optimum_takes_long_the_plan_is_never_worse_than_no_fusion(session, bench, monkeypatch):
    """Under BRR a group that fills the buffer reads its weights again and again: greedy is worse than nothing."""
    monkeypatch.setattr("explorer.session.fusion_finder.PlanFinder._optimum_at_once", lambda *_: False)
    bench.configure(scheme="brr")
    view = bench.view()
    greedy, intervals = view.plans
    assert greedy.dram_bytes > greedy.layer_by_layer_bytes
    assert intervals.dram_bytes < intervals.layer_by_layer_bytes
    assert view.current.found.search == "interval"
    assert bench.work == ()


def test_refusals_are_sentences_and_can_be_undone():
    with open_session(load("mobilenet_v3_small")) as session:
        session.fusion.configure(scheme="brr")
        view = session.fusion.view()
        assert "squeeze-and-excite" in view.problem
        assert view.current is None
        session.fusion.configure(scheme="lbdf")
        assert session.fusion.view().problem is None
        session.measurer.close()


def test_unknown_dims_are_named_and_can_be_given():
    source = load(model("(float[N,2,8,8] x) => (float[N,2,8,8] y) { r = Relu(x) y = Sigmoid(r) }"))
    with open_session(source) as session:
        bench = session.fusion
        assert "'N'" in bench.view().problem
        bench.configure(dims={"N": 2})
        assert bench.view().current.dram_bytes == 2 * (2 * 2 * 8 * 8) * 2
        session.measurer.close()


def test_edges_carry_what_the_plan_moves(session, bench):
    plan = bench.view().current.found.plan
    summary = summary_of(session.graph)
    moved = {(e.source, e.target): size for e, size in dram_edges(plan, summary).items()}
    assert moved[None, "n0"] == 3 * 224 * 224 * 2
    assert moved["n3", "n4"] == moved["n3", "n9"] == 64 * 56 * 56 * 2
    assert ("n4", "n5") not in moved  # BatchNormalization is folded
    assert ("n5", "n6") not in moved  # inside a group
    assert moved["n17", "n18"] == 64 * 56 * 56 * 2  # to an operation that is left out
    assert moved["n20", "n21"] == 128 * 28 * 28 * 2
    assert ("n68", None) not in moved  # between operations that are left out


def test_two_plans_differ_where_only_one_of_them_cuts(session, bench):
    best, summary = bench.view().current.found.plan, summary_of(session.graph)
    alone = Plan.layer_by_layer(best.scheme)
    found = plan_difference(best, alone, summary)
    assert found.only_a == {}  # what the best plan cuts, no fusion at all cuts as well
    assert found.both == dram_edges(best, summary)
    cut = {(e.source, e.target): size for e, size in found.only_b.items()}
    assert cut["n5", "n6"] == 64 * 56 * 56 * 2
    assert ("n4", "n5") not in cut  # BatchNormalization is folded
    back = plan_difference(alone, best, summary)
    assert (back.only_a, back.only_b) == (found.only_b, {})
    same = plan_difference(best, best, summary)
    assert (same.only_a, same.only_b) == ({}, {})


def test_a_tensor_with_several_readers_counts_once(session, bench):
    moved = dram_edges(bench.view().current.found.plan, summary_of(session.graph))
    two = {e: size for e, size in moved.items() if e.source == "n3"}
    assert [e.target for e in two] == ["n4", "n9"]
    assert tensor_bytes(two) == 64 * 56 * 56 * 2


def test_edges_carry_what_a_cut_would_save(session, bench):
    bench.choose(["n4", "n6", "n7"])
    choice = bench.view().choice
    saved = blame_edges(choice.blame, bench.network(), summary_of(session.graph))
    assert {(e.source, e.target): size for e, size in saved.items()} == {
        ("n5", "n6"): 95360,
        ("n6", "n7"): 95360,
    }


def test_plans_belong_to_the_graph(session, bench):
    bench.view()
    place = next(c for c in session.candidates() if c.rule == "fold-batchnorm-into-conv")
    session.accept(place.id)
    folded = bench.view()
    assert folded.current.dram_bytes == OPTIMUM  # a BatchNormalization is folded for free anyway
    assert all(facts.found.plan.scheme.network is bench.network() for facts in folded.plans)
    session.undo()
    assert bench.view().plans[0].found.plan.scheme.network is bench.network()
