"""A summary of trials as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from redfirst.collector_processor.reliability.estimates import FEW, Estimate
from redfirst.collector_processor.reliability.requirements import Verdict
from redfirst.collector_processor.reliability.summary import Reliability, Repeated
from redfirst.collector_processor.reliability.tables import Table
from redfirst.collector_processor.reliability.words import (
    UNKNOWN,
    amount,
    counted,
    methods,
    number_interval,
    percent,
    share_interval,
    tally,
)

_SHOWN_K = (1, 2, 3, 4, 5, 8, 16, 32, 64)
UNITS = {"cost": "$", "seconds": "s"}


def tables_of(found: Reliability) -> Iterator[Table]:
    """All that the trials say, in the order in which it is read."""
    yield Table(
        title=_title(found),
        header=("", "share", "95 % interval", "runs"),
        rows=list(_shares(found)),
        notes=_share_notes(found),
    )
    if found.pass_hat:
        yield _repetitions(found)
    if found.used:
        yield _use(found)
    if found.quadrants is not None:
        crossed = found.quadrants
        yield Table(
            header=("outcome × trajectory", "no violation", "violation"),
            rows=[
                ("goal reached", str(crossed.right_clean), str(crossed.right_violated)),
                ("goal missed", str(crossed.wrong_clean), str(crossed.wrong_violated)),
            ],
            notes=[f"broken: {tally(found.violated)}"] if found.violated else [],
        )
    yield Table(notes=list(_closing(found)))


def gate_table(verdicts: Sequence[Verdict]) -> Table:
    """How each requirement stands."""
    return Table(
        title="required",
        rows=[(one.requirement, one.gate.value, one.because) for one in verdicts],
        left=frozenset({0, 1, 2}),
    )


def _title(found: Reliability) -> str:
    each = sorted({len(task.trials) for task in found.tasks})
    trials = f"{each[0]} each" if len(each) == 1 else f"{each[0]} to {each[-1]} each" if each else ""
    left_out = found.tasks_read - len(found.tasks)
    kept = f" (of {found.tasks_read}; {left_out} have too few trials)" if left_out else ""
    lost = f"; {found.infra} without a verdict" if found.infra else ""
    return f"{len(found.tasks)} tasks{kept}, {found.trials} runs, {trials}{lost}"


def _shares(found: Reliability) -> Iterator[tuple[str, ...]]:
    for name, share in (
        ("success", found.success),
        ("goal only", found.goal),
        ("strict: goal, no violation", found.strict),
        ("violations in goal-passing runs", found.violations),
    ):
        yield (name, *share_cells(share))


def share_cells(share: Estimate | None) -> tuple[str, str, str]:
    """Value, interval and counts of a share."""
    if share is None:
        return (UNKNOWN, UNKNOWN, UNKNOWN)
    return (percent(share.value), share_interval(share.interval), counted(share))


def _share_notes(found: Reliability) -> list[str]:
    notes = []
    if found.infra:
        every = found.of_all_runs
        notes.append(
            f"{found.infra} of {found.trials} runs have no verdict and are left out; over all runs success lies between "
            f"{percent(every.if_all_failed)} (all of them failures) and {percent(every.if_all_passed)} (all passes)"
        )
    if found.strict is None and found.success is not None:
        notes.append(
            "nothing here says what was violated on the way: success is what the source calls a pass"
        )
    marked = sum(one.passed is True and bool(one.violations) for task in found.tasks for one in task.trials)
    if marked:
        notes.append(
            f"{marked} runs are marked as passed although rules were broken: success counts them, strict does not"
        )
    return notes


def _repetitions(found: Reliability) -> Table:
    """pass@k beside pass^k."""
    most = max(found.pass_hat)
    undefined = [k for k, one in found.pass_hat.items() if one.value is None]
    shown = [k for k in dict.fromkeys((*_SHOWN_K, most)) if k <= most and k not in undefined[1:]]
    lost = any(one.all_runs is not None for one in found.pass_hat.values())
    header = ["k", "pass@k", "95 %", "pass^k", "95 %", *(["all runs"] if lost else [])]
    rows = []
    for k in shown:
        one = found.pass_hat[k]
        rows.append([str(k), *_cells(found.pass_at[k]), *_cells(one), *([_bounds(one)] if lost else [])])
    notes = ["pass@k: one of k trials passes; pass^k: all k do; unbiased, mean over tasks"]
    if undefined:
        fewest = min(task.valid for task in found.tasks)
        notes.append(
            f"undefined from k = {undefined[0]}: a task has {fewest} trials with a verdict; --min-trials N keeps the tasks "
            f"that have N"
        )
    if lost:
        notes.append("all runs: pass^k with the runs without a verdict counted as failures, and as passes")
    return Table(header=header, rows=rows, notes=notes)


def _cells(one: Repeated) -> tuple[str, str]:
    return (percent(one.value), share_interval(one.interval))


def _bounds(one: Repeated) -> str:
    every = one.all_runs
    if every is None or every.if_all_failed is None or every.if_all_passed is None:
        return UNKNOWN
    return f"{100 * every.if_all_failed:.1f}–{100 * every.if_all_passed:.1f}"


def _use(found: Reliability) -> Table:
    rows = []
    for name, one in found.used.items():
        shown = f"{name} ({UNITS[name]})" if name in UNITS else name
        rows.append((shown, amount(one.median), amount(one.upper), str(one.runs), *paid_cells(found, name)))
    return Table(header=("per run", "median", "95th pct", "runs", "per success", "95 % interval"), rows=rows)


def paid_cells(found: Reliability, name: str) -> tuple[str, str]:
    """What a success costs of an amount, and the interval of that."""
    paid = found.per_success.get(name)
    if paid is None:
        return (UNKNOWN, UNKNOWN)
    if paid.value is None:
        return (f"no success for {amount(paid.total)}", UNKNOWN)
    return (amount(paid.value), number_interval(paid.interval))


def _closing(found: Reliability) -> Iterator[str]:
    if found.always or found.never:
        between = len(found.tasks) - len(found.always) - len(found.never)
        yield (
            f"saturated tasks: {len(found.always)} always passed, {len(found.never)} never; {between} tell agents apart"
        )
    if found.spread is not None:
        yield f"variance between tasks {found.spread.between:.4f}, within {found.spread.within:.4f} (redfirst plan reads it)"
    if found.ended:
        yield f"ended: {tally(found.ended)}"
    yield f"intervals: {', '.join(_methods(found)) or 'none'}; trials of one task are not independent"
    if found.few and len(found.tasks) > 1:
        yield f"fewer than {FEW} tasks or groups: intervals over so few can be too narrow"


def _methods(found: Reliability) -> Sequence[str]:
    shares = [found.success, found.goal, found.strict, found.violations]
    intervals = [share.interval for share in shares if share is not None]
    intervals += [one.interval for one in (*found.pass_at.values(), *found.pass_hat.values())]
    intervals += [paid.interval for paid in found.per_success.values()]
    return methods(intervals)
