"""A fix is verified by as many green runs as the red rate before it asks for."""

from __future__ import annotations

import pytest

from redfirst.evaluators import ConfigurationError
from redfirst.replay.asked import Mode
from redfirst.replay.proof import prove
from redfirst.replay.report import Level
from redfirst.replay.verifying import Fix, RedRate, Verdict, pass_hats, verify

from .conftest import Place

VERIFY = (
    "  verify:\n    effect: read\n    responses:\n"
    "      - {when: {customer: C-1}, return: {customer: C-1, verified: true}, source: authored, times: any}\n"
)


@pytest.fixture
def answered(place: Place) -> Place:
    """The scenario with an answer for the call that the fix adds."""
    path = place.scenario / "scenario.yaml"
    path.write_text(path.read_text().replace("checks:\n", VERIFY + "checks:\n", 1))
    return place


@pytest.mark.parametrize(
    ("red", "runs", "low", "needed"),
    [
        (5, 5, 0.05 ** (1 / 5), 4),  # Clopper-Pearson with all red has the closed form 0.05^(1/n)
        (4, 5, 0.3426, 8),  # 5p⁴ − 4p⁵ = 0.05
        (8, 8, 0.05 ** (1 / 8), 3),
        (1, 20, 1 - 0.95 ** (1 / 20), 1169),  # P(at least one red) = 0.05; 20 · ln .05 / ln .95 = 1168.1
    ],
)
def test_fewer_red_runs_ask_for_more_green_ones(red: int, runs: int, low: float, needed: int) -> None:
    """The number is the smallest n with (1 − low)ⁿ < 0.05."""
    rate = RedRate.measured(red, runs, "a test")

    assert rate.low == pytest.approx(low, abs=5e-5)
    assert rate.needed(0.05) == needed
    assert (1 - rate.low) ** needed < 0.05 <= (1 - rate.low) ** (needed - 1)


def test_pass_hat_has_the_ends_of_the_exact_interval_to_the_kth_power() -> None:
    """8 of 8: low is 0.025^(1/8); 6 of 8: pass^2 is 15 of 28 pairs."""
    all_green, some = pass_hats(8, 8), pass_hats(6, 8)

    assert [p.k for p in all_green] == [1, 2, 4, 8]
    assert (all_green[0].low, all_green[0].high) == (pytest.approx(0.025 ** (1 / 8)), 1.0)
    assert (all_green[3].estimate, all_green[3].low) == (1.0, pytest.approx(0.025))
    assert some[1].estimate == pytest.approx(15 / 28)
    assert pass_hats(0, 0) == ()


def test_a_live_proof_sizes_the_runs_that_verify_the_fix(answered: Place) -> None:
    """5 of 5 red before: 4 green are needed, 8 are made, and the fixed agent passes all of them."""
    report = prove(answered.scenario, answered.project, level=Level.LIVE, control="shop:guarded")
    assert report.proven, report.because

    fixed = verify(answered.scenario, answered.project, Fix(agent="shop:guarded"), at=0.0)
    broken = verify(answered.scenario, answered.project, Fix(runs=4), at=0.0)

    assert (fixed.verdict, fixed.mode, fixed.needed) == (Verdict.VERIFIED, Mode.TOOLS, 4), fixed.because
    assert fixed.rate is not None
    assert (fixed.rate.red, fixed.rate.runs, fixed.rate.source) == (5, 5, "the live proof")
    assert fixed.luck == pytest.approx((1 - 0.05 ** (1 / 5)) ** 8)
    assert [p.k for p in fixed.pass_hat] == [1, 2, 4, 8]
    assert (broken.verdict, broken.because) == (Verdict.NOT_FIXED, "4 of 4 runs are red, 4 as in production")


def test_too_few_green_runs_and_an_unknown_rate_are_no_pass(answered: Place) -> None:
    """At a red rate of one half four green runs are luck in 6 of 100 cases, five in 3."""
    prove(answered.scenario, answered.project)
    guarded = "shop:guarded"

    def verdict(**more: object) -> tuple[Verdict, str]:
        fix = Fix(agent=guarded, mode=Mode.TOOLS, **more)  # type: ignore[arg-type]
        one = verify(answered.scenario, answered.project, fix, at=0.0)
        return one.verdict, one.because

    assert verdict(rate=0.5, runs=4) == (Verdict.NO_VERDICT, "4 of 4 runs are green, 5 are needed")
    assert verdict(rate=0.5, runs=5)[0] is Verdict.VERIFIED
    assert "was never measured" in verdict()[1]
    assert verdict(rate=0.01)[1].startswith("299 green runs are needed")
    assert "failed this way in 0 of 2 live runs" in verdict(before=guarded, runs=2)[1]
    with pytest.raises(ConfigurationError, match="--rate 0: give a share above 0"):
        verdict(rate=0)


@pytest.mark.parametrize("option", ["runs", "most"])
def test_a_number_of_runs_that_is_none_is_refused(place: Place, option: str) -> None:
    """From the tape as well, where two runs would do."""
    wrong = Fix(mode=Mode.RECORDED, **{option: 0})  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=f"--{option} 0: give a number of at least 1"):
        verify(place.scenario, place.project, wrong, at=0.0)


def test_from_the_tape_the_same_code_does_the_same_or_nothing_is_said(answered: Place) -> None:
    """Green twice with equal events; a draft, a miss and a run that parts from its twin give no verdict."""
    draft = verify(answered.scenario, answered.project, Fix(agent="shop:guarded"), at=0.0)
    prove(answered.scenario, answered.project, control="shop:guarded")
    fixed = verify(answered.scenario, answered.project, Fix(agent="shop:guarded"), at=0.0)
    broken = verify(answered.scenario, answered.project, Fix(), at=0.0)
    missed = verify(answered.scenario, answered.project, Fix(agent="shop:off_tape"), at=0.0)

    assert (draft.verdict, "draft" in draft.because) == (Verdict.NO_VERDICT, True)
    assert (fixed.verdict, fixed.mode) == (Verdict.VERIFIED, Mode.RECORDED), fixed.because
    assert "equal events" in fixed.because
    assert broken.verdict is Verdict.NOT_FIXED
    assert "verify a fix of the prompt or the model with --mode tools" in broken.because
    assert (missed.verdict, "Not on tape" in missed.because) == (Verdict.NO_VERDICT, True)
