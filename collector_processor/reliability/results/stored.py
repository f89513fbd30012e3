"""Runs of a store as trials: a task is what an agent was asked, word for word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from redfirst.collector_processor.reliability.judged import judged, tokens_of
from redfirst.collector_processor.reliability.trial import Trial
from redfirst.collector_processor.storing.store import Query, RunState, StoredRun, StoreReader, request_hash

_SHOWN = 40


def stored_trials(reader: StoreReader, *, agent: str | None = None) -> Iterator[Trial]:
    """The latest version of every run of an agent, oldest first, numbered per task."""
    query = Query(agent=agent, states=(RunState.SCORED, RunState.UNSCORED), records=True)
    return trials_of(reversed(reader.runs(query)))


def trials_of(runs: Iterable[StoredRun]) -> Iterator[Trial]:
    """Stored runs with their records as trials; one that could not be judged has no verdict."""
    counts: dict[str, int] = {}
    for run in runs:
        task = _task(run)
        number = counts[task] = counts.get(task, -1) + 1
        yield _trial(run, task, number)


def _task(run: StoredRun) -> str:
    request = None if run.record is None else run.record["request"]
    if request is None:
        return f"run {run.run_id[:12]}"
    return f"{request[:_SHOWN]} #{request_hash(request)[:6]}"


def _trial(run: StoredRun, task: str, number: int) -> Trial:
    if run.record is None:
        return Trial(task=task, trial=number, passed=None, ended=run.state.value, source=run.run_id[:12])
    found = judged(run.record)
    calls = run.record["tool_calls"]
    return Trial(
        task=task,
        trial=number,
        passed=found.strict,
        goal=found.goal,
        violations=found.violations,
        tokens=tokens_of(run.record),
        steps=None if calls is None else len(calls),
        ended=run.record["termination"]["reason"],
        source=run.run_id[:12],
    )
