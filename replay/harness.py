"""Two scripted agents that show what the harness itself can report: a miss, and a red."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from redfirst.evaluators.check import check_from_spec
from redfirst.instrumentation import agent, tool
from redfirst.replay.outcome import RunOutcome, judged
from redfirst.replay.runner import Job, execute
from redfirst.replay.stop import StopKind

PROBE = "redfirst_probe"


@tool(name="redfirst_unrecorded")
def _unrecorded() -> None:
    raise AssertionError("a replay reached a live tool")


@tool(name=PROBE)
def _probe() -> str:
    raise AssertionError("a replay reached a live tool")


def miss() -> Callable[[str], str]:
    """An agent that calls a tool no tape holds, and swallows what comes of it."""

    @agent(name="redfirst-control")
    def handle(request: str) -> str:
        with suppress(Exception):  # what agents do, and what must not hide a miss
            _unrecorded()
        return request

    return handle


def forced() -> Callable[[str], str]:
    """An agent that makes the one call its check forbids."""

    @agent(name="redfirst-control")
    def handle(request: str) -> str:
        return _probe() + request

    return handle


def harness_control() -> str | None:
    """Show that a miss gives no verdict and that a failed check is red; what was seen instead, if not."""
    check = check_from_spec({"kind": "forbid", "id": "forced-fail", "call": PROBE})
    job = {
        "request": {"text": "control"},
        "world": {"start": 0.0, "tick": 1.0, "seed": 0},
        "tools": (
            {
                "name": PROBE,
                "effect": "read",
                "args": None,
                "ignore": [],
                "responses": [{"when": {}, "returns": "done", "source": "authored"}],
            },
        ),
        "sources": ("authored",),
        "model": (),
        "state": None,
        "scenario": "redfirst-control",
    }
    missed = judged(execute(Job(agent=f"{__name__}:miss", **job), hash_seed=0), (check,), ())  # type: ignore[arg-type]
    if missed.stop is not StopKind.OFF_TAPE:
        return f"a call that is not on tape gave {missed.outcome} ({missed.because}) instead of NO_VERDICT"
    red = judged(execute(Job(agent=f"{__name__}:forced", **job), hash_seed=0), (check,), ())  # type: ignore[arg-type]
    if red.outcome is not RunOutcome.RED:
        return f"a failed check gave {red.outcome} ({red.because}) instead of RED"
    return None
