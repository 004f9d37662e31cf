from __future__ import annotations

from explorer.graph import load
from explorer.session.history import Entry, History
from tests.models import chain


def history(length: int) -> History:
    found = History.of(load(chain(1)))
    for step in range(length):
        found = found.push(Entry(load(chain(step + 2)), summary=f"step {step}"))
    return found


def summaries(entries: tuple[Entry, ...]) -> list[str]:
    return [entry.summary for entry in entries]


def test_starts_with_the_original_alone():
    found = history(0)
    assert found.current is found.original
    assert (found.past, found.future, found.steps()) == ((), (), ())


def test_undo_and_redo_move_between_the_same_graphs():
    found = history(3)
    back = found.moved(-2)
    assert summaries(back.past) == ["step 0"]
    assert summaries(back.future) == ["step 1", "step 2"]
    assert back.moved(+2) == found
    assert back.moved(+2).current is found.current


def test_moving_stops_at_the_ends():
    found = history(2)
    assert found.moved(-9).current is found.original
    assert found.moved(+9) == found


def test_accepting_after_undo_forgets_what_was_undone():
    found = history(2).moved(-1).push(Entry(load(chain(9)), summary="other"))
    assert summaries(found.past) == ["step 0", "other"]
    assert found.future == ()


def test_is_never_changed_in_place():
    found = history(1)
    found.push(Entry(load(chain(5))))
    found.moved(-1)
    assert summaries(found.past) == ["step 0"]
