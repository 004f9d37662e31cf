"""``fuse``: what the command line prints, and that importing the package loads nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from explorer.errors import Cancelled, ExplorerError, InputError
from explorer.fusion import SearchEvent, fuse, optimum
from explorer.graph import load
from tests.fusion.networks import sample

KEYS = {
    "groups",
    "removed",
    "dram_bytes",
    "layer_by_layer_bytes",
    "optimum_bytes",
    "optimum_proved",
    "gap_ratio",
    "invalid_met",
    "rectified",
    "plans",
    "seconds",
}


@pytest.mark.parametrize("search", ["rs", "ls", "nsga2", "greedy", "exact", "interval"])
def test_the_result_as_json(search: str) -> None:
    result = fuse(sample("resnet18"), buffer_kb=128, search=search, budget=50, seed=1)
    found = json.loads(json.dumps(result.to_json()))
    assert found.keys() >= KEYS
    assert len(found["removed"]) == 14
    assert found["optimum_bytes"] == 5973.75 * 1024
    assert found["optimum_proved"] is True
    assert found["gap_ratio"] == pytest.approx(found["dram_bytes"] / found["optimum_bytes"] - 1)
    assert sum(group["dram_bytes"] for group in found["groups"]) == found["dram_bytes"]
    assert max(group["buffer_bytes"] for group in found["groups"]) < 128 * 1024
    assert found["dram_bytes"] < found["layer_by_layer_bytes"]
    covered = [i for group in found["groups"] for i in group["nodes"]]
    covered += [i for removed in found["removed_ops"] for i in removed["nodes"]]
    assert sorted(covered) == sorted(f"n{i}" for i in range(69))


def test_removed_operations_say_why() -> None:
    result = fuse(sample("resnet18"), buffer_kb=128, search="greedy")
    (first, *_) = result.to_json()["removed_ops"]  # type: ignore[misc]  # a list of dicts
    assert first["reason"] == "its weights alone (144.2 KB) fill the buffer of 128 KB"


def test_two_schemes_two_results() -> None:
    network = sample("squeezenet1_1")
    lbdf, brr = (fuse(network, scheme=s, buffer_kb=128, search="exact").to_json() for s in ("lbdf", "brr"))
    assert (lbdf["scheme"], brr["scheme"]) == ("lbdf", "brr")
    assert len(lbdf["removed"]) == 5  # type: ignore[arg-type]  # a list
    assert brr["removed"] == []


def test_a_known_optimum_is_not_looked_for_again() -> None:
    first = fuse(sample("resnet18"), buffer_kb=128, search="exact")
    again = fuse(sample("resnet18"), buffer_kb=128, search="rs", budget=2, known=first.optimum)
    assert again.optimum is first.optimum


def test_a_bound_is_shown_where_the_optimum_is_not_proved() -> None:
    scheme = fuse(sample("googlenet"), buffer_kb=256, search="greedy").plan.scheme
    known = optimum(scheme, ideal_limit=0, time_limit_seconds=2.0)
    found = fuse(sample("googlenet"), buffer_kb=256, search="greedy", known=known).to_json()
    assert found["optimum_proved"] is False
    assert found["optimum_bytes"] == known.bound_bytes < found["best_known_bytes"]  # type: ignore[operator]
    assert found["optimum_method"] == "cp-sat"


def test_progress_and_stopping() -> None:
    events: list[SearchEvent] = []
    with pytest.raises(Cancelled):
        fuse(
            sample("resnet18"),
            search="ls",
            budget=100,
            cancel=lambda: len(events) == 30,
            on_event=events.append,
        )
    assert [event.plans for event in events] == list(range(1, 31))


def test_the_exact_search_reports_progress() -> None:
    events: list[SearchEvent] = []
    fuse(sample("inception_v3"), buffer_kb=256, search="exact", on_event=events.append)
    shares = [event.progress for event in events]
    assert None not in shares
    assert shares[-1] == 1.0
    assert [event.is_done for event in events] == [False] * (len(events) - 1) + [True]
    assert events[-1].best_bytes < events[0].best_bytes


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scheme": "lfd"}, "There is no fusion scheme 'lfd'; choose one of lbdf, brr"),
        ({"search": "luck"}, "There is no search 'luck'"),
        ({"buffer_kb": 0}, "A buffer of 0 bytes holds nothing"),
        ({"element_bytes": 3}, "choose 1, 2 or 4"),
        ({"search": "ls", "budget": 0}, "A budget of 0 plans"),
        ({"dims": {"N": 1}}, "no unknown dimension 'N'"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        fuse(load("resnet18"), **options)  # type: ignore[arg-type]  # wrong on purpose


def test_larger_elements_leave_more_operations_out() -> None:
    graph = load("resnet18")
    removed = [
        len(fuse(graph, buffer_kb=128, element_bytes=size, search="greedy").to_json()["removed"])  # type: ignore[arg-type]  # a list
        for size in (1, 2, 4)
    ]
    assert removed == [13, 14, 19]


@pytest.mark.parametrize("name", ["bert_base", "llama_small", "vit_b_16", "densenet121"])
def test_every_kind_of_sample_has_an_optimum_below_layer_by_layer(name: str) -> None:
    found = fuse(sample(name), buffer_kb=2048, search="exact")
    assert found.optimum.is_proved
    assert found.plan.dram_bytes < found.to_json()["layer_by_layer_bytes"]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("name", "layers"), [("bert_base", 12), ("gpt2", 12), ("llama_small", 8), ("vit_b_16", 12)]
)
def test_with_a_megabyte_the_optimum_fuses_attention_from_scores_to_values(name: str, layers: int) -> None:
    network = sample(name)
    plan = fuse(network, buffer_kb=1024, search="exact").plan
    fused = 0
    for group in plan.groups:
        kinds = [network.nodes[network.index_of(i)].op_type for i in group.operations]
        fused += kinds.count("Softmax") == 1 and kinds.count("MatMul") >= 2
    assert fused == layers


def test_importing_the_package_loads_no_solver() -> None:
    heavy = ["ortools", "pymoo", "scipy", "networkx", "torch", "onnxruntime"]
    program = f"import explorer.fusion, sys; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    assert run.stdout.strip() == "[]"


def test_its_errors_are_the_users_errors() -> None:
    assert issubclass(InputError, ExplorerError)
