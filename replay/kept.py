"""Every run is kept: its result and its spans, under ``REDFIRST_HOME/runs``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from redfirst.evaluators import CheckClass, Outcome
from redfirst.evaluators.canonical import digest
from redfirst.replay import files
from redfirst.replay.outcome import Result, RunOutcome

Json = Any

RESULT_FILE = "result.json"
SPANS_FILE = "spans.otlp.jsonl"


def keep(
    home: Path,
    scenario: str,
    mode: str,
    result: Result,
    *,
    draw: int,
    at: float,
    attempt: int = 0,
    more: Mapping[str, Json] | None = None,
) -> Path:
    """Write one run and give its folder. ``at`` is Unix seconds, passed in; ``more`` joins its result.

    Raises:
        CannotWrite: there is no room, or the folder may not be written.
    """
    run_id = (
        f"{int(at * 1000):013d}-{scenario}-{draw}-{digest([result.execution.events, at, attempt, more])[:6]}"
    )
    folder = home / "runs" / run_id
    with files.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    files.write(folder / SPANS_FILE, f"{json.dumps(result.execution.otlp_json)}\n".encode())
    body = {**row(scenario, mode, result, draw), **{k: v for k, v in (more or {}).items() if v is not None}}
    files.write(folder / RESULT_FILE, f"{json.dumps(body, indent=1)}\n".encode())
    return folder


def row(scenario: str, mode: str, result: Result, draw: int) -> dict[str, Json]:
    """One run as a line that ``reliability`` reads: ``passed`` is null without a verdict."""
    tokens = result.run.tokens if result.run is not None else None
    known = (
        [value for value in (tokens.input, tokens.output) if value is not None] if tokens is not None else []
    )
    return {
        "task": scenario,
        "trial": draw,
        "passed": {"GREEN": True, "RED": False}.get(result.outcome.value),
        "outcome": result.outcome.value,
        "mode": mode,
        "because": result.because,
        "stop": None if result.stop is None else result.stop.value,
        "goal": _goal(result),
        "violations": [
            verdict.check for verdict in result.failed if verdict.check_class is not CheckClass.GOAL
        ],
        "ended": None if result.run is None else result.run.termination.reason.value,
        "steps": None if result.run is None else len(result.run.model_calls),
        "tokens": sum(known) if known else None,
        "tape_decisions": result.execution.tape_decisions,
        "live_decisions": list(result.execution.live_decisions),
    }


def _goal(result: Result) -> bool | None:
    """Whether the outcome was right, whatever the way there; None where the run has no verdict."""
    if result.outcome is RunOutcome.NO_VERDICT:
        return None
    goals = [one.outcome for one in (*result.targets, *result.guards) if one.check_class is CheckClass.GOAL]
    if Outcome.FAILED in goals:
        return False
    return True if goals and all(outcome is Outcome.PASSED for outcome in goals) else None
