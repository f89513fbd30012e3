"""The scorer's process: ``python -m redfirst.collector_processor.scoring.worker FOLDER``.

Reads jobs from standard input and answers each with one frame on what was standard output, so that when it dies
the parent knows which run it died of. Ends when its input does, and so with its parent.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from redfirst.collector_processor.endings import ending_of
from redfirst.collector_processor.journal.format import Position
from redfirst.collector_processor.journal.reading import RecordLost
from redfirst.collector_processor.scoring.guarding import Guarded
from redfirst.collector_processor.scoring.span_source import (
    MOST_SPANS,
    Gathered,
    SpanSource,
    decoded,
    span_set_hash,
    with_silence,
)
from redfirst.collector_processor.storing.store import request_hash
from redfirst.evaluators.canonical import digest
from redfirst.evaluators.check import Check, default_checks, judge
from redfirst.evaluators.dialects.facts import Kind
from redfirst.evaluators.dialects.registry import facts_of
from redfirst.evaluators.errors import UnreadableInput
from redfirst.evaluators.otlp import Decoded
from redfirst.evaluators.reading import read
from redfirst.evaluators.record import run_record
from redfirst.evaluators.rules import load_rules
from redfirst.evaluators.span import Span
from redfirst.evaluators.trajectory import Completeness, Gap, Stop, Termination, Trajectory
from redfirst.evaluators.verdict import flagged

Json = Any

_LENGTH = struct.Struct("<I")


def score(source: SpanSource, checks: Sequence[Check], job: Mapping[str, Json]) -> dict[str, Json]:
    """The answer to one job. A record that cannot be read makes the run unscored, never a verdict on the rest."""
    answer: dict[str, Json] = {"id": job["id"], "state": "unscored", "spans": 0, "hash": "", "record": None}
    try:
        return {
            **answer,
            **(_joined(source, checks, job) if "traces" in job else _alone(source, checks, job)),
        }
    except RecordLost as problem:
        return {**answer, "reason": "spans_gone", "because": str(problem)}
    except UnreadableInput as problem:
        return {**answer, "reason": "unreadable", "because": str(problem)}
    except Exception as problem:  # noqa: BLE001 - a run that cannot be read is its own failure and harms no other
        because = f"{type(problem).__name__}: {problem}"
        return {**answer, "reason": "evaluator_error", "because": because}


def _alone(source: SpanSource, checks: Sequence[Check], job: Mapping[str, Json]) -> dict[str, Json]:
    """One trace by itself."""
    trace_id, positions = bytes.fromhex(job["run_id"]), _positions(job["positions"])
    tenant = source.tenant(positions)
    gathered = source.gather({trace_id: positions})
    found = decoded(gathered.slices)
    answer: dict[str, Json] = {
        "tenant": tenant,
        "spans": len(gathered.slices["traces"]),
        "hash": span_set_hash(gathered.slices),
    }
    read_ = read(found.spans, found.logs)
    if not read_.runs:
        return {**answer, "state": "not_a_run"}
    run = read_.runs[0]
    rootless = _rootless(found)
    if rootless and job.get("abandoned"):
        run, rootless = abandoned(run), False
        answer["hash"] = with_silence(answer["hash"])
    if gathered.left_out:
        run = truncated(run, gathered.left_out)
        answer |= {"truncated": gathered.left_out, "because": run.coverage.missing[-1].because}
    return {
        **answer,
        **_judged(run, checks),
        "service": service_of(found.spans),
        "rootless": rootless,
        "meetings": sorted(digest([tenant, key])[:32] for key in read_.meetings.get(job["run_id"], ())),
    }


def _joined(source: SpanSource, checks: Sequence[Check], job: Mapping[str, Json]) -> dict[str, Json]:
    """Traces that may be runs together: each run with its traces, each trace with the hash of its spans."""
    parts: dict[str, Gathered] = {}
    lost: list[str] = []
    tenants: dict[str, str] = {}
    found = Decoded()
    room = MOST_SPANS
    for name, places in job["traces"].items():
        try:
            tenants[name] = source.tenant(_positions(places))
            part = source.gather({bytes.fromhex(name): _positions(places)}, spans=room)
        except RecordLost:
            lost.append(name)
            continue
        parts[name] = part
        room -= len(part.slices["traces"])
        found += decoded(part.slices)
    hashes = {name: span_set_hash(part.slices) for name, part in parts.items()}
    unseen = sum(part.left_out for part in parts.values() if not part.slices["traces"])
    runs = []
    for run in read(found.spans, found.logs).runs:
        mine = [name for name in run.trace_ids if name in parts]
        # of a trace without any span it cannot be told whose it is, so that no run is whole without it
        left_out = unseen + sum(parts[name].left_out for name in mine)
        judged = truncated(run, left_out) if left_out else run
        if job.get("older_left_out"):
            because = f"traces older than the newest {len(job['traces'])} of the conversation were left out"
            judged = incomplete(judged, because)
        runs.append(
            {
                **_judged(judged, checks),
                "run_id": run.run_id,
                "service": service_of([span for span in found.spans if span.trace_id in run.trace_ids]),
                "traces": mine,
                "tenant": tenants[mine[0]],
                "hash": f"{sum(int(hashes[name], 16) for name in mine) % 2**128:032x}",
                "spans": sum(len(parts[name].slices["traces"]) for name in mine),
                "because": judged.coverage.missing[-1].because if judged is not run else "",
            }
        )
    return {"state": "joined", "runs": runs, "hashes": hashes, "lost": lost}


def _positions(places: Sequence[Sequence[int]]) -> list[Position]:
    return [Position(*place) for place in places]


def abandoned(run: Trajectory) -> Trajectory:
    """The run, of which it is known by waiting that no end came."""
    because = "its root never came, and nothing else for the abandon time"
    end = Termination(reason=Stop.ABANDONED, because=because, span_id=run.root_span_id, waited=True)
    return replace(run, termination=end)


def truncated(run: Trajectory, left_out: int) -> Trajectory:
    """The run, of which spans were left out because it is too large: it is incomplete, and says so."""
    return incomplete(run, f"{left_out} spans and log records beyond what one run may have were left out")


def incomplete(run: Trajectory, because: str) -> Trajectory:
    """The run, of which spans are missing."""
    missing = (*run.coverage.missing, Gap(fact="spans", because=because))
    return replace(run, completeness=Completeness.INCOMPLETE, coverage=replace(run.coverage, missing=missing))


def _rootless(found: Decoded) -> bool:
    """Whether no span is a root. An agent's span whose parent is elsewhere is one when it stands alone on top."""
    ids = {span.span_id for span in found.spans}
    tops = [span for span in found.spans if span.parent_id not in ids]
    if any(span.parent_id is None for span in tops):
        return False
    return len({span.span_id for span in tops}) != 1 or facts_of(tops[0], ()).kind is not Kind.AGENT


def _judged(run: Trajectory, checks: Sequence[Check]) -> dict[str, Json]:
    verdicts = judge(run, checks)
    record = run_record(run, verdicts)
    return {
        "state": "scored",
        "record": _json(record).decode(),
        "verdicts": record["verdicts"],
        "agent": run.agents[0] if run.agents else None,
        "request_hash": None if run.request is None else request_hash(run.request),
        "flagged": flagged(verdicts),
        "ending": ending_of(record),
        "session": run.session_id,
        "user": run.user_id,
    }


def service_of(spans: Sequence[Span]) -> str:
    """The ``service.name`` of the root, or of the first span where there is none."""
    roots = (span for span in spans if not span.parent_id)
    return str(next(roots, spans[0]).resource.get("service.name", ""))


def revision_of_all(checks: Sequence[Check]) -> str:
    """Equal for checks that give the same verdicts: their meanings, names and severities."""
    return digest([[check.id, check.revision, check.severity.name] for check in checks])[:16]


def read_message(stream: BinaryIO) -> Json | None:
    """One framed JSON value; None at the end."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    body = stream.read(_LENGTH.unpack(head)[0])
    return json.loads(body) if body else None


def message(value: Json) -> bytes:
    """A JSON value as it is framed."""
    body = _json(value)
    return _LENGTH.pack(len(body)) + body


def _json(value: Json) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # an integer of more than 64 bits, or half a surrogate pair, which no UTF-8 can hold
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def main() -> None:
    """Answer jobs until there are no more."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what an evaluator prints must not get among the answers
    jobs = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    setup = read_message(jobs)
    if setup is None:
        return
    sys.path[:] = dict.fromkeys((*setup["path"], *sys.path))  # where the service finds what the rules name
    _limit_memory(setup.get("memory"))
    checks = default_checks()
    if setup["rules"] is not None:
        checks = (*checks, *load_rules(setup["rules"], setup["rules_name"]))
    revision = revision_of_all(checks)
    guarded = Guarded(
        checks,
        seconds=setup.get("check_seconds", 10.0),
        left_out=setup.get("left_out"),
        announce=lambda name: _announce(answers, name),
    )
    source = SpanSource(Path(sys.argv[1]))
    gc.freeze()  # what was imported is never garbage, and spans make none that refers to itself
    gc.set_threshold(50_000, 20, 50)
    try:
        answers.write(message({"ready": True, "revision": revision}))
        while (asked := read_message(jobs)) is not None:
            for job in asked["jobs"]:
                answer = score(source, guarded.checks, job)
                answers.write(message({**answer, "revision": revision, "took": guarded.took()}))
    except BrokenPipeError:
        return  # the service has gone; the next one asks again for what was not answered


def _announce(answers: BinaryIO, check: str) -> None:
    answers.write(message({"at": check}))


def _limit_memory(most: int | None) -> None:
    """Have the kernel refuse more: a check that asks for it gets a ``MemoryError``, and the machine stays alive."""
    if most:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    main()
