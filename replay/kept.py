"""Every run is kept: its result and its spans, under ``REDFIRST_HOME/runs``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from redfirst.evaluators.canonical import digest
from redfirst.replay import files
from redfirst.replay.outcome import Result

Json = Any

RESULT_FILE = "result.json"
SPANS_FILE = "spans.otlp.jsonl"


def keep(home: Path, scenario: str, mode: str, result: Result, *, draw: int, at: float) -> Path:
    """Write one run and give its folder. ``at`` is Unix seconds, passed in.

    Raises:
        CannotWrite: there is no room, or the folder may not be written.
    """
    run_id = f"{int(at * 1000):013d}-{scenario}-{draw}-{digest([result.execution.events, at])[:6]}"
    folder = home / "runs" / run_id
    with files.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    files.write(folder / SPANS_FILE, f"{json.dumps(result.execution.otlp_json)}\n".encode())
    files.write(folder / RESULT_FILE, f"{json.dumps(row(scenario, mode, result, draw), indent=1)}\n".encode())
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
        "violations": [verdict.check for verdict in result.failed],
        "tokens": sum(known) if known else None,
        "tape_decisions": result.execution.tape_decisions,
        "live_decisions": list(result.execution.live_decisions),
    }
