"""In which order threads get the answers of concurrent calls."""

from __future__ import annotations

import threading

import pytest

from redfirst.replay import scheduling
from redfirst.replay.scheduling import Schedule


def answered(schedule: Schedule, calls: list[list[str]]) -> list[str]:
    """The calls in the order of their answers; each list of them is made in a thread of its own, all at once."""
    came: list[str] = []
    together = threading.Barrier(len(calls))

    def agent(names: list[str]) -> None:
        together.wait()
        for name in names:
            schedule.turns()
            together.wait()
            schedule.wait()
            came.append(name)

    threads = [threading.Thread(target=agent, args=(names,)) for names in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return came


@pytest.mark.parametrize("calls", [[["a"], ["b"], ["c"]], [["a", "b", "c"]]], ids=["at once", "one by one"])
def test_a_thread_is_left_time_before_each_answer(
    monkeypatch: pytest.MonkeyPatch, calls: list[list[str]]
) -> None:
    """Which is seen to end first is not left to the machine, and the first is not seen before all are waited for."""
    waited: list[float] = []
    monkeypatch.setattr(scheduling.time, "sleep", waited.append)
    came = answered(Schedule(vary=False), calls)

    assert sorted(came) == ["a", "b", "c"]
    assert waited == [scheduling._APART_SECONDS] * 3


def test_the_main_thread_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its calls have an order of their own."""
    monkeypatch.setattr(scheduling.time, "sleep", lambda _: pytest.fail("waited"))
    for vary in (False, True):
        schedule = Schedule(vary=vary)
        schedule.turns()
        schedule.wait()
