"""What judged runs add to the metrics, under the names of ``docs/alerts.md``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redfirst.collector_processor.endings import APART
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.scoring.guarding import LEFT_OUT, TOOK_TOO_LONG
from redfirst.collector_processor.storing.store import Landed, Landing, RunState
from redfirst.evaluators.check import severity_named
from redfirst.evaluators.trajectory import Stop
from redfirst.evaluators.verdict import Outcome, Severity

Json = Any


class Counting:
    """Counts answers and what was stored of them."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def answered(self, answer: Mapping[str, Json]) -> None:
        """A scorer's answer, stored or not."""
        for check, seconds in (answer.get("took") or {}).items():
            self._metrics.add("redfirst_evaluator_seconds_total", seconds, gen_ai_evaluation_name=check)
        if answer["state"] == RunState.UNSCORED:
            self._metrics.add("redfirst_unscored_total", reason=answer.get("reason", "unknown"))
        if answer.get("truncated"):
            self._metrics.add("redfirst_truncated_runs_total")
            self._metrics.add("redfirst_truncated_spans_total", answer["truncated"])

    def landed(self, landing: Landing, result: Landed, seconds: float | None) -> None:
        """A run that was stored, so many seconds after its last span."""
        if result.erased:
            self._metrics.add("redfirst_erased_on_landing_total")
            return
        self._metrics.add("redfirst_landed_total", state=landing.state.value)
        if seconds is not None:
            self._metrics.observe("redfirst_trace_score_duration_seconds", seconds)
        if landing.state is not RunState.SCORED or not result.new:
            return
        for verdict in landing.verdicts:
            if verdict["outcome"] == Outcome.INCONCLUSIVE:
                self._metrics.add(
                    "redfirst_inconclusive_total",
                    gen_ai_evaluation_name=verdict["check"],
                    reason=_why(verdict["because"]),
                )
        if landing.ending == Stop.ABANDONED:
            self._metrics.add("redfirst_abandoned_total", gen_ai_agent_name=landing.agent or "")
        if result.was_flagged is None:
            scored(self._metrics, landing)
        else:
            changed = str(result.was_flagged != landing.flagged).lower()
            self._metrics.add("redfirst_traces_rescored_total", changed=changed)


def _why(because: str) -> str:
    """A short name for what kept a check from an answer."""
    if because.startswith(LEFT_OUT):
        return "left_out"
    if TOOK_TOO_LONG in because:
        return "too_slow"
    return "error" if because.startswith("evaluator error") else "evidence"


def scored(metrics: Metrics, landing: Landing) -> None:
    """Count the first version of a run, what its checks found, and their scores. No session, user or trace is a label."""
    service, agent = landing.service, landing.agent or ""
    could = [one for one in landing.verdicts if severity_named(one["severity"]) >= Severity.FLAG]
    metrics.add(
        "redfirst_traces_total",
        trace_id=landing.run_id,
        service_name=service,
        gen_ai_agent_name=agent,
        redfirst_ending=landing.ending if landing.ending in APART else "ended",
        redfirst_verdict=_verdict(landing, [one["outcome"] for one in could]),
    )
    for one in could:
        if one["outcome"] == Outcome.FAILED:
            metrics.add(
                "redfirst_findings_total",
                len(one["subjects"]),
                trace_id=landing.run_id,
                service_name=service,
                gen_ai_agent_name=agent,
                redfirst_rule=one["check"],
            )
    for one in landing.verdicts:
        if one["score"] is not None:
            metrics.observe("redfirst_evaluation_score", one["score"], gen_ai_evaluation_name=one["check"])


def _verdict(landing: Landing, outcomes: list[str]) -> str:
    """``clean`` only where a check that could have flagged the run came to an answer."""
    if landing.flagged:
        return "flagged"
    return "clean" if Outcome.PASSED in outcomes else "undecided"
