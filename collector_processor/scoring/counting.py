"""What a newly scored run adds to the metrics, under the names of ``docs/alerts.md``."""

from __future__ import annotations

from redfirst.collector_processor.endings import APART
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.storing.store import Landing
from redfirst.evaluators.check import severity_named
from redfirst.evaluators.verdict import Outcome, Severity


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
