from __future__ import annotations

import sys

import psutil
import pytest

from explorer.errors import InputError
from explorer.runtime import memory


@pytest.mark.parametrize(
    ("count", "text"),
    [(5, "5 bytes"), (1500, "1.5 KB"), (400_000_000, "400 MB"), (19_500_000_000, "19.5 GB")],
)
def test_bytes_for_people(count, text):
    assert memory.format_bytes(count) == text


@pytest.mark.skipif(sys.platform != "linux", reason="memory limits need Linux")
def test_the_default_is_a_share_of_the_machine():
    limit = memory.default_limit_bytes()
    assert limit is not None
    assert 0 < limit <= 0.8 * psutil.virtual_memory().total


@pytest.mark.skipif(sys.platform != "linux", reason="memory limits need Linux")
def test_a_container_limit_counts(tmp_path, monkeypatch):
    file = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "_CGROUP_LIMITS", (tmp_path / "missing", file))
    file.write_text("1000000000\n", encoding="ascii")
    assert memory.default_limit_bytes() == 800_000_000
    file.write_text("max\n", encoding="ascii")
    assert memory.default_limit_bytes() == int(0.8 * psutil.virtual_memory().total)


def test_systems_without_limits_say_so(monkeypatch):
    monkeypatch.setattr(memory, "can_limit_memory", lambda: False)
    assert memory.default_limit_bytes() is None
    with pytest.raises(InputError, match="Linux only"):
        memory.limit_memory(1)
