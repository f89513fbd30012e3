"""Scenarios as pytest items: RED fails, no verdict is an error, a draft is skipped and says why.

Nothing of the agent is imported at collection; each item executes it in a process of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from redfirst.replay.running import Outcome

SCENARIO_FILE = "scenario.yaml"
_MARK = re.compile(rb"""^[\s{]*["']?schema["']?\s*:\s*["']?redfirst\.scenario/""", re.MULTILINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the plugin."""
    group = parser.getgroup("redfirst", "scenarios that have been seen to fail")
    group.addoption(
        "--redfirst-agent", metavar="MODULE:FACTORY", help="the agent, instead of the configured one"
    )
    group.addoption(
        "--redfirst-mode",
        choices=("recorded", "tools"),
        default="recorded",
        help="what answers: the tape, or a live model",
    )
    group.addoption(
        "--redfirst-n", type=int, metavar="N", help="runs of each scenario (1 recorded, 5 in tools mode)"
    )
    group.addoption("--redfirst-draft", action="store_true", help="run scenarios that are not proven as well")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.File | None:
    """Collect ``scenario.yaml`` where it is one of ours."""
    if file_path.name != SCENARIO_FILE:
        return None
    if _MARK.search(file_path.read_bytes()) is None:
        return None  # another tool's
    collected: pytest.File = ScenarioFile.from_parent(parent, path=file_path)
    return collected


class ScenarioFile(pytest.File):
    """One ``scenario.yaml``."""

    def collect(self) -> Iterator[pytest.Item]:
        """One item: repetitions stay inside it, so that counts of tests stay true."""
        mode = self.config.getoption("--redfirst-mode")
        yield ScenarioItem.from_parent(self, name=f"{self.path.parent.name}[{mode}]")


class ScenarioRed(Exception):
    """The agent failed the scenario."""


class ScenarioItem(pytest.Item):
    """One scenario, run by the agent as it is now."""

    result: Outcome | None = None

    def setup(self) -> None:
        """Execute the agent: what cannot be judged is an error of the test, not a failure of the agent."""
        import time

        from redfirst.evaluators import RedfirstError
        from redfirst.replay.asked import Mode
        from redfirst.replay.outcome import RunOutcome
        from redfirst.replay.project import load_project
        from redfirst.replay.running import run
        from redfirst.replay.scenario import load
        from redfirst.replay.standing import standing

        folder, said = self.path.parent, ""
        try:
            state = standing(load(folder))
            if not state.proven and not self.config.getoption("--redfirst-draft"):
                pytest.skip(f"{state.because}; prove it with: redfirst prove {folder.name}")
            self.result = run(
                folder,
                load_project(folder),
                at=time.time(),
                agent=self.config.getoption("--redfirst-agent"),
                mode=Mode(self.config.getoption("--redfirst-mode")),
                runs=self.config.getoption("--redfirst-n"),
            )
        except RedfirstError as problem:
            said = str(problem)
        if self.result is None:  # outside of the handler, whose exception would be shown a second time
            pytest.fail(said, pytrace=False)
        lost = [r for r in self.result.results if r.outcome is RunOutcome.NO_VERDICT]
        if lost and not self.result.count(RunOutcome.RED):
            # failing in setup is reported as an error (E), which is what a harness fault is
            pytest.fail(
                f"{len(lost)} of {len(self.result.results)} run(s) gave no verdict: {lost[0].because}",
                pytrace=False,
            )

    def runtest(self) -> None:
        """Fail when any run was red."""
        from redfirst.replay.account import account
        from redfirst.replay.outcome import RunOutcome

        if self.result is None:
            raise AssertionError("setup ran")
        red = [r for r in self.result.results if r.outcome is RunOutcome.RED]
        if red:
            said = "\n".join(account(red[0]))
            raise ScenarioRed(f"{len(red)} of {len(self.result.results)} run(s) RED\n{said}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Our own endings in their own words, without a traceback through the plugin."""
        if isinstance(excinfo.value, ScenarioRed):
            return f"{self.path.parent.name}: {excinfo.value}"
        return super().repr_failure(excinfo, style=style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the item stands in reports."""
        return self.path, None, self.name
