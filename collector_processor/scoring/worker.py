"""The scorer's process: ``python -m redfirst.collector_processor.scoring.worker FOLDER``.

Reads jobs from standard input and answers each with one frame on what was standard output, so that when it dies
the parent knows which run it died of. Ends when its input does, and so with its parent.
"""

from __future__ import annotations

import gc
import json
import os
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from redfirst.collector_processor.endings import ending_of
from redfirst.collector_processor.journal.format import Position
from redfirst.collector_processor.journal.reading import RecordLost
from redfirst.collector_processor.scoring.span_source import SpanSource, decoded, span_set_hash
from redfirst.collector_processor.storing.store import request_hash
from redfirst.evaluators.check import Check, default_checks, judge
from redfirst.evaluators.errors import UnreadableInput
from redfirst.evaluators.otlp import Decoded
from redfirst.evaluators.reading import read
from redfirst.evaluators.record import run_record
from redfirst.evaluators.rules import load_rules
from redfirst.evaluators.span import Span
from redfirst.evaluators.verdict import flagged

Json = Any

_LENGTH = struct.Struct("<I")


def score(source: SpanSource, checks: Sequence[Check], job: Mapping[str, Json]) -> dict[str, Json]:
    """The answer to one job. A record that cannot be read makes the run unscored, never a verdict on the rest."""
    trace_id = bytes.fromhex(job["run_id"])
    answer: dict[str, Json] = {"id": job["id"], "state": "unscored", "spans": 0, "hash": "", "record": None}
    try:
        positions = [Position(*place) for place in job["positions"]]
        answer["tenant"] = source.tenant(positions)
        pieces = source.slices(trace_id, positions)
        answer["spans"], answer["hash"] = len(pieces["traces"]), span_set_hash(pieces)
        found = decoded(pieces)
    except (RecordLost, UnreadableInput) as problem:
        return {**answer, "reason": "unreadable", "because": str(problem)}
    try:
        return {**answer, **_judged(found, checks)}
    except Exception as problem:  # noqa: BLE001 - a run that cannot be read is its own failure and harms no other
        because = f"{type(problem).__name__}: {problem}"
        return {**answer, "reason": "evaluator_error", "because": because}


def _judged(found: Decoded, checks: Sequence[Check]) -> dict[str, Json]:
    runs = read(found.spans, found.logs).runs
    if not runs:
        return {"state": "not_a_run"}
    run = runs[0]
    verdicts = judge(run, checks)
    record = run_record(run, verdicts)
    return {
        "state": "scored",
        "record": _json(record).decode(),
        "verdicts": record["verdicts"],
        "agent": run.agents[0] if run.agents else None,
        "service": service_of(found.spans),
        "request_hash": None if run.request is None else request_hash(run.request),
        "flagged": flagged(verdicts),
        "ending": ending_of(record),
    }


def service_of(spans: Sequence[Span]) -> str:
    """The ``service.name`` of the root, or of the first span where there is none."""
    roots = (span for span in spans if not span.parent_id)
    return str(next(roots, spans[0]).resource.get("service.name", ""))


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
    checks = default_checks()
    if setup["rules"] is not None:
        checks = (*checks, *load_rules(setup["rules"], setup["rules_name"]))
    source = SpanSource(Path(sys.argv[1]))
    gc.freeze()  # what was imported is never garbage, and spans make none that refers to itself
    gc.set_threshold(50_000, 20, 50)
    try:
        answers.write(message({"ready": True}))
        while (asked := read_message(jobs)) is not None:
            for job in asked["jobs"]:
                answers.write(message(score(source, checks, job)))
    except BrokenPipeError:
        return  # the service has gone; the next one asks again for what was not answered


if __name__ == "__main__":
    main()
