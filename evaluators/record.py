"""The JSON object that ``redfirst score --json`` prints for one run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from redfirst.evaluators.trajectory import MISSING, CallStatus, Gap, Handoff, ToolCall, Trajectory
from redfirst.evaluators.verdict import Outcome, Verdict, flagged

_WRONG = (CallStatus.TOOL_ERROR, CallStatus.INFRA_ERROR)


def run_record(
    run: Trajectory, verdicts: Iterable[Verdict], metrics: Mapping[str, object] | None = None
) -> dict[str, object]:
    """The run and what was found, as plain JSON values. What is not known is null."""
    found = tuple(verdicts)
    unknown = {gap.fact for gap in run.coverage.missing}
    return {
        "trace_id": run.trace_ids[0] if run.trace_ids else run.run_id,
        "trace_ids": list(run.trace_ids),
        "dialects": list(run.dialects),
        "completeness": run.completeness.value,
        "agents": list(run.agents),
        "versions": {"agent": run.agent_version, "models": list(run.models)},
        "session_id": run.session_id,
        "request": run.request,
        "answer": run.answer,
        "termination": {"reason": run.termination.reason.value, "cap": run.termination.cap},
        "tool_calls": None if "tool_calls" in unknown else [_call(call) for call in run.tool_calls],
        "handoffs": [_handoff(handoff) for handoff in run.handoffs],
        "model_calls": None if "model_calls" in unknown else len(run.model_calls),
        "tokens": {
            "input": run.tokens.input,
            "output": run.tokens.output,
            "cached": run.tokens.cached,
            "reasoning": run.tokens.reasoning,
        },
        "errors": None if "tool_calls" in unknown else errors_of(run),
        "repeats": repeats_of(found),
        "coverage": {
            "missing": [_gap(gap) for gap in run.coverage.missing],
            "reconstructed": [_gap(gap) for gap in run.coverage.reconstructed],
            "blind": [{"check": one.check, "because": one.because} for one in found if one.blind],
        },
        "metrics": dict(metrics or {}),
        "verdicts": [_verdict(verdict) for verdict in found],
        "flagged": flagged(found),
    }


def errors_of(run: Trajectory) -> int:
    """How many calls ended in an error of the tool or of the way to it."""
    return sum(call.status in _WRONG for call in run.tool_calls)


def repeats_of(verdicts: Iterable[Verdict]) -> int | None:
    """How many logical calls the ``repeats`` check counted; None when it could not tell or did not run."""
    for verdict in verdicts:
        if verdict.check != "repeats":
            continue
        if verdict.outcome is Outcome.NOT_APPLICABLE:
            return 0
        if verdict.outcome is Outcome.INCONCLUSIVE or verdict.denominator is None:
            return None
        return verdict.denominator - (verdict.numerator or 0)
    return None


def _call(call: ToolCall) -> dict[str, object]:
    record: dict[str, object] = {
        "index": call.index,
        "name": call.name,
        "arguments": jsonable(call.arguments),
        "result": jsonable(call.result),
        "status": call.status.value,
        "agent": call.agent,
        "span_id": call.span_id,
        "source": call.source.value,
    }
    if call.error is not None:
        record["error"] = call.error
    return record


def _handoff(handoff: Handoff) -> dict[str, object]:
    return {
        "source": handoff.source,
        "target": handoff.target,
        "name": handoff.name,
        "span_id": handoff.span_id,
    }


def _gap(gap: Gap) -> dict[str, object]:
    return {"fact": gap.fact, "because": gap.because, "span_id": gap.span_id or None}


def _verdict(verdict: Verdict) -> dict[str, object]:
    return {
        "check": verdict.check,
        "outcome": verdict.outcome.value,
        "score": verdict.score,
        "because": verdict.because,
        "evidence": [
            {"span_id": item.span_id, "pointer": item.pointer, "note": item.note} for item in verdict.evidence
        ],
        "class": verdict.check_class.value,
        "severity": verdict.severity.name.lower(),
        "numerator": verdict.numerator,
        "denominator": verdict.denominator,
        "revision": verdict.revision,
        "subjects": sorted({finding.subject for finding in verdict.findings}),
    }


def jsonable(value: object) -> object:
    """The value as JSON can say it: a missing one is null, bytes are hex, no number is infinite."""
    if value is MISSING or value is None or isinstance(value, str | bool | int):
        return None if value is MISSING else value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    return str(value)
