from __future__ import annotations

import asyncio
import threading

from explorer.ui.pump import Pump
from tests.ui.loop import run_in_loop


def test_without_a_loop_nothing_is_called_until_flush():
    calls: list[str] = []
    pump = Pump(lambda: calls.append("render"))
    pump.notify()
    pump.notify()
    assert calls == []
    pump.flush()
    pump.flush()
    assert calls == ["render"]


def test_many_notifications_render_once_in_the_loop_s_thread():
    threads: list[threading.Thread] = []

    async def main() -> threading.Thread:
        pump = Pump(lambda: threads.append(threading.current_thread()))
        workers = [threading.Thread(target=pump.notify) for _ in range(20)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        await asyncio.sleep(0.01)
        return threading.current_thread()

    loop_thread = run_in_loop(main())
    assert threads == [loop_thread]


def test_a_notification_while_rendering_is_not_lost():
    calls: list[int] = []

    async def main() -> None:
        def render() -> None:
            calls.append(len(calls))
            if len(calls) < 3:
                pump.notify()

        pump = Pump(render)
        pump.notify()
        await asyncio.sleep(0.05)

    run_in_loop(main())
    assert calls == [0, 1, 2]


def test_posted_functions_run_before_the_rendering_and_in_order():
    calls: list[str] = []
    pump = Pump(lambda: calls.append("render"))
    pump.post(lambda: calls.append("first"))
    pump.post(lambda: calls.append("second"))
    pump.flush()
    assert calls == ["first", "second", "render"]


def test_an_error_in_what_is_called_reaches_the_guard_and_stops_nothing():
    caught: list[BaseException] = []

    def guard(function):
        def guarded() -> None:
            try:
                function()
            except ZeroDivisionError as error:
                caught.append(error)

        return guarded

    calls: list[str] = []
    pump = Pump(lambda: calls.append("render"), guard)
    pump.post(lambda: 1 / 0)
    pump.post(lambda: calls.append("second"))
    pump.flush()
    assert calls == ["second", "render"]
    assert len(caught) == 1


def test_a_closed_pump_renders_nothing():
    calls: list[str] = []
    pump = Pump(lambda: calls.append("render"))
    pump.notify()
    pump.close()
    pump.flush()
    pump.notify()
    pump.flush()
    assert calls == []


def test_a_loop_that_is_gone_is_no_error():
    async def main() -> Pump:
        return Pump(lambda: None)

    pump = run_in_loop(main())
    pump.notify()
