"""Recorded bodies of real frameworks, and how far what is read of them agrees with what happened."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redfirst.evaluators.otlp import decode_logs, decode_traces
from redfirst.evaluators.reading import read_runs
from redfirst.evaluators.span import LogRecord, Span
from redfirst.evaluators.trajectory import MISSING, CallStatus, Stop, ToolCall, Trajectory

FOLDER = Path(__file__).parent.parent / "fixtures" / "dialects"
FACTS = (
    "model calls",
    "tool names",
    "arguments",
    "results",
    "errors",
    "handoffs",
    "tokens",
    "answer",
    "end",
    "session",
)
READ, ABSENT, WRONG = "read", "absent", "wrong"
_FAILED = (CallStatus.TOOL_ERROR, CallStatus.INFRA_ERROR)
_ENDS = {
    Stop.COMPLETED: "self", Stop.REFUSED: "self", Stop.HANDOFF: "self", Stop.STEP_CAP: "cap", Stop.LOOP_CUT: "cap",
    Stop.TIME_CAP: "cap", Stop.ERROR: "error", Stop.INFRA: "error",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded run and the truth beside it."""

    name: str
    spans: tuple[Span, ...]
    logs: tuple[LogRecord, ...]
    truth: Mapping[str, Any]


def recorded() -> list[Recorded]:
    """All of them, by name."""
    return [load(path.name.removesuffix(".expected.json")) for path in sorted(FOLDER.glob("*.expected.json"))]


def load(name: str) -> Recorded:
    """One of them."""
    truth = json.loads((FOLDER / f"{name}.expected.json").read_text())
    spans = decode_traces(gzip.decompress((FOLDER / f"{name}.otlp.pb.gz").read_bytes()))
    logs = FOLDER / f"{name}.logs.otlp.pb.gz"
    records = decode_logs(gzip.decompress(logs.read_bytes())) if logs.exists() else []
    return Recorded(name, tuple(spans), tuple(records), truth)


def agreement(one: Recorded, runs: Sequence[Trajectory] | None = None) -> dict[str, str]:
    """For each fact whether it was read as it was, is absent, or differs."""
    runs = read_runs(one.spans, one.logs) if runs is None else runs
    truth = one.truth
    calls = [call for run in runs for call in run.tool_calls]
    requested, executed = truth["tool_calls_requested"], truth["tool_calls_executed"]
    asked, ran = [_said(c) for c in requested], [_said(c) for c in executed]
    answers = [run.answer for run in runs if run.answer]
    sums = {name: _sum(getattr(run.tokens, name) for run in runs) for name in ("input", "output")}
    counted = not truth["tokens"]["calls_without_usage"]
    known = bool(runs) and not any(gap.fact == "model_calls" for run in runs for gap in run.coverage.missing)
    made = truth["model_calls_ok"], truth["model_calls_ok"] + truth["model_calls_failed"]
    unnamed = any(gap.fact.endswith("].name") for run in runs for gap in run.coverage.missing)
    unsaid = any(call.status is CallStatus.UNKNOWN for call in calls)
    found = {
        "model calls": _is(sum(len(run.model_calls) for run in runs) if known else None, *made),
        "tool names": ABSENT if unnamed else _is([c.name for c in calls], [n for n, _ in asked], [n for n, _ in ran]),
        "arguments": _all(
            _read(call.arguments, [a for n, a in (*asked, *ran) if unnamed or n == call.name]) for call in calls
        ),
        "results": _all(_result(call, executed, named=not unnamed) for call in calls if call.status is CallStatus.OK),
        "errors": ABSENT if unsaid else _is(sum(c.status in _FAILED for c in calls), truth["tool_errors"]),
        "handoffs": ABSENT if truth["in_payload"].get("handoff_names") is False else
        _is(sum(len(run.handoffs) for run in runs), len(truth["handoff_calls"])),
        "tokens": _all(
            _is(value, *([truth["tokens"][name]] if counted else [])) for name, value in sums.items()
        ),
        "answer": _is(answers[-1].strip() if answers else None, (truth["final_answer"] or "").strip() or None),
        "end": _end(runs, truth),
        "session": _is(_session(runs, truth), truth["session_id_given_to_framework"]),
    }  # fmt: skip
    return {fact: found[fact] for fact in FACTS}


def _said(call: Mapping[str, Any]) -> tuple[str, Any]:
    return call["name"], call["arguments"]


def _is(value: object, *truths: object) -> str:
    return READ if value in truths and value is not None else ABSENT if value in (None, []) else WRONG


def _read(value: object, truths: Iterable[object]) -> str:
    return ABSENT if value is None else READ if value in list(truths) else WRONG


def _all(marks: Iterable[str]) -> str:
    count = Counter(marks)
    return WRONG if count[WRONG] else ABSENT if count[ABSENT] or not count else READ


def _result(call: ToolCall, executed: Iterable[Mapping[str, Any]], *, named: bool) -> str:
    mine = (one for one in executed if one["error"] is None and (one["name"] == call.name or not named))
    truths = [_plain(one["result"]) for one in mine]
    return ABSENT if call.result is MISSING else READ if _plain(call.result) in truths else WRONG


def _plain(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _end(runs: Sequence[Trajectory], truth: Mapping[str, Any]) -> str:
    ends = [_ENDS.get(run.termination.reason) for run in runs]
    end = next((end for end in ends if end not in (None, "self")), ends[-1] if ends else None)
    # Some frameworks give an answer at their cap as they do at any end, and nothing more says which it was.
    silent = truth["stopped"] == "cap" and not truth["run_error"] and truth["final_answer"]
    return _is(end, truth["stopped"], *(["self"] if silent else []))


def _session(runs: Sequence[Trajectory], truth: Mapping[str, Any]) -> str | None:
    """A framework may make one up where it was given none, or keep the one it was given to itself."""
    sent = truth["in_payload"].get("session_id")
    return next((run.session_id for run in runs if run.session_id), None) if sent else None
