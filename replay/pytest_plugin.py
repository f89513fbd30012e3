"""Scenarios as pytest items: RED fails, no verdict is an error, a draft is skipped, a quarantined red is an xfail.

Nothing of the agent is imported at collection; each item executes it in a process of its own.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from redfirst.replay.asked import Asked
    from redfirst.replay.running import Outcome

SCENARIO_FILE = "scenario.yaml"
PROPERTY = "redfirst"
_MARK = re.compile(rb"""^[\s{]*["']?schema["']?\s*:\s*["']?redfirst\.scenario/""", re.MULTILINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the plugin."""
    group = parser.getgroup("redfirst", "scenarios that have been seen to fail")
    group.addoption(
        "--redfirst-agent", metavar="MODULE:FACTORY", help="the agent, instead of the configured one"
    )
    group.addoption(
        "--redfirst-mode",
        choices=("recorded", "tools"),  # what model mode finds is no failure of the agent
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


class ScenarioItem(pytest.Item):
    """One scenario, run by the agent as it is now."""

    outcome: Outcome | None = None

    def setup(self) -> None:
        """Execute the agent: what cannot be judged is an error of the test, not a failure of the agent."""
        from redfirst.evaluators import RedfirstError
        from redfirst.evaluators.printable import printable
        from redfirst.replay.asserting import ScenarioRed, SetAside, played

        said, aside, late = "", None, False
        try:
            self.outcome = played(
                self.path.parent,
                asked=self._asked(),
                drafts=self.config.getoption("--redfirst-draft"),
                workers=1 if hasattr(self.config, "workerinput") else 2,
            )
        except SetAside as problem:
            aside = problem
        except ScenarioRed as problem:
            said, late = str(problem), True
        except RedfirstError as problem:
            said = printable(str(problem))
        # outside of the handlers, whose exceptions would be shown a second time
        if aside is not None:
            kind = "quarantined" if aside.outcome is not None else "void" if aside.void else "draft"
            self._tell(aside.outcome, kind, notes=str(aside) if aside.void else "")
            (pytest.skip if aside.outcome is None else pytest.xfail)(str(aside))
        self._tell(self.outcome, "overdue" if late else "NO_VERDICT")
        if self.outcome is None:
            pytest.fail(said, pytrace=False)  # failing in setup is reported as an error (E)

    def _asked(self) -> Asked:
        from redfirst.replay.asked import Asked, Mode

        return Asked(
            agent=self.config.getoption("--redfirst-agent"),
            mode=Mode(self.config.getoption("--redfirst-mode")),
            runs=self.config.getoption("--redfirst-n"),
        )

    def _tell(self, outcome: Outcome | None, otherwise: str, *, notes: str = "") -> None:
        """Put the outcome on the reports: they travel from a worker to the terminal and into JUnit XML."""
        from redfirst.replay.asserting import rate

        kind = otherwise if outcome is None or otherwise == "quarantined" else outcome.outcome.value
        told = {"name": self.path.parent.name, "kind": kind, "rate": "", "notes": notes}
        if outcome is not None:
            told |= {"rate": rate(outcome), "notes": "\n".join(outcome.upkeep.notes)}
        self.user_properties.append((PROPERTY, json.dumps(told)))

    def runtest(self) -> None:
        """Fail when any run was red."""
        from redfirst.replay.asserting import assert_green

        if self.outcome is None:
            raise AssertionError("setup ran")
        assert_green(self.outcome)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Our own endings in their own words, without a traceback through the plugin."""
        from redfirst.replay.asserting import ScenarioRed

        if isinstance(excinfo.value, ScenarioRed):
            return f"{self.path.parent.name}: {excinfo.value}"
        return super().repr_failure(excinfo, style=style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the item stands in reports."""
        return self.path, None, self.name


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was seen of the scenarios, and what does not count: told on every run."""
    found: dict[str, dict[str, str]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, told in getattr(report, "user_properties", ()):
                if name == PROPERTY:
                    found[report.nodeid] = json.loads(str(told))
    if not found:
        return
    kinds = Counter(told["kind"] for told in found.values())
    drafts = kinds["draft"] + kinds["void"]
    terminalreporter.section("redfirst")
    terminalreporter.write_line(
        f"{', '.join(f'{kinds[kind]} {kind}' for kind in ('RED', 'GREEN', 'NO_VERDICT'))}; "
        f"{drafts} draft{'' if drafts == 1 else 's'} skipped"
        f"{' ({} void: changed since its proof)'.format(kinds['void']) if kinds['void'] else ''}; "
        f"{kinds['quarantined']} quarantined"
        f"{'; {} with a quarantine that ran out'.format(kinds['overdue']) if kinds['overdue'] else ''}"
    )
    for told in found.values():
        for line in [told.get("rate", ""), *told.get("notes", "").splitlines()]:
            if line:
                terminalreporter.write_line(f"{told['name']}: {line}")
