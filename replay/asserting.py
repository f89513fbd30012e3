"""A scenario in a test: played, then asserted to be green. What cannot be judged is an error of the test.

For pytest and unittest alike; the plugin collects scenarios without a file.
"""

from __future__ import annotations

import time
from pathlib import Path
from unittest import SkipTest

from redfirst.evaluators import RedfirstError
from redfirst.evaluators.printable import printable
from redfirst.evaluators.statistics.proportions import wilson
from redfirst.replay.account import account
from redfirst.replay.asked import Asked
from redfirst.replay.outcome import RunOutcome
from redfirst.replay.project import load_project
from redfirst.replay.running import Outcome, run_all
from redfirst.replay.scenario import load
from redfirst.replay.standing import standing
from redfirst.replay.upkeep import upkeep

__all__ = ["Asked", "NoVerdict", "ScenarioRed", "SetAside", "assert_green", "played"]


class NoVerdict(RedfirstError):
    """A scenario was run and nothing can be said of the agent."""

    exit_code = 3


class ScenarioRed(AssertionError):
    """The agent failed a scenario."""


class SetAside(SkipTest):
    """A scenario that does not count: a draft, or one in quarantine that is not green."""

    def __init__(self, because: str, outcome: Outcome | None = None, *, void: bool = False) -> None:
        super().__init__(because)
        self.void = void
        """Whether it was proven once, as something else than it is now."""
        self.outcome = outcome
        """What was seen of it all the same; ``None`` where it was not run."""


def played(path: Path, *, asked: Asked | None = None, drafts: bool = False, workers: int = 2) -> Outcome:
    """Run a scenario against the project's agent as it is now.

    Args:
        path: the scenario's folder.
        asked: the agent, the mode, how often; from the tape, once, when not given.
        drafts: run scenarios that are not proven as well.
        workers: how many processes at once.

    Raises:
        SetAside: it is a draft, or in quarantine and not green.
        NoVerdict: no run is red, and one has no verdict.
        ScenarioRed: it stayed in quarantine for too long.
        ConfigurationError: the scenario or the agent's reference is wrong.
    """
    at, state = time.time(), standing(load(path))
    if not state.gates and not drafts:
        raise SetAside(f"{state.because}; prove it with: redfirst prove {path.name}", void=state.void)
    overdue = upkeep(path, at=at).overdue
    if overdue is not None:
        raise ScenarioRed(f"its quarantine ended on {overdue.until}: repair it, or take the quarantine away")
    work = [(path, asked or Asked())]
    (outcome,) = run_all(work, load_project(path), at=at, workers=workers)
    held = outcome.upkeep.quarantine
    if held is not None and outcome.outcome is not RunOutcome.GREEN:
        raise SetAside(
            printable(
                f"quarantined until {held.until} by {held.owner} ({held.reason}): {outcome.outcome.value}, {outcome.said}"
            ),
            outcome,
        )
    if outcome.outcome is RunOutcome.NO_VERDICT:
        raise NoVerdict(
            f"{outcome.count(RunOutcome.NO_VERDICT)} of {len(outcome.results)} run(s) gave no verdict: "
            f"{printable(outcome.said)}"
        )
    return outcome


def assert_green(outcome: Outcome) -> None:
    """Fail when any run was red, and say why.

    Raises:
        ScenarioRed: with the rule, the subject and the calls around it.
    """
    red = outcome.count(RunOutcome.RED)
    if red:
        said = "\n".join(map(printable, account(outcome.worst)))
        raise ScenarioRed(f"{red} of {len(outcome.results)} run(s) RED\n{said}")


def rate(outcome: Outcome) -> str:
    """How many of several runs are green, with the interval; empty for one run, which is no rate."""
    if len(outcome.results) < 2 or outcome.valid == 0:
        return ""
    green = outcome.count(RunOutcome.GREEN)
    share = wilson(green, outcome.valid)
    return f"green {green} of {outcome.valid} runs, Wilson 95 % [{share.low:.2f}, {share.high:.2f}]"
