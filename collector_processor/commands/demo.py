"""``redfirst demo``: one day of a support agent, from flagged runs to tests that have been seen to fail."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from redfirst.collector_processor.commands.demo_day import FIXED, SHOP, TRACES, play
from redfirst.collector_processor.commands.demo_wire import Wire, can_serve
from redfirst.collector_processor.commands.freeze import passing_run
from redfirst.collector_processor.recorded.in_files import RunsInFiles
from redfirst.collector_processor.recorded.sources import Recorded, recorded_runs
from redfirst.collector_processor.rules_file import checks_of
from redfirst.collector_processor.terminal import WIDTH, Screen, fit
from redfirst.evaluators import RedfirstError, Stop, flagged
from redfirst.evaluators.check import Check
from redfirst.replay.asked import Mode
from redfirst.replay.freezing import RecordedRun, freeze
from redfirst.replay.outcome import RunOutcome
from redfirst.replay.project import Project, load_project
from redfirst.replay.proof import prove
from redfirst.replay.report import Level, Report
from redfirst.replay.running import Outcome, run

HEALTHY = "healthy"
RARE = "rare_slip"
IN_CODE = frozenset({"dropped_guard", "retried_refund", "early_cap"})
"""The variants whose fault is in the agent's code; the others' is in the model."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A flagged run, the variant of the agent that made it, and its scenario."""

    variant: str
    incident: RecordedRun
    folder: Path


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument(
        "--keep", metavar="DIR", help="leave everything in this new folder, for show, run and pytest"
    )
    parser.add_argument(
        "--offline", action="store_true", help="go through a file of traces, without the processor"
    )


def execute(options: argparse.Namespace) -> int:
    """Run the demonstration. 0 when every part showed what it is meant to show."""
    began = time.monotonic()
    with ExitStack() as stack:
        folder = Path(
            options.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="redfirst-demo-"))
        )
        if folder.exists() and any(folder.iterdir()):
            raise RedfirstError(f"--keep {folder}: the folder is not empty; name a new one.")
        os.environ["REDFIRST_HOME"] = str(folder.resolve() / ".redfirst")  # not the user's own
        screen = Screen()
        wire = None if options.offline or not can_serve() else stack.enter_context(Wire(folder))
        shown = _Demonstration(screen, folder, wire)
        shown.play()
        screen.line()
        screen.line(f"{time.monotonic() - began:.0f} s.", "dim")
        if options.keep:
            _next_steps(screen, folder, shown.example)
        else:
            screen.line(f"Keep the files and look closer:  {_typed('redfirst', Path())} demo --keep demo")
    return 0 if shown.as_meant else 1


class _Demonstration:
    def __init__(self, screen: Screen, folder: Path, wire: Wire | None) -> None:
        self.screen = screen
        self.folder = folder
        self.wire = wire
        self.as_meant = True
        """Whether every part showed what it is meant to show."""
        self.example = ""
        """A flagged run, for the reader to look at."""

    def play(self) -> None:
        """All parts in order."""
        day = self._day()
        project = load_project(self.folder)
        checks = checks_of(project, None)
        recorded: Recorded
        if self.wire is None:
            recorded = in_files = RunsInFiles.read([str(project.root / TRACES)], checks)
            found = in_files.runs
        else:
            stored = self.wire.judged(len(day), within=30)
            recorded = recorded_runs(project, None, checks)
            found = [recorded.named(run_id) for run_id in stored]
        runs = sorted(found, key=lambda one: one.run.start_ns)
        cases = self._flagged(project, checks, recorded, list(zip(day, runs, strict=True)))
        self.example = cases[0].incident.run.run_id[:8]
        reports = self._prove(project, cases)
        self._fix(project, cases)
        self._refuse(project, cases)
        proven = sum(report.proven for report in reports)
        self.screen.line()
        self.screen.line(
            f"{len(runs)} runs, {len(cases)} flagged, {proven} tests that have been seen to fail.", "bold"
        )

    def expect(self, seen: bool) -> bool:
        """Remember when something was not as it is meant to be."""
        self.as_meant = self.as_meant and seen
        return seen

    def title(self, number: int, word: str, text: str) -> None:
        """The heading of a part."""
        self.screen.line()
        self.screen.para(f"{number} {word}  {text}", "bold")

    def _day(self) -> Sequence[str]:
        """Play the conversations; the variant of each, in order."""
        self.title(1, "INSTRUMENT", "a bookshop's support agent serves a day of customers")
        lines, where = play(self.folder, self.wire)
        for line in lines[:3]:
            task, _, answer = line.split(maxsplit=2)
            self.screen.line(f"  {fit(task, 20):<20} {answer}", "dim")
        self.screen.para(f"… {len(lines)} conversations, every call a span, {where}", "dim", indent="  ")
        return [line.split()[1] for line in lines]

    def _flagged(
        self,
        project: Project,
        checks: Sequence[Check],
        recorded: Recorded,
        day: Sequence[tuple[str, RecordedRun]],
    ) -> Sequence[_Case]:
        """Print the flagged runs and freeze one for each defect."""
        hits = [(variant, one) for variant, one in day if flagged(one.verdicts)]
        answered = sum(incident.run.termination.reason is Stop.COMPLETED for _, incident in hits)
        self.title(
            2, "SCORE", f"{len(day)} runs, {len(hits)} flagged, {answered} of them with a good-looking answer"
        )
        cases: list[_Case] = []
        for variant, hit in hits:
            worst = next(verdict for verdict in hit.verdicts if verdict.flags)
            self.screen.para(worst.because, indent="  ", hang=" " * 11, mark=(hit.run.run_id[:8], "red"))
            draft = freeze(hit, checks, control=passing_run(recorded, hit))
            folder = project.root / project.settings.scenarios / draft.scenario.id
            draft.write(folder)
            cases.append(_Case(variant, hit, folder))
        missed = [variant for variant, one in day if variant != HEALTHY and not flagged(one.verdicts)]
        wrong = [case for case in cases if case.variant == HEALTHY]
        if not self.expect(not missed and not wrong):
            self.screen.line(f"  not flagged: {missed}; flagged without a defect: {len(wrong)}", "red")
        self._alert()
        return cases

    def _alert(self) -> None:
        """The alert that the processor raised meanwhile."""
        if self.wire is None:
            return
        alert = self.wire.alert(within=15)
        if self.expect(alert is not None) and alert is not None:
            self.screen.para(str(alert["text"]), "yellow", indent="  ALERT  ", hang=" " * 9)

    def _prove(self, project: Project, cases: Sequence[_Case]) -> Sequence[Report]:
        """Prove each defect by executing the agent."""
        chosen = [case for case in cases if case.variant != RARE]
        self.title(3, "FREEZE, PROVE", "a test only if the agent, executed again, fails it")
        reports: list[Report] = []

        def one(case: _Case) -> Report:
            in_code = case.variant in IN_CODE
            return prove(
                case.folder,
                project,
                agent=_variant(case.variant) if in_code else None,
                control=FIXED if in_code else None,
            )

        with ThreadPoolExecutor(2) as pool:
            for case, report in zip(chosen, pool.map(one, chosen), strict=True):
                reports.append(report)
                self._proof_line(case, report)
        self.screen.para(
            "same failure as in production, twice, with equal events; a control green twice; a miss is no verdict",
            "dim",
            indent="  ",
        )
        return reports

    def _proof_line(self, case: _Case, report: Report) -> None:
        execution = report.red.execution if report.red is not None else None
        where = "code " if case.variant in IN_CODE else "model"
        if not self.expect(report.proven) or execution is None:
            self.screen.para(f"REFUSED {report.scenario}: {report.because}", "red", indent="  ")
            return
        counts = f"{execution.tape_decisions:>2} taped, {len(execution.live_decisions)} live"
        self.screen.line(
            f"  PROVEN  {fit(report.scenario, 40):<40} {where}  {counts}", mark=("PROVEN", "green")
        )

    def _fix(self, project: Project, cases: Sequence[_Case]) -> None:
        """A code fix and a model fix, each seen to turn red into green."""
        self.title(4, "FIX", "the same scenarios against the fixed agent")
        by_variant = {case.variant: case for case in cases}
        for variant, mode, what in (
            ("dropped_guard", Mode.RECORDED, "code: the guard is back"),
            ("refund_over_limit", Mode.TOOLS, "model: another model, live"),
        ):
            case = by_variant[variant]
            before = run(case.folder, project, at=time.time(), agent=_variant(variant), mode=mode)
            after = run(case.folder, project, at=time.time(), agent=FIXED, mode=mode)
            self.expect(before.outcome is RunOutcome.RED and after.outcome is RunOutcome.GREEN)
            self.screen.line(f"  {what:<28} {fit(case.folder.name, 40)}")
            self.screen.line(f"    before: {_counted(before)}", "red")
            self.screen.line(
                f"    after:  {_counted(after)}", "green" if after.outcome is RunOutcome.GREEN else "red"
            )

    def _refuse(self, project: Project, cases: Sequence[_Case]) -> None:
        """Two scenarios that are no tests, and why."""
        self.title(5, "REFUSE", "what cannot be shown to fail for its reason does not become a test")
        by_variant = {case.variant: case for case in cases}
        rare = prove(by_variant[RARE].folder, project, agent=_variant(RARE), level=Level.LIVE)
        other = prove(by_variant["dropped_guard"].folder, project, agent=_variant("raises"))
        for what, report in (("a slip of one run in twenty", rare), ("an agent that crashes instead", other)):
            self.expect(not report.proven)
            reason = report.refusal.value if report.refusal is not None else "PROVEN"
            self.screen.line(f"  {what}: {reason}, exit {report.exit_code}", "yellow")
            self.screen.para(report.because, indent="    ")


def _variant(name: str) -> str:
    return f"{SHOP}.variants:{name}"


def _counted(outcome: Outcome) -> str:
    total = len(outcome.results)
    worst = next(result for result in outcome.results if result.outcome is outcome.outcome)
    share = f" in {outcome.count(outcome.outcome)} of {total} live runs" if outcome.mode is Mode.TOOLS else ""
    live = worst.execution.live_decisions
    said = ", ".join(verdict.check for verdict in worst.failed) or "; ".join(live) or worst.because
    return f"{outcome.outcome.value}{share}: {said}"


def _next_steps(screen: Screen, folder: Path, example: str) -> None:
    steps: Mapping[str, str] = {
        f"cd {folder}": "traces, rules, scenarios and the shop",
        f"{_typed('redfirst', folder)} show {example}": "one run as a timeline",
        f"{_typed('redfirst', folder)} run": "all scenarios against the configured agent",
        f"{_typed('pytest', folder)} scenarios": "the same in pytest",
    }
    width = max(map(len, steps)) + 2
    screen.line("Next:", "bold")
    for command, what in steps.items():
        if width + len(what) + 2 <= WIDTH:
            screen.line(f"  {command.ljust(width)}{what}")
        else:
            print(f"  {command}", file=screen.out)  # never cut: it is to be typed


def _typed(command: str, folder: Path) -> str:
    """How a command of this environment is typed in a folder: its name where the shell finds it, else its path."""
    here = Path(sys.executable).parent / command
    found = shutil.which(command)
    if not here.exists() or (found is not None and Path(found).resolve() == here.resolve()):
        return command
    return min(os.path.relpath(here, folder.resolve()), str(here), key=len)
