"""S7: a fix is verified by so many green runs that an agent which still fails would hardly have passed them all.

Let the agent that failed do so with chance q in one run. It passes n runs by luck with chance (1 − q)ⁿ, so n
is the smallest number with (1 − q)ⁿ below ``luck``. For q stands the one-sided 95 % Clopper-Pearson lower
bound of the measured rate, so that few red runs ask for more green ones: 5 of 5 red give q ≥ 0.55 and 4 runs,
4 of 5 give 0.34 and 8. Both errors together are at most 5 % + ``luck`` (Bonferroni).
Sources: Clopper and Pearson, The Use of Confidence or Fiducial Limits (1934); Yao et al., τ-bench (2024),
for pass^k.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from redfirst.evaluators import ConfigurationError
from redfirst.evaluators.statistics.planning import greens_against_luck
from redfirst.evaluators.statistics.proportions import clopper_pearson, clopper_pearson_lower
from redfirst.evaluators.statistics.repetition import pass_hat_k
from redfirst.replay.asked import INFRA_RETRIES, Asked, Mode
from redfirst.replay.divergence import first_divergence
from redfirst.replay.outcome import Result, RunOutcome
from redfirst.replay.project import Project
from redfirst.replay.report import Level
from redfirst.replay.running import Outcome, run_all
from redfirst.replay.scenario import load
from redfirst.replay.standing import Standing, events_digest, standing
from redfirst.replay.upkeep import Upkeep, upkeep

LEAST_RUNS = 8
"""Green runs asked for in ``tools`` mode at least."""
MOST_RUNS = 100
"""Runs made at most unless another number is asked for."""
LUCK = 0.05
MOST_WITHOUT_VERDICT = 0.2
"""Share of runs that may end without a verdict before the others say nothing."""


class Verdict(StrEnum):
    """Whether the incident is over."""

    VERIFIED = "VERIFIED"
    NOT_FIXED = "NOT_FIXED"
    NO_VERDICT = "NO_VERDICT"

    @property
    def exit_code(self) -> int:
        """0 verified, 1 a run was red, 3 nothing can be said."""
        return {"VERIFIED": 0, "NOT_FIXED": 1}.get(self.value, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedRate:
    """How often the agent failed before the fix."""

    low: float
    """What it is at least: the one-sided 95 % Clopper-Pearson bound, or the rate that was given."""
    source: str
    red: int | None = None
    runs: int | None = None
    """``None`` where the rate was given and not measured."""

    @classmethod
    def measured(cls, red: int, runs: int, source: str) -> RedRate:
        """From the runs that failed this way among those with a verdict."""
        return cls(low=clopper_pearson_lower(red, runs), source=source, red=red, runs=runs)

    def needed(self, luck: float) -> int:
        """The green runs that an agent failing this often reaches with a chance below ``luck``."""
        return 1 if self.low >= 1 - luck else greens_against_luck(self.low, luck=luck)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassHat:
    """The chance that all of k runs pass, with an exact 95 % interval."""

    k: int
    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What ``verify`` found of one scenario."""

    scenario: str
    mode: Mode
    verdict: Verdict
    because: str
    upkeep: Upkeep
    rate: RedRate | None = None
    needed: int | None = None
    """Green runs that the rate asks for."""
    luck: float | None = None
    """The chance that an agent which still fails this often passes all the green runs seen."""
    outcome: Outcome | None = None
    pass_hat: tuple[PassHat, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """What is to be verified, and by what."""

    agent: str | None = None
    mode: Mode | None = None
    """That of the proof when not given."""
    before: str | None = None
    """``module:factory`` of the agent that fails: its red rate is measured anew."""
    rate: float | None = None
    """A red rate known from elsewhere."""
    runs: int | None = None
    most: int = MOST_RUNS
    luck: float = LUCK
    infra_retries: int = INFRA_RETRIES

    def require_sense(self) -> None:
        """Let only what can be done through.

        Raises:
            ConfigurationError: a number that is none, or two sources of the rate.
        """
        for option, number in (("--runs", self.runs), ("--most", self.most)):
            if number is not None and number < 1:
                raise ConfigurationError(f"{option} {number}: give a number of at least 1.")
        if self.rate is not None and not 0 < self.rate <= 1:
            raise ConfigurationError(f"--rate {self.rate}: give a share above 0 and at most 1.")
        if self.rate is not None and self.before is not None:
            raise ConfigurationError(
                "--rate and --before: give one of them, a known rate or an agent to measure."
            )
        if not 0 < self.luck < 1:
            raise ConfigurationError(f"--luck {self.luck}: give a chance between 0 and 1.")


def verify(path: Path, project: Project, fix: Fix, *, at: float, workers: int = 2) -> Verification:
    """Run the agent as it is now until its green runs say that the incident is over, or a red one that it is not.

    Args:
        path: the scenario's folder.
        project: where agents are configured and runs are kept.
        fix: what is to be verified.
        at: Unix seconds.
        workers: how many processes at once.

    Raises:
        ConfigurationError: the scenario, an agent's reference or a number is wrong.
        CannotWrite: the runs cannot be kept.
    """
    fix.require_sense()
    stands = standing(load(path))
    mode = fix.mode or (Mode.TOOLS if stands.level is Level.LIVE else Mode.RECORDED)
    verifying = _Verifying(path, project, fix, at, workers, stands, mode)
    if not stands.proven:
        return verifying.blank(f"{stands.because}: what was not seen to fail cannot be seen to be fixed")
    return verifying.recorded() if mode is Mode.RECORDED else verifying.live()


@dataclass(frozen=True, slots=True)
class _Verifying:
    path: Path
    project: Project
    fix: Fix
    at: float
    workers: int
    stands: Standing
    mode: Mode

    def blank(self, because: str = "") -> Verification:
        """Nothing is known."""
        return Verification(
            scenario=load(self.path).scenario.id,
            mode=self.mode,
            verdict=Verdict.NO_VERDICT,
            because=because,
            upkeep=upkeep(self.path, at=self.at),
        )

    def _play(self, agent: str | None, runs: int) -> Outcome:
        asked = Asked(agent=agent, mode=self.mode, runs=runs, infra_retries=self.fix.infra_retries)
        (outcome,) = run_all([(self.path, asked)], self.project, at=self.at, workers=self.workers)
        return outcome

    # -- from the tape

    def recorded(self) -> Verification:
        """Twice: the same code on the same tape does the same, or nothing can be said."""
        outcome = self._play(self.fix.agent, max(2, self.fix.runs or 2))
        found = replace(self.blank(outcome.said), outcome=outcome)
        if outcome.outcome is RunOutcome.RED:
            return self._not_fixed(found, outcome)
        if outcome.outcome is RunOutcome.NO_VERDICT:
            return found
        first, *others = (result.execution for result in outcome.results)
        for other in others:
            divergence = first_divergence(first, other)
            if divergence is not None:
                return replace(found, because=f"nondeterministic: {divergence.said}")
        if events_digest(first) in self.stands.red_events:
            return replace(
                found,
                because="the agent did what it did when it failed, and is judged otherwise: nothing was decided anew",
            )
        return replace(
            found,
            verdict=Verdict.VERIFIED,
            because=f"green {len(outcome.results)} times with equal events; {first.tape_decisions} decisions by the "
            f"tape, {len(first.live_decisions)} live",
        )

    # -- with the model live

    def live(self) -> Verification:
        """So many green runs as the red rate asks for."""
        rate = self._rate()
        if isinstance(rate, str):
            return self.blank(rate)
        needed = rate.needed(self.fix.luck)
        if needed > max(self.fix.most, self.fix.runs or 0):
            because = (
                f"{needed} green runs are needed to tell a fix from luck, and at most {self.fix.most} are made; "
                f"raise --most, or measure the rate with more runs"
            )
            return replace(self.blank(because), rate=rate, needed=needed)
        outcome = self._play(self.fix.agent, self.fix.runs or max(LEAST_RUNS, needed))
        green, lost = outcome.count(RunOutcome.GREEN), outcome.count(RunOutcome.NO_VERDICT)
        found = replace(
            self.blank(),
            rate=rate,
            needed=needed,
            outcome=outcome,
            luck=(1 - rate.low) ** green,
            pass_hat=pass_hats(green, outcome.valid),
        )
        if outcome.outcome is RunOutcome.RED:
            return self._not_fixed(found, outcome)
        if green < needed or lost > MOST_WITHOUT_VERDICT * len(outcome.results):
            why = f"; the first without a verdict: {outcome.said}" if lost else ""
            return replace(
                found, because=f"{green} of {len(outcome.results)} runs are green, {needed} are needed{why}"
            )
        return replace(
            found, verdict=Verdict.VERIFIED, because=f"{green} of {outcome.valid} live runs are green"
        )

    def _not_fixed(self, found: Verification, outcome: Outcome) -> Verification:
        red = [result for result in outcome.results if result.outcome is RunOutcome.RED]
        again = sum(map(self._fails, red))
        how = f"{again} as in production" if again else "none as in production: a failure of its own"
        if self.mode is Mode.RECORDED:
            how = f"{how}. The tape is the old model's: verify a fix of the prompt or the model with --mode tools"
        return replace(
            found, verdict=Verdict.NOT_FIXED, because=f"{len(red)} of {outcome.valid} runs are red, {how}"
        )

    def _rate(self) -> RedRate | str:
        """The red rate before the fix, or why it is not known."""
        if self.fix.rate is not None:
            return RedRate(low=self.fix.rate, source="given")
        if self.fix.before is not None:
            before = self._play(self.fix.before, self.fix.runs or LEAST_RUNS)
            red = sum(self._fails(result) for result in before.results)
            if red == 0:
                return (
                    f"{self.fix.before} failed this way in 0 of {before.valid} live runs ({before.said}): "
                    f"there is nothing to be fixed that could be seen"
                )
            return RedRate.measured(red, before.valid, f"{self.fix.before}, just now")
        if self.stands.rate is not None:
            return RedRate.measured(*self.stands.rate, source="the live proof")
        return (
            "the red rate was never measured: name the agent that fails with --before, prove it with --level live, "
            "or give a rate known from elsewhere with --rate"
        )

    def _fails(self, result: Result) -> bool:
        return result.fails_as(self.stands.signature)


def pass_hats(green: int, valid: int) -> tuple[PassHat, ...]:
    """pass^k of one scenario for k = 1, 2, 4, 8 … as far as the runs reach; none without runs.

    The estimate is the unbiased ``C(c,k)/C(n,k)``. Runs of one scenario are draws of one chance p, and pass^k is
    pᵏ, so the ends of the exact interval of p, each to the k-th power, are those of pass^k.
    """
    if valid == 0:
        return ()
    interval = clopper_pearson(green, valid)
    out: list[PassHat] = []
    k = 1
    while k <= valid:
        estimate = pass_hat_k([valid], [green], k)
        if estimate is None:
            break
        out.append(PassHat(k=k, estimate=estimate, low=interval.low**k, high=interval.high**k))
        k *= 2
    return tuple(out)
