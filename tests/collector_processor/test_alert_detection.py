"""Drops of a success rate: what is looked for, when it is found, when it is over, and what is no news."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redfirst.collector_processor.alerting import canary, drift
from redfirst.collector_processor.alerting import detector as detector_module
from redfirst.collector_processor.alerting.absence import absent, expected_runs, uncovered
from redfirst.collector_processor.alerting.canary import Tally, look, probability_worse, regressed, required
from redfirst.collector_processor.alerting.course import Mark, followed
from redfirst.collector_processor.alerting.cusum import Drop
from redfirst.collector_processor.alerting.detector import Detector, Status
from redfirst.collector_processor.alerting.drift import Drift
from redfirst.collector_processor.alerting.policy import Policy, Sample, Standing, Stream
from redfirst.collector_processor.alerting.reference import Reference, design_effect
from redfirst.collector_processor.alerting.runs import Observed
from redfirst.collector_processor.settings import AlertSettings
from redfirst.evaluators.trajectory import Stop

S = 1_000_000_000
HOUR = 3600 * S
T0 = 500_000 * HOUR
"""A whole hour."""
PAST = Policy.of(AlertSettings(threshold=None, false_alarms_a_week=0.5))


def runs(outcomes: Iterable[bool], *, begin: int = T0, every: int = 60 * S, session: int = 1) -> list[Sample]:
    """One run a minute (True = good)."""
    return [
        Sample(begin + n * every, f"{begin:024x}{n:08x}", not good, f"{begin}-{n // session}")
        for n, good in enumerate(outcomes)
    ]


def nine_in_ten(count: int) -> list[bool]:
    """Every tenth is bad."""
    return [n % 10 != 9 for n in range(count)]


# --- what is looked for


def test_the_drop_that_is_looked_for() -> None:
    """p0 = .90 with the odds of failure doubled: p1 = .8182, D = .026, h = ln(10,000 D) = 5.56."""
    drop = Drop.of(0.9, between_false_alarms=10_000)

    assert drop.worse == pytest.approx(9 / 11)
    assert drop.good == pytest.approx(math.log(10 / 11))
    assert drop.bad == pytest.approx(math.log(20 / 11))
    assert drop.limit == pytest.approx(5.56, abs=0.005)


def watched(drop: Drop, outcomes: Sequence[bool]) -> tuple[Drift, list[Sample]]:
    """Where a stream that is compared with this drop stands after a run a second, all of them in one hour."""
    samples = runs(outcomes, every=S)
    mark = Drift(standing=Standing.OK, hour=T0 // HOUR, drop=drop)
    for place in range(len(samples)):
        mark = drift.seen(mark, samples, place, PAST)
    return mark, samples


def test_ten_failures_in_a_row_are_found() -> None:
    """Each adds ln(20/11) = .598, and ten are the first to reach 5.56."""
    drop = Drop.of(0.9, between_false_alarms=10_000)

    assert watched(drop, [False] * 9)[0].standing is Standing.OK
    assert watched(drop, [False] * 10)[0].standing is Standing.FIRING


def test_the_sum_never_owes_and_knows_where_its_rise_began() -> None:
    """A thousand good runs are forgotten by the first bad one; the rise began after them."""
    drop = Drop.of(0.9, between_false_alarms=10_000)
    after, samples = watched(drop, [True] * 1000 + [False] * 3)

    assert after.total == pytest.approx(3 * drop.bad)
    assert after.rise_ns == samples[1000].at_ns


@pytest.mark.parametrize(("expected", "between"), [(0.0, 100.0), (1.0, 100.0), (1.2, 100.0), (0.9, 1.0)])
def test_what_cannot_be_looked_for_is_refused(expected: float, between: float) -> None:
    """A rate that cannot fall, or alarms at every run."""
    with pytest.raises(ValueError, match="between"):
        Drop.of(expected, between_false_alarms=between)


def test_the_reference_is_the_lower_bound_and_not_the_share() -> None:
    """270 good of 300: the 10 % quantile of Beta(270.5, 30.5) is .876; with all of them good it is below 1."""
    assert Reference(good=270, bad=30).expected() == pytest.approx(0.8759, abs=5e-5)
    assert Reference(good=2700, bad=300).expected() > Reference(good=270, bad=30).expected()
    clustered = Reference(good=270, bad=30, design_effect=3.0)
    assert clustered.expected() < Reference(good=270, bad=30).expected()
    assert Reference(good=300, bad=0).expected() == pytest.approx(0.99549, abs=5e-5)


def test_runs_that_share_their_luck_tell_less() -> None:
    """Sessions that are all good or all bad: correlation 1, so a session of five is one run; capped at 4."""
    assert design_effect([(3, 0), (0, 3), (3, 0), (0, 3)]) == pytest.approx(3.0)
    assert design_effect([(5, 0), (0, 5), (5, 0), (0, 5)]) == 4.0
    assert design_effect([(1, 0), (0, 1), (1, 0)]) == 1.0
    assert design_effect([(2, 1), (2, 1), (2, 1)]) == 1.0  # sessions more alike than by chance
    assert design_effect([(3, 0), (3, 0)]) == 1.0
    assert design_effect([]) == 1.0


# --- a stream over time


def followed_to(samples: Sequence[Sample], hours: float, policy: Policy = PAST) -> Mark:
    return followed(samples, Mark(), policy, T0 + int(hours * HOUR))


def test_it_learns_until_there_is_a_past() -> None:
    """With 99 runs before the newest hour nothing is compared, with 100 a drop would be a warning, with 300 an alert."""
    early = followed_to(runs(nine_in_ten(170)), 3)
    warns = followed_to(runs(nine_in_ten(190)), 4)
    known = followed_to(runs(nine_in_ten(430)), 8)

    assert early.drift.standing is Standing.LEARNING
    assert early.drift.known == 60  # the hour that began at two hours knows what came before one hour
    assert warns.drift.standing is Standing.OK
    assert (warns.drift.known, warns.drift.warns) == (120, True)
    assert (known.drift.known, known.drift.warns) == (360, False)


def test_a_drop_is_found_and_over_when_it_is() -> None:
    """Ten hours at nine in ten, an hour and a half at one in two, then nine in ten again."""
    before, during, after = nine_in_ten(600), [n % 2 == 0 for n in range(90)], nine_in_ten(300)
    samples = runs([*before, *during, *after])

    firing = followed_to(samples[:640], 10.7)
    assert firing.standing is Standing.FIRING
    assert firing.causes == ("drop",)
    assert firing.drift.rise_ns == samples[599].at_ns  # the last of the tenths was bad, and then every second
    assert T0 + 10 * HOUR < firing.since_ns < T0 + int(10.6 * HOUR)

    still = followed_to(samples[:690], 11.5)
    assert (still.standing, still.since_ns) == (Standing.FIRING, firing.since_ns)

    over = followed_to(samples, 16.5)
    assert over.standing is Standing.OK
    ((began, ended),) = over.drift.reported
    assert (began, ended) == (firing.drift.rise_ns, over.since_ns)
    assert T0 + int(11.5 * HOUR) < over.since_ns < T0 + int(14 * HOUR)


def test_what_was_reported_is_no_reference() -> None:
    """After the drop the expected rate is what it was before, though a quarter of the runs were bad."""
    before, during = nine_in_ten(600), [n % 2 == 0 for n in range(90)]
    samples = runs([*before, *during, *nine_in_ten(600)])

    assert followed_to(samples[:600], 10).drift.drop is not None
    mark = followed_to(samples, 21.5)
    assert mark.drift.standing is Standing.OK
    ((began, ended),) = mark.drift.reported
    left = [s for s in samples if not began <= s.at_ns <= ended and s.at_ns < T0 + 20 * HOUR]
    assert mark.drift.known == len(left)
    assert mark.drift.drop is not None
    assert mark.drift.drop.expected == pytest.approx(0.88, abs=0.01)


def test_a_lull_ends_nothing_and_is_given_up_in_the_end() -> None:
    """Without runs a drop stays reported; after a day it is given up, which is no recovery."""
    samples = runs([*nine_in_ten(600), *[False] * 30])
    last = samples[-1].at_ns

    night = followed(samples, Mark(), PAST, last + 20 * HOUR)
    given_up = followed(samples, Mark(), PAST, last + 25 * HOUR)
    assert night.standing is Standing.FIRING
    assert given_up.standing is Standing.NO_DATA
    assert given_up.since_ns == last + 24 * HOUR


def test_it_holds_for_a_while() -> None:
    """Good runs in the minute after a drop do not end it before ``hold_seconds``; then they do, without another run."""
    bad = runs([*nine_in_ten(600), *[False] * 12])
    found = followed_to(bad, 10.4)
    assert found.standing is Standing.FIRING
    good = runs([True] * 60, begin=bad[-1].at_ns + S, every=S)
    held = found.since_ns + PAST.hold_ns
    together = [*bad, *(sample for sample in good if sample.at_ns < held)]

    assert followed(together, Mark(), PAST, held - 1).standing is Standing.FIRING
    over = followed(together, Mark(), PAST, held)
    assert (over.standing, over.since_ns) == (Standing.OK, held)


def test_no_data_at_night_is_no_drop() -> None:
    """Five days of nine in ten by day and nothing by night: nothing is ever reported."""
    samples = [sample for day in range(5) for sample in runs(nine_in_ten(300), begin=T0 + day * 24 * HOUR)]
    mark = followed_to(samples, 24 * 5)

    assert mark.drift.standing is Standing.OK
    assert mark.drift.reported == ()


# --- whatever the order


def observations(chance: random.Random, count: int) -> list[list[Observed]]:
    """Runs over some days with a drop in them, each with all of its versions."""
    found = []
    at = T0
    for number in range(count):
        at += chance.randrange(1, 600) * S
        rate = 0.5 if count * 0.6 < number < count * 0.75 else 0.9
        outcomes = [chance.random() < rate for _ in range(chance.choice((1, 1, 1, 2, 3)))]
        found.append(
            [
                Observed(
                    run_id=f"{number:032x}",
                    version=version,
                    judged_ns=at + version * 60 * S,
                    at_ns=at,
                    tenant="default",
                    agent="support",
                    session=str(number // 3),
                    failed=() if good else (("repeats", ""),),
                    decided=frozenset({"repeats"}),
                )
                for version, good in enumerate(outcomes, 1)
            ]
        )
    return found


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**9), st.integers(330, 420))
def test_verdicts_in_any_order_end_in_the_state_of_the_last_verdicts_in_time_order(
    seed: int, count: int
) -> None:
    """Superseded, shuffled, doubled, and asked in between: as if each run's last verdict had been so from the start."""
    chance = random.Random(seed)
    policy = Policy.of(
        AlertSettings(window_seconds=3600, false_alarms_a_week=5, revision_seconds=30 * 86_400)
    )
    history = observations(chance, count)
    every = [version for versions in history for version in versions]
    end = max(version.judged_ns for version in every) + HOUR
    mixed = [*every, *chance.choices(every, k=100)]
    chance.shuffle(mixed)
    final, shuffled, asked = Detector(policy), Detector(policy), Detector(policy)
    for versions in history:
        final.take(versions[-1])
    for version in mixed:
        shuffled.take(version)
    for moment in range(T0, end, (end - T0) // 7):
        for version in mixed:
            if version.judged_ns <= moment:
                asked.take(version)
        asked.tick(moment)
    for version in mixed:
        asked.take(version)
    for detector in (final, shuffled, asked):
        detector.tick(end)

    stream = Stream("default", "support")
    assert shuffled.now[stream] == final.now[stream]
    assert asked.now[stream] == final.now[stream]
    assert final.now[stream].drift.known >= 100


@pytest.mark.parametrize("seed", range(6))
def test_runs_that_come_seconds_late_end_in_the_same_state_without_counting_everything_again(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy agent, looked at every two seconds: some runs are stored after those of the same time were counted, some
    verdicts turn later. Only what is later than a few seconds asks for everything from the start."""
    chance = random.Random(seed)
    policy = Policy.of(AlertSettings(window_seconds=120, false_alarms_a_week=50, reference_settle_seconds=0))
    coming: list[tuple[int, Observed]] = []
    for n in range(900):
        at = T0 + n * S
        bad = chance.random() < (0.6 if 500 < n < 600 else 0.1)
        first = Observed(
            run_id=f"{n:032x}",
            version=1,
            judged_ns=at,
            at_ns=at,
            tenant="default",
            agent="support",
            failed=(("repeats", ""),) if bad else (),
            decided=frozenset({"repeats"}),
            ending=Stop.COMPLETED,
        )
        coming.append((at + int(chance.expovariate(1) * S), first))
        if chance.random() < 0.01:
            turned = replace(
                first, version=2, judged_ns=at + 60 * S, failed=() if bad else (("repeats", ""),)
            )
            coming.append((at + 60 * S, turned))
    coming.sort(key=lambda one: one[0])
    end = T0 + 1000 * S
    final, busy = Detector(policy), Detector(policy)
    for _, seen in coming:
        final.take(seen)
    final.tick(end)
    walked: list[int] = []

    def counted(samples: Any, mark: Mark, policy: Policy, now_ns: int) -> Mark:
        walked.append(sum(mark.at_ns < sample.at_ns <= now_ns for sample in samples))
        return followed(samples, mark, policy, now_ns)

    monkeypatch.setattr(detector_module, "followed", counted)
    place = 0
    for moment in range(T0, end + 1, 2 * S):
        while place < len(coming) and coming[place][0] <= moment:
            busy.take(coming[place][1])
            place += 1
        busy.tick(moment)

    about = [stream for stream in final.now if stream.about != "coverage"]
    assert len(about) == 3
    assert [busy.now[stream] for stream in about] == [final.now[stream] for stream in about]
    turns = sum(seen.version == 2 for _, seen in coming)
    assert sum(walked) < 900 * (12 + 2 * turns)


def test_a_day_that_is_judged_anew_is_taken_back() -> None:
    """A broken check flags a day's runs; when they are judged anew the alert is retracted, and nothing of it is left."""
    policy = Policy.of(AlertSettings(threshold=None, false_alarms_a_week=0.5))
    detector, clean = Detector(policy), Detector(policy)
    good = [version for versions in observations(random.Random(3), 400) for version in versions[-1:]]
    good = [
        Observed(run_id=v.run_id, version=1, judged_ns=v.at_ns or 0, at_ns=v.at_ns, tenant="default",
                 agent="support", failed=(("repeats", ""),) if n % 10 == 9 else (), decided=v.decided)
        for n, v in enumerate(good)
    ]  # fmt: skip
    start = (good[-1].at_ns or 0) + 2 * HOUR
    broken = [
        Observed(run_id=f"b{n:031x}", version=1, judged_ns=start + n * 60 * S, at_ns=start + n * 60 * S,
                 tenant="default", agent="support", failed=(("repeats", ""),), decided=frozenset({"repeats"}))
        for n in range(60)
    ]  # fmt: skip
    anew = [
        Observed(run_id=one.run_id, version=2, judged_ns=start + 3 * HOUR, at_ns=one.at_ns,
                 tenant="default", agent="support", decided=one.decided)
        for one in broken
    ]  # fmt: skip
    for one in [*good, *broken]:
        detector.take(one)
    (fired,) = detector.tick(start + 2 * HOUR)
    assert (fired.status, fired.causes) == (Status.FIRING, ("drop",))
    assert {run.run_id for run in fired.failing} >= {one.run_id for one in broken}

    for one in anew:
        detector.take(one)
    (over,) = detector.tick(start + 4 * HOUR)
    for one in [*good, *anew]:
        clean.take(one)
    assert clean.tick(start + 4 * HOUR) == []
    assert (over.status, over.retracted, over.alert) == (Status.RESOLVED, True, fired.alert)
    stream = Stream("default", "support")
    assert detector.now[stream] == clean.now[stream]


# --- a new version


def test_looks_double_and_spend_half_of_what_is_left() -> None:
    """At 20, 40, 80, 160 runs; together never more than 1 %."""
    assert [look(n) for n in (19, 20, 21, 40, 80, 100, 160)] == [None, 1, None, 2, 3, None, 4]
    assert required(1) == pytest.approx(0.995)
    assert sum(1 - required(n) for n in range(1, 40)) == pytest.approx(canary.ALPHA)


def test_the_probability_that_a_version_is_worse() -> None:
    """Equal versions are worse than the other by any amount with one half; a certain loss is certain."""
    assert probability_worse(Tally(good=90, bad=10), Tally(good=90, bad=10), margin=0.0) == pytest.approx(0.5)
    assert probability_worse(Tally(good=0, bad=40), Tally(good=900, bad=100)) > 0.999999
    assert probability_worse(Tally(good=40, bad=0), Tally(good=900, bad=100)) < 1e-3
    # 4,000,000 draws of both give .7359
    assert probability_worse(Tally(good=16, bad=4), Tally(good=180, bad=20)) == pytest.approx(0.736, abs=1e-3)


def test_a_version_that_fails_half_of_the_time_is_stopped_at_the_first_look() -> None:
    """10 of 20 against 900 of 1,000; at 21 nobody looks; with 19 old runs nothing is compared."""
    old = Tally(good=900, bad=100)

    assert regressed(Tally(good=10, bad=10), old)
    assert not regressed(Tally(good=11, bad=10), old)
    assert not regressed(Tally(good=18, bad=2), old)
    assert not regressed(Tally(good=10, bad=10), Tally(good=19, bad=0))


# --- nothing came, or nothing could be judged

WEEK = 168 * HOUR


def hourly(begin: int, hours: int, each: int, *, bad: bool = False) -> list[Sample]:
    return runs([not bad] * (hours * each), begin=begin, every=HOUR // each)


def test_how_many_runs_a_time_should_bring() -> None:
    """The same hour brought 8, 10 and 40 runs in the weeks before: 10. A week that is not known is not empty."""
    samples = sorted(
        sample for week, each in ((1, 8), (2, 10), (3, 40)) for sample in hourly(T0 - week * WEEK, 1, each)
    )

    assert (
        expected_runs(samples, T0 - 1, T0 + HOUR) == 9.0
    )  # the third week began with the first sample: unknown
    older = [Sample(T0 - 4 * WEEK - S, "0", False), *samples]
    assert expected_runs(older, T0 - 1, T0 + HOUR) == 9.0  # of 8, 10, 40 and none
    assert expected_runs([], T0, T0 + HOUR) == 0.0
    assert expected_runs(samples[-5:], T0, T0 + HOUR) == 0.0


def test_silence_is_an_alert_where_it_is_unlikely() -> None:
    """At ten runs an hour by day and none by night, forty minutes of silence by day are unlikely, a night is not."""
    week = [s for day in range(8) for s in hourly(T0 + day * 24 * HOUR, 12, 10)]
    evening, noon = T0 + (7 * 24 + 12) * HOUR, T0 + (7 * 24 + 6) * HOUR
    until_noon = [sample for sample in week if sample.at_ns <= noon]

    assert not absent(week, evening + 11 * HOUR)
    assert absent(week, evening + 13 * HOUR)
    assert not absent(until_noon, noon + 36 * 60 * S - 1)  # six expected: e^-6 is 1 in 400
    assert absent(until_noon, noon + 42 * 60 * S)  # seven: 1 in 1,100
    assert not absent([], noon)


def test_too_few_verdicts_are_an_alert_where_it_is_certain() -> None:
    """13 of 20 may still be 80 %, 12 of 20 may not; of 19 nothing is said; the last 20 count, however old."""
    judged, not_judged = hourly(T0, 1, 20), hourly(T0 + HOUR, 1, 20, bad=True)

    assert not uncovered([*judged[:13], *not_judged[:7]], T0 + 2 * HOUR, 2 * HOUR)
    assert uncovered([*judged[:12], *not_judged[:8]], T0 + 2 * HOUR, 2 * HOUR)
    assert not uncovered(not_judged[:19], T0 + 2 * HOUR, 2 * HOUR)
    assert uncovered([*judged, *not_judged], T0 + 100 * HOUR, HOUR)


def test_while_runs_cannot_be_judged_what_the_others_say_is_no_news() -> None:
    """Thirty runs without a verdict beside ten that are flagged: one alert, on coverage; the other when that is over."""
    detector = Detector(Policy.of(AlertSettings(window_seconds=3600, min_runs=5)))

    def run(number: int, minute: float, decided: bool, bad: bool = False) -> Observed:
        at = T0 + int(minute * 60) * S
        return Observed(
            run_id=f"{number:032x}", version=1, judged_ns=at, at_ns=at if decided else None, tenant="default",
            agent="support", failed=(("repeats", ""),) if bad else (),
            decided=frozenset({"repeats"} if decided else ()),
        )  # fmt: skip

    for number in range(40):
        detector.take(run(number, number / 4, decided=number % 4 == 0, bad=number % 4 == 0))
    (blind,) = detector.tick(T0 + 11 * 60 * S)
    assert (blind.stream.about, blind.causes, blind.status) == ("coverage", ("coverage",), Status.FIRING)
    assert (blind.count.flagged, blind.count.judged) == (30, 40)

    for number in range(40, 200):
        detector.take(run(number, 11 + (number - 40) / 10, decided=True, bad=True))
    over, fired = sorted(
        detector.tick(T0 + 28 * 60 * S), key=lambda change: change.status.value, reverse=True
    )
    assert (over.stream.about, over.status) == ("coverage", Status.RESOLVED)
    assert (fired.stream.about, fired.status, fired.causes) == ("", Status.FIRING, ("objective",))


def test_a_worse_version_is_found_at_its_first_look_and_taken_back_when_it_is_not() -> None:
    """A hundred good runs of 1.0; 2.0 fails ten of its first twenty, and is as good as 1.0 after a hundred and sixty."""
    old = [Sample(T0 + n * S, f"{n:032x}", n % 20 == 0, "", "1.0") for n in range(100)]
    new = [
        Sample(T0 + (100 + n) * S, f"{100 + n:032x}", n < 20 and n % 2 == 0, "", "2.0") for n in range(170)
    ]

    def at(count: int) -> Mark:
        samples = [*old, *new[:count]]
        return followed(samples, Mark(), PAST, samples[-1].at_ns)

    assert at(19).causes == ()
    assert at(20).causes == ("version",)
    assert at(20).since_ns == new[19].at_ns
    assert at(79).causes == (
        "version",
    )  # nobody looks between 40 and 80, and 10 of 40 are still too many at 40
    assert at(160).causes == ()
    mixed = sorted([*old, *new[:20], *[s._replace(at_ns=s.at_ns + 500 * S) for s in old]])
    assert followed(mixed, Mark(), PAST, mixed[-1].at_ns).causes == ("version",)
