"""An alert as it is posted: one JSON object that a person can act on and a program can match."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redfirst.collector_processor.alerting.detector import Change, Status
from redfirst.collector_processor.alerting.policy import ABANDONED, COVERAGE, INFRASTRUCTURE, Policy
from redfirst.collector_processor.alerting.runs import Observed, reasons
from redfirst.collector_processor.links import Links
from redfirst.collector_processor.storing.rows import moment
from redfirst.collector_processor.terminal import clean
from redfirst.evaluators.statistics.proportions import wilson
from redfirst.replay.covering import Cover, Covers

Json = Any
SCHEMA = "redfirst.alert/1"
_RUNS = 5
_WHAT = {INFRASTRUCTURE: "ended by infrastructure", ABANDONED: "stopped without an end"}


def message(
    change: Change,
    policy: Policy,
    *,
    there: Callable[[Observed], bool] = lambda _: True,
    covers: Covers = Covers(),  # noqa: B008 - frozen
    trace_url: str | None = None,
) -> Json:
    """The body of one notification; ``there`` says whether a run has not been erased since, ``covers`` are the scenarios
    that there are, ``trace_url`` is the template of links."""
    failing: list[Observed] = []
    for run in change.failing:
        if len(failing) < _RUNS and there(run):
            failing.append(run)
    count, stream = change.count, change.stream
    policy = policy.for_stream(stream)
    drift = change.mark.drift
    drop = drift.drop
    interval = count.interval(policy.z)
    covered = [covers.of(run.agent, run.signature) for run in failing]
    new = [run.run_id for run, cover in zip(failing, covered, strict=True) if cover is None]
    return {
        "schema": SCHEMA,
        "id": change.id,
        "alert": change.alert,
        "status": change.status.value,
        "tenant": stream.tenant,
        "agent": stream.agent or None,
        "check": stream.check or None,
        "task": stream.task or None,
        "about": stream.about or "reliability",
        "text": _text(change, policy),
        "since": moment(change.since_ns),
        "at": moment(change.at_ns),
        "flagged": count.flagged,
        "judged": count.judged,
        "infrastructure": change.infrastructure,
        "abandoned": change.abandoned,
        "of_all": None if stream.about or stream.task else list(_of_all(change)),
        "interval": None if interval is None else [round(bound, 4) for bound in interval],
        "causes": list(change.causes),
        "severity": severity(change, policy),
        "threshold": policy.threshold,
        "versions": _versions(change),
        "expected": None if drop is None else round(drop.expected, 4),
        "reference_runs": drift.known if drop is not None else None,
        "changed_at": moment(drift.rise_ns) if drift.rise_ns else None,
        "began": [{"at": moment(one.at_ns), "what": one.what, "name": one.name} for one in change.began],
        "z": policy.z,
        "min_runs": policy.min_runs,
        "window_seconds": policy.window_ns / 1e9,
        "retracted": change.retracted,
        "failing_runs": [run.run_id for run in failing],
        "links": [] if trace_url is None else [_link(trace_url, run) for run in failing],
        "reasons": reasons(change.failing, stream),
        "covered_by": [None if cover is None else _covered(cover) for cover in covered],
        "freeze": f"redfirst freeze {new[0]}" if new and stream.about != INFRASTRUCTURE else None,
    }


def _covered(cover: Cover) -> Json:
    return {"scenario": cover.scenario, "proven": cover.proven}


def _of_all(change: Change) -> tuple[int, int]:
    """Flagged, abandoned and ended by infrastructure, of all runs that ended: the other rate, with its own denominator."""
    others = change.infrastructure + change.abandoned
    return change.count.flagged + others, change.count.judged + others


def _beside(change: Change) -> str:
    """What else befell the agent's runs meanwhile, which is no part of the share."""
    if change.stream.about or change.stream.task or not change.infrastructure + change.abandoned:
        return ""
    bad, runs = _of_all(change)
    return (
        f"; beside them {change.infrastructure} ended by infrastructure and {change.abandoned} abandoned:"
        f" {bad} of {runs} in all"
    )


def _quiet_text(change: Change) -> str:
    agent = change.stream.agent
    who = f"agent {agent}" if agent else "runs without an agent's name"
    if change.status is Status.RESOLVED:
        return f"{who}: runs come and are judged again"
    if change.status is Status.NO_DATA:
        return f"{who}: no runs for so long that none are expected any more"
    if "absence" in change.causes:
        return f"{who}: no runs since {moment(change.last_ns)}, though some came at this time in weeks before"
    return f"{who}: {change.count.flagged} of {change.count.judged} runs could not be judged; alerts on them are held back"


def _link(template: str, run: Observed) -> str:
    return Links(template).to(run.run_id, run.trace_id) or ""


def _text(change: Change, policy: Policy) -> str:
    stream, count = change.stream, change.count
    if stream.about == COVERAGE:
        return _quiet_text(change)
    who = f"agent {stream.agent}" if stream.agent else "runs without an agent's name"
    if stream.task:
        who += f", task {stream.task[:12]}"
    what = _WHAT.get(stream.about) or (f"failed {stream.check}" if stream.check else "flagged")
    share = f"{count.flagged} of {count.judged} runs {what}"
    interval = count.interval(policy.z)
    bounds = "" if interval is None else f" (interval {interval[0]:.0%} to {interval[1]:.0%})"
    if change.status is Status.FIRING:
        return f"{who}: {share}{bounds}, more than {_measure(change, policy)}{_beside(change)}"
    if change.retracted:
        return f"{who}: retracted; with later spans, {share}{bounds}"
    if change.status is Status.RESOLVED:
        return f"{who}: back below {_measure(change, policy)}; {share}{bounds}"
    return f"{who}: too few runs for too long to tell whether it still holds; {share}{bounds}"


def _versions(change: Change) -> list[Json]:
    """The version before and the newest, where the newest is why it fires."""
    if "version" not in change.causes or len(change.mark.versions.tallies) < 2:
        return []
    marks = change.mark.versions
    return [
        {"version": name, "flagged": tally.bad, "judged": tally.runs}
        for name, tally in (marks.before, marks.newest)
    ]


def severity(change: Change, policy: Policy) -> str:
    """``page`` where the upper Wilson bound (95 %) of the share of good runs is below the worse rate that is looked
    for, else ``ticket``; what is no fault of the agent is a ticket."""
    if change.stream.about in (COVERAGE, INFRASTRUCTURE):
        return "ticket"
    drift, judged = change.mark.drift, change.count.judged
    worse = 1.0 - policy.threshold if policy.threshold is not None else None
    if "drop" in change.causes and drift.drop is not None:
        if drift.warns:
            return "ticket"
        worse = drift.drop.worse if worse is None else min(worse, drift.drop.worse)
    if worse is None or not judged:
        return "ticket"
    return "page" if wilson(judged - change.count.flagged, judged).high < worse else "ticket"


def _measure(change: Change, policy: Policy) -> str:
    """What the share is held against."""
    found = []
    if "objective" in change.causes and policy.threshold is not None:
        found.append(f"the {policy.threshold:.0%} tolerated")
    drift = change.mark.drift
    if "drop" in change.causes and drift.drop is not None:
        found.append(f"the {1 - drift.drop.expected:.0%} of {drift.known} runs before")
    if versions := _versions(change):
        old = versions[0]
        found.append(f"the {old['flagged']} of {old['judged']} of version {clean(str(old['version']))}")
    return " and ".join(found)
