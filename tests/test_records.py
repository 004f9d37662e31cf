"""Text files are written whole or not at all."""

from __future__ import annotations

import os
import resource
import threading

import pytest

from explorer.errors import InputError
from explorer.records import write_json, write_text


def test_a_file_that_cannot_be_replaced_stays_as_it_was(tmp_path):
    """What an earlier run saved survives a disk that fills up in the middle; here files end at 100 bytes."""
    path = write_json(tmp_path / "session.json", {"kept": [1, 2]})
    before, limits = path.read_text(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(InputError, match=r"session\.json' cannot be written: File too large"):
            write_json(path, {"kept": list(range(100))})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == before
    assert [item.name for item in tmp_path.iterdir()] == ["session.json"]


def test_folders_are_made_and_links_are_followed(tmp_path):
    target = write_text(tmp_path / "new" / "a.txt", "one")
    link = tmp_path / "link.txt"
    link.symlink_to(target)
    write_text(link, "two")
    assert target.read_text() == "two"
    assert link.is_symlink()


def test_a_pipe_is_written_to(tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "through")
    reader.join(10)
    assert got == ["through"]


def test_a_folder_is_no_place_for_a_file(tmp_path):
    with pytest.raises(InputError, match="cannot be written: Is a directory"):
        write_text(tmp_path, "text")
