from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from explorer.runtime.cache import NoCache, ResultCache, default_cache_folder

KEY = {"kind": "pair", "graphs": ["a", "b"], "target": "ort:level=all,threads=1"}
FILE = "results.sqlite3"


@pytest.fixture
def cache(tmp_path):
    return ResultCache(tmp_path / "deep" / "cache")


def test_values_come_back_also_to_another_session(cache, tmp_path):
    assert cache.get(KEY) is None
    cache.put(KEY, {"ratio": 0.5, "samples": [1, 2]})
    assert cache.get(KEY) == {"ratio": 0.5, "samples": [1, 2]}
    again = ResultCache(tmp_path / "deep" / "cache")
    assert again.get(dict(reversed(KEY.items()))) == {"ratio": 0.5, "samples": [1, 2]}


def test_every_part_of_the_key_counts(cache):
    cache.put(KEY, 1)
    assert cache.get({**KEY, "target": "ort:level=all,threads=2"}) is None
    assert cache.get({**KEY, "graphs": ["b", "a"]}) is None


def test_the_last_value_counts_and_can_be_removed(cache):
    cache.put(KEY, 1)
    cache.put(KEY, 2)
    assert cache.get(KEY) == 2
    cache.remove(KEY)
    assert cache.get(KEY) is None


def test_values_are_plain_json_in_the_file(cache, tmp_path):
    cache.put(KEY, {"ratio": 0.5})
    with closing(sqlite3.connect(tmp_path / "deep" / "cache" / FILE)) as connection:
        ((key, value),) = connection.execute("SELECT key, value FROM results").fetchall()
    assert (json.loads(key), json.loads(value)) == (KEY, {"ratio": 0.5})


def test_a_damaged_entry_is_a_miss(cache, tmp_path):
    cache.put(KEY, 1)
    with closing(sqlite3.connect(tmp_path / "deep" / "cache" / FILE)) as connection, connection:
        connection.execute("UPDATE results SET value = '{broken'")
    assert cache.get(KEY) is None
    cache.put(KEY, 3)
    assert cache.get(KEY) == 3


@pytest.mark.parametrize("content", [b"this is no database " * 100, b""])
def test_a_damaged_file_is_replaced(cache, tmp_path, content):
    cache.put(KEY, 1)
    (tmp_path / "deep" / "cache" / FILE).write_bytes(content)
    assert cache.get(KEY) is None
    cache.put(KEY, 2)
    assert cache.get(KEY) == 2


def test_a_truncated_database_is_replaced(cache, tmp_path):
    for number in range(200):
        cache.put({**KEY, "number": number}, "x" * 1000)
    path = tmp_path / "deep" / "cache" / FILE
    path.write_bytes(path.read_bytes()[:20_000])
    for number in range(200):
        cache.get({**KEY, "number": number})
    cache.put(KEY, 2)
    cache.put(KEY, 2)
    assert cache.get(KEY) == 2


def test_a_folder_that_cannot_be_made_costs_only_time(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    cache = ResultCache(tmp_path / "file" / "cache")
    cache.put(KEY, 1)
    assert cache.get(KEY) is None
    assert "was not used" in caplog.text


def test_two_processes_may_write_at_once(tmp_path):
    code = """
import sys
from pathlib import Path
from explorer.runtime.cache import ResultCache
cache = ResultCache(Path(sys.argv[1]))
for number in range(100):
    cache.put({"who": sys.argv[2], "number": number}, number)
"""
    processes = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), who]) for who in ("p", "q")]
    assert [process.wait(120) for process in processes] == [0, 0]
    cache = ResultCache(tmp_path)
    for who in ("p", "q"):
        assert [cache.get({"who": who, "number": n}) for n in range(100)] == list(range(100))


def test_the_folder_can_be_chosen(tmp_path, monkeypatch):
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(tmp_path / "chosen"))
    assert default_cache_folder() == tmp_path / "chosen"
    ResultCache().put(KEY, 1)
    assert (tmp_path / "chosen" / FILE).exists()
    monkeypatch.delenv("EXPLORER_CACHE_DIR")
    assert default_cache_folder().name == "explorer"
    assert default_cache_folder().is_relative_to(Path.home())


def test_no_cache_forgets():
    cache = NoCache()
    cache.put(KEY, 1)
    assert cache.get(KEY) is None
    cache.remove(KEY)
