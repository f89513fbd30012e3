"""From a flagged run to a scenario draft: what was recorded, what was rebuilt, what is missing.

A draft that could not be executed is not written: ``FreezeRefused`` says what the trace lacks.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from redfirst.evaluators import (
    MISSING,
    CheckClass,
    ConfigurationError,
    Outcome,
    Severity,
    Span,
    Stop,
    Trajectory,
    Verdict,
)
from redfirst.evaluators.canonical import canonical_text, digest
from redfirst.evaluators.check import Check, names_code
from redfirst.evaluators.otlp_encode import encode_logs, encode_traces
from redfirst.replay import files, raw_failure, recording
from redfirst.replay.outcome import Signature
from redfirst.replay.program_texts import as_the_program_says
from redfirst.replay.pseudonyms import Pseudonyms
from redfirst.replay.raw_failure import ASKED_KEY, ORIGIN_KEY
from redfirst.replay.recorded_run import FreezeRefused, RecordedRun, redacted, same_task
from redfirst.replay.recording import Recording
from redfirst.replay.redaction import Redaction
from redfirst.replay.scenario import (
    CONTROL_FILE,
    HASHED_FILES,
    HELD_FILE,
    LOGS_FILE,
    MODEL_FILE,
    PROOF_FILE,
    SCENARIO_FILE,
    SCHEMA,
    TRACE_FILE,
    CheckPart,
    Clock,
    Completeness,
    Request,
    ResponsePart,
    Scenario,
    ToolPart,
    WorldPart,
    dump,
    lines,
    parse,
)

__all__ = ["Draft", "FreezeRefused", "RecordedRun", "freeze", "same_task", "sample"]

Json = Any


LARGEST_ANSWER = 1 << 20
"""Characters of one tool's answer that a person can still be asked to review."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A scenario that has not been proven."""

    scenario: Scenario
    files: Mapping[str, bytes]
    notes: tuple[str, ...] = field(default=())
    """What a reviewer should know: values rebuilt, arguments ignored, checks left out."""

    def write(self, folder: Path, *, replace: bool = False) -> bool:
        """Write the folder; the same incident always gives the same bytes, and a proof of these bytes stands.

        Returns:
            Whether anything was written: ``False`` where all of it was there.

        Raises:
            ConfigurationError: another scenario is there and ``replace`` is false.
            CannotWrite: the folder cannot be written.
        """
        there = {name: files.read(folder / name) for name in HASHED_FILES if (folder / name).is_file()}
        if there and all(there.get(name) == body for name, body in self.files.items()):
            return False  # what prove has added since, a control and a proof, stands
        if SCENARIO_FILE in there and not replace:
            raise ConfigurationError(
                f"{folder}: another version of this scenario is there; pass --replace or --out."
            )
        with files.writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            for name in (PROOF_FILE, HELD_FILE, CONTROL_FILE, LOGS_FILE):
                if name not in self.files:
                    (folder / name).unlink(missing_ok=True)
        # the file that makes the folder a scenario comes last: half a draft is none
        for name, body in sorted(self.files.items(), key=lambda item: item[0] == SCENARIO_FILE):
            files.write(folder / name, body)
        return True

    def remove(self, folder: Path) -> None:
        """Take away what ``write`` has put there, and the folder where nothing else is in it.

        Raises:
            CannotWrite: the folder cannot be written.
        """
        with files.writing(folder):
            for name in self.files:
                (folder / name).unlink(missing_ok=True)
            if not any(folder.iterdir()):
                folder.rmdir()


def freeze(
    incident: RecordedRun,
    checks: Sequence[Check],
    *,
    only: Iterable[str] = (),
    control: RecordedRun | None = None,
    redaction: Redaction | None = None,
) -> Draft:
    """The scenario of a run.

    Args:
        incident: the run, with the verdicts of ``checks`` on it.
        checks: the checks it was judged by, with the same revisions.
        only: ids of the failed checks to prove; all failed ones of severity flag or above otherwise.
        control: a passing run of the same task, whose recordings the control may use.
        redaction: what is replaced by pseudonyms; nothing, not even secrets, when ``None``.

    Raises:
        FreezeRefused: nothing failed, or the trace lacks what an execution needs.
        CannotRedact: what is to be replaced cannot be, without changing what the run shows.
    """
    if gaps := _large(incident.run):
        raise _not_again(incident.run, gaps)
    if control is not None and _large(control.run):
        control = None  # one that cannot be reviewed is no control; the next kind is tried by prove
    pseudonyms, raw = None, incident
    passing = control
    if redaction is not None:
        incident, control, pseudonyms = redacted(incident, control, checks, redaction)
    targets = _targets(checks, incident.verdicts, set(only))
    beside = _hashed(raw, incident, targets, redaction)
    was = (raw, passing) if pseudonyms is not None and pseudonyms.found else None
    return _draft(incident, checks, targets, control, pseudonyms, was, beside)


def _hashed(
    raw: RecordedRun, new: RecordedRun, targets: Sequence[Check], redaction: Redaction | None
) -> dict[str, Json]:
    """What is kept of the raw run, to compare others with, of that which pseudonyms stand in."""
    beside: dict[str, Json] = {}
    if redaction is None:
        return beside
    trace_id, request = new.run.trace_ids[0], raw.run.request
    before, after = (_signature(targets, one.verdicts) for one in (raw, new))
    if before != after:
        beside[ORIGIN_KEY] = raw_failure.kept(before, key=redaction.key, trace_id=trace_id)
    if request is not None and request != new.run.request:
        beside[ASKED_KEY] = raw_failure.asked_as(request, key=redaction.key, trace_id=trace_id)
    return beside


def _signature(targets: Sequence[Check], verdicts: Sequence[Verdict]) -> Signature:
    about = {check.id for check in targets}
    return frozenset().union(*(verdict.signature() for verdict in verdicts if verdict.check in about))


def sample(recorded: RecordedRun, checks: Sequence[Check], *, redaction: Redaction | None = None) -> Draft:
    """The scenario of a run that nothing flagged: what it did well is to stay so.

    Raises:
        FreezeRefused: the run is flagged or did not complete, or the trace lacks what an execution needs.
        CannotRedact: as ``freeze`` raises it.
    """
    if gaps := _large(recorded.run):
        raise _not_again(recorded.run, gaps)
    pseudonyms, raw = None, recorded
    if redaction is not None:
        recorded, _, pseudonyms = redacted(recorded, None, checks, redaction)
    failed = next((v for v in recorded.verdicts if v.flags), None)
    if failed is not None or recorded.run.termination.reason is not Stop.COMPLETED:
        why = f"{failed.check} failed" if failed else f"it ended {recorded.run.termination.reason.value}"
        raise FreezeRefused(f"Run {recorded.run.run_id[:16]} is no sample of what goes well: {why}.")
    was = (raw, None) if pseudonyms is not None and pseudonyms.found else None
    return _draft(recorded, checks, [], None, pseudonyms, was, _hashed(raw, recorded, [], redaction))


def _draft(
    incident: RecordedRun,
    checks: Sequence[Check],
    targets: Sequence[Check],
    control: RecordedRun | None,
    pseudonyms: Pseudonyms | None,
    was: tuple[RecordedRun, RecordedRun | None] | None,
    beside: Mapping[str, Json] = MappingProxyType({}),
) -> Draft:
    run = incident.run
    guards, left_out = _guards(checks, incident.verdicts, targets)
    made = recording.record(run, incident.spans, source="incident")
    _refuse_gaps(run, made, targets)
    good = None if control is None else recording.record(control.run, control.spans, source="control")
    if good is not None and good.gaps:
        good = None  # a control that cannot be executed is no control; the next kind is tried by prove
    told: list[str] = []
    if was is not None and pseudonyms is not None:
        raw, passing = was
        told = as_the_program_says(made, recording.record(raw.run, raw.spans, source="incident"), pseudonyms)
        if good is not None and passing is not None:
            as_the_program_says(
                good, recording.record(passing.run, passing.spans, source="control"), pseudonyms
            )
    notes = [*made.notes, *told, *(f"check {name} {why}" for name, why in left_out)]
    scenario = Scenario(
        schema_=SCHEMA,
        id=_slug(targets[0].id if targets else "sample", run.run_id),
        title=_title(incident.verdicts, targets[0].id) if targets else f"went well: {run.request}"[:120],
        kind="incident" if targets else "sample",
        agent=run.agents[0] if run.agents else "agent",
        origin={
            "trace_id": run.trace_ids[0],
            "dialects": list(run.dialects),
            "models": list(run.models),
            "agent_version": run.agent_version,
            "flagged_by": [check.id for check in targets],
            "notes": notes,
            **({"redacted": dict(sorted(pseudonyms.found.items()))} if pseudonyms and pseudonyms.found else {}),
            **beside,
        },
        ended=run.termination.reason,
        completeness=_grades(made, pseudonyms),
        request=Request.model_validate(made.request),
        world=WorldPart(
            clock=Clock(start=_instant(run.start_ns)), seed=int(digest(run.run_id)[:8], 16), state=made.state
        ),
        tools=_tools(made, good),
        checks=[
            *(CheckPart(role="target", revision=check.revision, check=dict(check.spec)) for check in targets),
            *(CheckPart(role="guard", revision=check.revision, check=dict(check.spec)) for check in guards),
        ],
    )  # fmt: skip
    bodies = {
        SCENARIO_FILE: _readable(scenario, run.run_id).encode(),
        TRACE_FILE: gzip.compress(encode_traces(_ordered(incident.spans)), mtime=0),
        MODEL_FILE: lines(made.turns),
    }
    if incident.logs:
        bodies[LOGS_FILE] = gzip.compress(encode_logs(incident.logs), mtime=0)
    if good is not None:
        bodies[CONTROL_FILE] = lines(good.turns)
    return Draft(scenario=scenario, files=bodies, notes=tuple(notes))


def _grades(made: Recording, pseudonyms: Pseudonyms | None) -> Completeness:
    """How much of the incident stands behind each boundary; one that pseudonyms stand in is ``redacted``."""
    tools = {name: part.model_dump(mode="json") for name, part in made.tools.items()}
    found: dict[str, tuple[str, Json]] = {
        "request": (made.request_grade, made.request),
        "model": (made.model_grade, made.turns),
        "tools": (made.tools_grade, tools),
        "state": ("missing" if made.state is None else "recorded", made.state),
    }
    return Completeness.model_validate(
        {
            name: "redacted" if pseudonyms is not None and pseudonyms.stand_in(value) else grade
            for name, (grade, value) in found.items()
        }
    )


def _readable(scenario: Scenario, run_id: str) -> str:
    """The text of ``scenario.yaml``, which reads back as what it was."""
    try:
        text = dump(scenario)
        whole = parse(text, SCENARIO_FILE) == scenario
    except (ConfigurationError, ValueError) as problem:
        said = str(problem).rstrip(".")
        raise FreezeRefused(f"Run {run_id[:16]} makes no readable scenario: {said}.") from problem
    if not whole:
        raise FreezeRefused(f"Run {run_id[:16]} makes a scenario that does not read back as it was.")
    return text


def _targets(checks: Sequence[Check], verdicts: Sequence[Verdict], only: set[str]) -> list[Check]:
    by_id = {verdict.check: verdict for verdict in verdicts}
    failed = [c for c in checks if c.id in by_id and by_id[c.id].outcome is Outcome.FAILED]
    targets = [c for c in failed if (c.id in only if only else c.severity >= Severity.FLAG)]
    code = [check for check in targets if names_code(check.spec) or not check.spec]
    targets = [check for check in targets if check not in code]
    missing = only - {c.id for c in (*targets, *code)}
    if code and not missing and not targets:
        raise FreezeRefused(
            f"Nothing to prove: check {code[0].id!r} failed, and it is code, which a scenario does not carry."
        )
    if missing or not targets:
        found = ", ".join(f"{v.check} {v.outcome}" for v in verdicts) or "no check was made"
        asked = (
            f"check {sorted(missing)[0]!r} did not fail on this run"
            if missing
            else "no check of severity flag failed"
        )
        raise FreezeRefused(f"Nothing to prove: {asked} ({found}).")
    return targets


def _guards(
    checks: Sequence[Check], verdicts: Sequence[Verdict], targets: Sequence[Check]
) -> tuple[list[Check], list[tuple[str, str]]]:
    by_id = {verdict.check: verdict for verdict in verdicts}
    guards: list[Check] = []
    left_out: list[tuple[str, str]] = []
    for check in checks:
        if check in targets or check.id not in by_id:
            continue
        if names_code(check.spec) or not check.spec:
            left_out.append((check.id, "is code, which a scenario does not carry"))
            continue
        outcome = by_id[check.id].outcome
        silent_goal = outcome is Outcome.NOT_APPLICABLE and check.check_class is CheckClass.GOAL
        if silent_goal:
            continue  # a goal of another task
        if check.severity < Severity.FLAG:
            continue  # what flags no run in production fails no scenario
        if outcome in (Outcome.PASSED, Outcome.NOT_APPLICABLE) or check.id == "termination":
            guards.append(check)
        else:
            left_out.append((check.id, f"{outcome} on the incident and is no guard"))
    return guards, left_out


def _refuse_gaps(run: Trajectory, made: Recording, targets: Sequence[Check]) -> None:
    gaps = list(made.gaps)
    about_state = [c for c in targets if c.check_class is CheckClass.PROTECTION or c.id.startswith("state")]
    if about_state and made.state_gap is not None:
        gaps.append(f"check {about_state[0].id} is about state, and {made.state_gap}")
    gaps += _too_large({n: [one.returns for one in part.responses] for n, part in made.tools.items()})
    if gaps:
        raise _not_again(run, gaps)


def _large(run: Trajectory) -> list[str]:
    """The answers that nobody could review, found before they are looked through for secrets, which would take minutes."""
    answers: dict[str, list[Json]] = {}
    for call in run.tool_calls:
        if call.result is not MISSING:
            answers.setdefault(call.name, []).append(call.result)
    return _too_large(answers)


def _too_large(answers: Mapping[str, Sequence[Json]]) -> list[str]:
    sizes = {name: max(len(canonical_text(one)) for one in given) for name, given in answers.items()}
    return [
        f"an answer of {name} has {size >> 10} KiB, and at most {LARGEST_ANSWER >> 10} fit into a scenario"
        for name, size in sizes.items()
        if size > LARGEST_ANSWER
    ]


def _not_again(run: Trajectory, gaps: Sequence[str]) -> FreezeRefused:
    shown = "; ".join(gaps[:5]) + (f"; and {len(gaps) - 5} more" if len(gaps) > 5 else "")
    return FreezeRefused(f"Run {run.run_id[:16]} cannot be executed again: {shown}.")


def _tools(made: Recording, good: Recording | None) -> dict[str, ToolPart]:
    out: dict[str, ToolPart] = {}
    for name in sorted({*made.tools, *(good.tools if good else ())}):
        mine = made.tools.get(name)
        theirs = good.tools.get(name) if good else None
        first = mine or theirs
        if first is None:
            raise AssertionError(name)
        responses = [*(mine.responses if mine else ())]
        known = {_answer(r) for r in responses}
        responses += [r for r in (theirs.responses if theirs else ()) if _answer(r) not in known]
        ignore = sorted({*(mine.match.ignore if mine else ()), *(theirs.match.ignore if theirs else ())})
        out[name] = first.model_copy(
            update={"responses": responses, "match": first.match.model_copy(update={"ignore": ignore})}
        )
    return out


def _answer(response: ResponsePart) -> str:
    return digest(response.model_dump(mode="json", exclude={"times", "source"}))


def _ordered(spans: Iterable[Span]) -> list[Span]:
    return sorted(spans, key=lambda span: (span.trace_id, span.start_ns, span.span_id))


def _slug(check: str, run_id: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", check.lower()).strip("-")[:60] + "-" + run_id[:8].lower()


def _title(verdicts: Sequence[Verdict], check: str) -> str:
    return next(v.because for v in verdicts if v.check == check)


def _instant(time_ns: int) -> str:
    at = datetime.fromtimestamp(time_ns // 10**9, UTC).replace(microsecond=time_ns % 10**9 // 1000)
    return at.isoformat().replace("+00:00", "Z")
