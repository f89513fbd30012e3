"""A report as tables, and as plain numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from redfirst.collector_processor.reliability.agent_report import AgentReport, Ratio
from redfirst.collector_processor.reliability.estimates import Estimate
from redfirst.collector_processor.reliability.figures import estimate_json, pair, with_ends
from redfirst.collector_processor.reliability.reliability_tables import paid_cells, share_cells
from redfirst.collector_processor.reliability.tables import Table
from redfirst.collector_processor.reliability.words import UNKNOWN, amount, methods, percent, tally
from redfirst.evaluators.trajectory import Stop
from redfirst.evaluators.verdict import Outcome

Json = Any


def report_tables(found: AgentReport, *, since: str) -> Iterator[Table]:
    """One agent's report, the outcome first."""
    lost = f"; {found.unscored} could not be judged" if found.unscored else ""
    yield Table(
        title=f"{found.agent or 'agent without a name'}, judged since {since}: {found.runs} runs{lost}",
        header=("", "share", "95 % interval", "runs"),
        rows=[(name, *share_cells(share)) for name, share in _shares(found)],
        notes=list(_methods(found)),
    )
    yield Table(
        header=("calls", "share", "", "runs"),
        rows=[
            (name, percent(one.value), f"{one.numerator} of {one.denominator}", str(one.runs))
            for name, one in _ratios(found)
        ],
    )
    yield Table(
        header=("per run", "median", "95th pct", "runs", "per success", "95 % interval"),
        rows=[
            (
                name.replace("_", " "),
                amount(one.median),
                amount(one.upper),
                str(one.runs),
                *paid_cells(found.summary, name),
            )
            for name, one in found.calls.items()
        ],
    )
    total = sum(found.terminations.values())
    if total:
        ranked = sorted(found.terminations.items(), key=lambda one: (-one[1], one[0]))
        shares = [f"{reason} {percent(count / total)}" for reason, count in ranked]
        at = {f"{name.replace(' ', ' of ')}:": count for name, count in found.capped.items()}
        capped = [f"runs at a cap: {tally(at)}"] if at else []
        yield Table(title=f"ended: {', '.join(shares)}", notes=capped)
    yield _checks(found)
    yield Table(notes=[_saturated(found)])


def _shares(found: AgentReport) -> Iterator[tuple[str, Estimate | None]]:
    yield "goal reached", found.goal
    yield "strict: goal, no violation", found.strict
    yield "violations in goal-reaching runs", found.violations
    yield "flagged", found.flagged


def _ratios(found: AgentReport) -> Iterator[tuple[str, Ratio]]:
    yield from found.ratios.items()
    yield "repeats", found.repeats
    yield "errors", found.errors


def _methods(found: AgentReport) -> Iterator[str]:
    names = methods(share.interval for _, share in _shares(found) if share is not None)
    if names:
        yield f"intervals: {', '.join(names)}, a task being one request; runs without a verdict are left out"


def _checks(found: AgentReport) -> Table:
    order = (Outcome.FAILED, Outcome.PASSED, Outcome.INCONCLUSIVE, Outcome.NOT_APPLICABLE)
    ranked = sorted(found.checks.items(), key=lambda item: (-item[1].outcomes.get("failed", 0), item[0]))
    return Table(
        header=("check", "failed", "passed", "unsure", "n/a", "flags right"),
        rows=[
            (
                check,
                *(str(counts.outcomes.get(outcome.value, 0)) for outcome in order),
                f"{counts.labelled_right} of {counts.labelled}" if counts.labelled else UNKNOWN,
            )
            for check, counts in ranked
        ],
        notes=[
            "flags right: failures that people labelled right, of those they labelled (redfirst label); "
            "a label on a whole run counts for each check that flags it"
        ],
    )


def _saturated(found: AgentReport) -> str:
    tried = [task for task in found.summary.tasks if task.valid >= 2]
    return (
        f"{len(found.summary.tasks)} different requests, {len(tried)} of them asked twice or more: "
        f"{len(found.summary.always)} always succeeded, {len(found.summary.never)} never"
    )


def report_json(found: AgentReport, *, since_ns: int) -> dict[str, Json]:
    """One agent's report as one JSON object."""
    tokens = found.summary.per_success.get("tokens")
    return {
        "agent": found.agent,
        "since_ns": since_ns,
        "runs": found.runs,
        "unscored": found.unscored,
        "goal": estimate_json(found.goal),
        "strict": estimate_json(found.strict),
        "violations_among_goal": estimate_json(found.violations),
        "flagged": estimate_json(found.flagged),
        **{name: _ratio(found.ratios.get(name)) for name in ("precision", "recall")},
        "repeats": _ratio(found.repeats),
        "errors": _ratio(found.errors),
        "per_run": {name: asdict(one) for name, one in found.calls.items()},
        "tokens_per_success": None if tokens is None else tokens.value,
        "tokens_per_success_interval": None if tokens is None else pair(tokens.interval),
        "terminations": dict(found.terminations),
        "caps": dict(found.capped),
        "checks": {
            check: {
                **{outcome.value: counts.outcomes.get(outcome.value, 0) for outcome in Outcome},
                "labelled": counts.labelled,
                "labelled_right": counts.labelled_right,
            }
            for check, counts in found.checks.items()
        },
        "requests": len(found.summary.tasks),
        "always_succeeded": list(found.summary.always),
        "never_succeeded": list(found.summary.never),
    }


def report_figures(found: AgentReport) -> Mapping[str, float | None]:
    """What a gate can ask for."""
    figures: dict[str, float | None] = {"runs": found.runs}
    for name, share in (
        ("goal", found.goal),
        ("strict", found.strict),
        ("violations_among_goal", found.violations),
        ("flagged", found.flagged),
    ):
        value, interval = (None, None) if share is None else (share.value, share.interval)
        figures |= with_ends(name, value, interval)
    for name in ("precision", "recall"):
        ratio = found.ratios.get(name)
        figures[name] = None if ratio is None else ratio.value
    figures |= {"repeats": found.repeats.value, "errors": found.errors.value}
    for name in ("model_calls", "tool_calls", "tokens"):
        used = found.calls.get(name)
        figures |= {
            f"{name}.median": None if used is None else used.median,
            f"{name}.p95": None if used is None else used.upper,
        }
    paid = found.summary.per_success.get("tokens")
    price, sure = (None, None) if paid is None else (paid.value, paid.interval)
    figures |= with_ends("tokens_per_success", price, sure)
    total = sum(found.terminations.values())
    for reason in Stop:
        figures[f"ended.{reason.value}"] = found.terminations.get(reason.value, 0) / total if total else None
    return figures


def _ratio(one: Ratio | None) -> Json:
    return None if one is None or not one.runs else {"value": one.value, **asdict(one)}
