"""An agent against its own past: has the share of good runs dropped?

The past are the runs of the last week, without the newest hour and without the times at which a drop was reported; it
is looked at anew every hour. With fewer than 100 runs of it nothing is compared, with fewer than 300 a drop is only a
warning. A drop is over when it was reported for ``hold`` at least and the runs since things got better - those after
the sum that speaks for "as expected" was 0 last - are 20 or more with a lower Wilson bound above the middle between
the expected and the worse rate. A lull ends nothing; after ``stale`` without a run it is given up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from redfirst.collector_processor.alerting.cusum import Drop
from redfirst.collector_processor.alerting.policy import HOUR_NS, WEEK_NS, Policy, Sample, Standing
from redfirst.collector_processor.alerting.reference import KNOWN, WARNS, Reference, design_effect
from redfirst.evaluators.statistics.proportions import wilson_bounds

_FEWEST = 20
_LEAST_BETWEEN = 1_000.0
"""However few runs a week: a stream that is falsely reported every few dozen runs is of no use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Where a stream stands with its past."""

    standing: Standing = Standing.LEARNING
    hour: int = -1
    """The hour for which ``drop`` was worked out."""
    drop: Drop | None = None
    known: int = 0
    """Runs of the past it is compared with."""
    total: float = 0.0
    """The sum that speaks for a drop."""
    rise_ns: int = 0
    """When the first run of its present rise was judged: where the rate changed."""
    fired_ns: int = 0
    """Since when it fires."""
    better: float = 0.0
    """While it fires, the sum that speaks for "as expected"."""
    good: int = 0
    bad: int = 0
    """The runs since things got better."""
    last_ns: int = 0
    """When the last run was judged."""
    reported: tuple[tuple[int, int], ...] = ()
    """Times in which it fired, as (from, to); they are no reference."""

    @property
    def warns(self) -> bool:
        """Whether the past is too short for more than a warning."""
        return self.known < KNOWN


def seen(mark: Drift, samples: Sequence[Sample], place: int, policy: Policy) -> Drift:
    """The next mark after the run at this place; those before it, in order, are the past."""
    sample = samples[place]
    mark = waited(mark, policy, sample.at_ns)
    if mark.standing is not Standing.FIRING and mark.hour != sample.at_ns // HOUR_NS:
        mark = _compared(mark, samples[:place], policy, sample.at_ns // HOUR_NS)
    mark = replace(mark, last_ns=sample.at_ns)
    if mark.drop is None:
        return mark
    return _recovering(mark, sample, policy) if mark.standing is Standing.FIRING else _watched(mark, sample)


def waited(mark: Drift, policy: Policy, now_ns: int) -> Drift:
    """The mark at this time when no run came meanwhile."""
    if mark.standing is not Standing.FIRING:
        return mark
    if now_ns >= mark.last_ns + policy.stale_ns:
        return _ended(mark, Standing.NO_DATA, mark.last_ns + policy.stale_ns)
    return _ended(mark, Standing.OK, now_ns) if _over(mark, policy, now_ns) else mark


def due(mark: Drift, policy: Policy) -> tuple[int, ...]:
    """The moments at which time alone may change it."""
    if mark.standing is not Standing.FIRING:
        return ()
    return (mark.fired_ns + policy.hold_ns, mark.last_ns + policy.stale_ns)


def reference(
    past: Iterable[Sample], reported: Sequence[tuple[int, int]], begin_ns: int, end_ns: int
) -> Reference:
    """What is known of the past between these times, without what was reported as a drop."""
    sessions: dict[str, list[int]] = {}
    good = bad = 0
    for sample in past:
        if not begin_ns <= sample.at_ns < end_ns:
            continue
        if any(first <= sample.at_ns <= last for first, last in reported):
            continue
        good, bad = good + (not sample.bad), bad + sample.bad
        session = sessions.setdefault(sample.session or sample.run_id, [0, 0])
        session[sample.bad] += 1
    effect = design_effect((counts[0], counts[1]) for counts in sessions.values())
    return Reference(good=good, bad=bad, design_effect=effect)


def _compared(mark: Drift, past: Sequence[Sample], policy: Policy, hour: int) -> Drift:
    """The mark with what is to be looked for in this hour."""
    begin = hour * HOUR_NS - policy.reference_ns
    reported = tuple(period for period in mark.reported if period[1] >= begin)
    known = reference(past, reported, begin, hour * HOUR_NS - policy.settle_ns)
    if known.runs < WARNS or policy.false_alarms_a_week is None:
        return Drift(hour=hour, known=known.runs, last_ns=mark.last_ns, reported=reported)
    runs_a_week = known.runs * WEEK_NS / policy.reference_ns
    between = runs_a_week / policy.false_alarms_a_week
    drop = Drop.against(known, between_false_alarms=max(between, _LEAST_BETWEEN))
    return replace(mark, standing=Standing.OK, hour=hour, drop=drop, known=known.runs, reported=reported)


def _watched(mark: Drift, sample: Sample) -> Drift:
    drop = _of(mark)
    total = mark.total + drop.says(not sample.bad)
    if total <= 0:
        return replace(mark, total=0.0, rise_ns=0)
    mark = replace(mark, total=total, rise_ns=mark.rise_ns or sample.at_ns)
    if total < drop.limit:
        return mark
    return replace(
        mark, standing=Standing.FIRING, fired_ns=sample.at_ns, total=0.0, better=0.0, good=0, bad=0
    )


def _recovering(mark: Drift, sample: Sample, policy: Policy) -> Drift:
    better = mark.better - _of(mark).says(not sample.bad)
    if better <= 0:
        mark = replace(mark, better=0.0, good=0, bad=0)
    else:
        mark = replace(mark, better=better, good=mark.good + (not sample.bad), bad=mark.bad + sample.bad)
    return waited(mark, policy, sample.at_ns)


def _over(mark: Drift, policy: Policy, now_ns: int) -> bool:
    drop, runs = _of(mark), mark.good + mark.bad
    return (
        runs >= _FEWEST
        and now_ns >= mark.fired_ns + policy.hold_ns
        and wilson_bounds(mark.good, runs, policy.resolve_z)[0] > (drop.expected + drop.worse) / 2
    )


def _ended(mark: Drift, standing: Standing, at_ns: int) -> Drift:
    return replace(
        mark,
        standing=standing,
        total=0.0,
        rise_ns=0,
        fired_ns=0,
        better=0.0,
        good=0,
        bad=0,
        # the runs of the rise were bad already
        reported=(*mark.reported, (mark.rise_ns, at_ns)),
    )


def _of(mark: Drift) -> Drop:
    if mark.drop is None:
        raise AssertionError("a stream without a reference was compared with one")
    return mark.drop
