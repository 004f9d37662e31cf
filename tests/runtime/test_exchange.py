from __future__ import annotations

import json

import numpy as np
import pytest

from explorer.errors import InputError
from explorer.runtime import InlineExecutor, Latency, Measurement, Measurer, Protocol
from explorer.runtime.cache import ResultCache
from explorer.runtime.exchange import between, export_cache, import_cache, of_kind, read_entries
from explorer.runtime.profile import Profile
from explorer.runtime.protocol import Mode
from explorer.runtime.request import Request
from tests.runtime.models import CHAIN, CHAIN_WITH_DETOUR, graph

QUICK = Protocol(
    mode=Mode.SCREENING, rounds=2, samples=2, min_samples=2, sample_ns=50_000, warmup_ns=100_000, trim=0
)
FEEDS = {"x": np.linspace(-1, 1, 2048, dtype=np.float32).reshape(1, 8, 16, 16)}
A, B = graph(CHAIN), graph(CHAIN_WITH_DETOUR)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("elsewhere")
    cache = ResultCache(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXPLORER_DEVICE", "small-board")
        with Measurer(executor=InlineExecutor(), cache=cache) as measurer:
            measurer.measure(A, B, FEEDS, "ort:level=disable", QUICK)
            measurer.latency(A, FEEDS, "ort", QUICK)
            measurer.profile(A, FEEDS, "ort", rounds=1, budget_s=0.01)
    path = folder / "results.jsonl"
    assert export_cache(cache, path) == 3
    return path


def test_a_line_holds_all_that_a_result_depends_on(exported):
    entries = list(read_entries(exported))
    (pair,) = [entry for entry in entries if entry.kind == "pair"]
    assert pair.environment.device == "small-board"
    assert pair.environment.versions["onnxruntime"]
    assert len(pair.value.rounds) == 2
    assert pair.key["protocol"] == QUICK.to_json()
    assert [len(of_kind(entries, kind)) for kind in (Measurement, Latency, Profile)] == [1, 1, 1]


def test_imported_results_are_found_by_their_graphs(exported):
    (found,) = between(read_entries(exported), A.fingerprint(), B.fingerprint())
    assert found.delta.target == "ort:level=disable,threads=1"
    assert between(read_entries(exported), B.fingerprint(), A.fingerprint()) == []


def test_a_machine_of_that_name_takes_them_from_the_cache_and_no_other_does(exported, tmp_path, monkeypatch):
    cache = ResultCache(tmp_path)
    assert import_cache(exported, cache) == 3
    request = Request.of(FEEDS, "ort", QUICK, lambda _: None, None)
    for device, known in (("", False), ("small-board", True)):
        monkeypatch.setenv("EXPLORER_DEVICE", device)
        with Measurer(executor=InlineExecutor(), cache=cache) as measurer:
            key = measurer._key("latency", (A,), request)
            assert (cache.get(key) is not None) is known


def test_exporting_again_gives_the_same_lines(exported, tmp_path):
    cache = ResultCache(tmp_path / "cache")
    import_cache(exported, cache)
    export_cache(cache, tmp_path / "again.jsonl")
    lines = [sorted(p.read_text().splitlines()) for p in (exported, tmp_path / "again.jsonl")]
    assert lines[0] == lines[1]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d["value"]["delta"].update(ratio="fast"), "'ratio'"),
        (lambda d: d["key"].update(kind="virus"), "not 'virus'"),
        (lambda d: d["key"].update(environment=None), "environment"),
        (lambda d: d["key"].update(target="ort:level=all,threads=1"), "names the target"),
        (lambda d: d.update(format=9), "format 1"),
        (lambda d: d.update(key=7), "key of a measurement"),
    ],
)
def test_a_line_that_is_not_what_it_says_is_named_and_nothing_is_stored(exported, tmp_path, change, reason):
    lines = [json.loads(line) for line in exported.read_text().splitlines()]
    lines.sort(key=lambda line: line["key"]["kind"] == "pair")
    change(lines[-1])
    path = tmp_path / "changed.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    cache = ResultCache(tmp_path)
    with pytest.raises(InputError, match=rf"Line {len(lines)} of .*{reason}"):
        import_cache(path, cache)
    assert list(cache.items()) == []


def test_files_that_are_none_are_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        list(read_entries(tmp_path / "missing.jsonl"))
    (tmp_path / "junk.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not text"):
        list(read_entries(tmp_path / "junk.jsonl"))
    (tmp_path / "bad.jsonl").write_text("{")
    with pytest.raises(InputError, match=r"Line 1 .*not valid JSON"):
        list(read_entries(tmp_path / "bad.jsonl"))
