"""Trajectories: written, read, replayed, and refused where they do not fit."""

from __future__ import annotations

import pytest

from explorer.errors import InputError, RewriteError
from explorer.graph import load
from explorer.rewrite import all_rules, apply, find_candidates
from explorer.search import Step, Trajectory, replay


@pytest.fixture(scope="module")
def walked():
    """SqueezeNet and a trajectory of three fusions."""
    start = graph = load("squeezenet1_1")
    steps = []
    for _ in range(3):
        found = find_candidates(graph, all_rules().only(["fuse-conv-activation"])).candidates[0]
        graph = apply(graph, found, all_rules())
        steps.append(Step.of(found))
    record = Trajectory(
        "squeezenet1_1", 0, start.fingerprint(), graph.fingerprint(), tuple(steps), {"seed": "0"}
    )
    return start, record


def test_a_written_trajectory_reads_back_equal(walked, tmp_path):
    _, record = walked
    assert Trajectory.read(record.write(tmp_path / "t.json")) == record


def test_replay_ends_on_the_same_graph(walked):
    start, record = walked
    graphs = replay(record, start, all_rules())
    assert len(graphs) == 3
    assert graphs[-1].fingerprint() == record.end


def test_replay_refuses_another_model(walked):
    _, record = walked
    with pytest.raises(InputError, match="starts from another model"):
        replay(record, load("squeezenet1_1", fill_weights=1), all_rules())


def test_replay_refuses_another_end(walked):
    start, record = walked
    changed = Trajectory(record.model, 0, record.start, "0" * 32, record.steps)
    with pytest.raises(RewriteError, match="ended on another graph"):
        replay(changed, start, all_rules())


def test_replay_names_the_step_that_no_longer_applies(walked):
    start, record = walked
    twice = Trajectory(record.model, 0, record.start, record.end, (record.steps[0], record.steps[0]))
    with pytest.raises(RewriteError, match="Step 2"):
        replay(twice, start, all_rules())


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 99}', "[" * 100_000])
def test_damaged_files_are_named(text, tmp_path):
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(InputError):
        Trajectory.read(path)
