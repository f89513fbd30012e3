"""A recorded run as ``freeze`` takes it: what was read, and what it was read from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from redfirst.evaluators import LogRecord, Outcome, RedfirstError, Span, Trajectory, Verdict
from redfirst.evaluators.canonical import same
from redfirst.evaluators.check import Check, judge
from redfirst.evaluators.reading import read_runs
from redfirst.replay.derivation import refuse_derived
from redfirst.replay.pseudonyms import Pseudonyms
from redfirst.replay.redaction import Redaction, found_in, replaced


class FreezeRefused(RedfirstError):
    """A run that cannot become a scenario, and what it lacks."""

    exit_code = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """A run with the spans and log records it was read from, and its verdicts."""

    run: Trajectory
    spans: Sequence[Span]
    logs: Sequence[LogRecord] = ()
    verdicts: Sequence[Verdict] = ()


def same_task(one: Trajectory, other: Trajectory) -> bool:
    """Whether two runs began with the same words in the same state."""
    if one.request is None or one.request != other.request or one.agents != other.agents:
        return False
    before, after = one.states[:1], other.states[:1]
    return not before or not after or same(before[0].state, after[0].state)


def redacted(
    incident: RecordedRun, control: RecordedRun | None, checks: Sequence[Check], redaction: Redaction
) -> tuple[RecordedRun, RecordedRun | None, Pseudonyms]:
    """Both runs with pseudonyms in place of what must not be kept, judged anew.

    Raises:
        FreezeRefused: the run would no longer fail what it failed.
        CannotRedact: an argument is derived from a value that is replaced, a value is too short, or secrets are refused.
    """
    runs = [incident] if control is None else [incident, control]
    spans = [span for one in runs for span in one.spans]
    logs = [log for one in runs for log in one.logs]
    made = found_in(spans, logs, redaction, incident.run.run_id)
    if not made.of:
        return incident, control, made
    new = _without(incident, checks, made)
    passing = None if control is None else _without(control, checks, made)
    for one in (new, passing):
        if one is not None:
            refuse_derived(one.run, made)
    failed = {v.check for v in incident.verdicts if v.outcome is Outcome.FAILED}
    still = {v.check for v in new.verdicts if v.outcome is Outcome.FAILED}
    if failed - still:
        raise FreezeRefused(
            f"Run {incident.run.run_id[:16]} fails {min(failed - still)} by a value that is replaced; leave it out of "
            f"redaction: in redfirst.yaml."
        )
    return new, passing, made


def _without(recorded: RecordedRun, checks: Sequence[Check], made: Pseudonyms) -> RecordedRun:
    spans, logs = replaced(recorded.spans, recorded.logs, made)
    (run,) = [one for one in read_runs(spans, logs) if recorded.run.trace_ids[0] in one.trace_ids]
    run = replace(run, run_id=recorded.run.run_id)  # that of a conversation depends on its first words
    return RecordedRun(run=run, spans=spans, logs=logs, verdicts=judge(run, checks))
