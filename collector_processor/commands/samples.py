"""``redfirst freeze --sample``: runs that went well become scenarios that are seen to stay green."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from redfirst.collector_processor.commands.prove import holding_record, show_holding
from redfirst.collector_processor.recorded.sources import recorded_runs
from redfirst.collector_processor.terminal import Screen, counted, near
from redfirst.evaluators import ConfigurationError
from redfirst.evaluators.check import Check
from redfirst.replay.covering import frozen_already
from redfirst.replay.freezing import Draft, FreezeRefused, RecordedRun, sample
from redfirst.replay.holding import Holding, hold
from redfirst.replay.project import Project
from redfirst.replay.pseudonyms import CannotRedact

_THERE = "whose request has a scenario already"
_UNFIT = "flagged, cut short or recorded in part"
_NOT_HELD = "that did not hold"


@dataclass(slots=True)
class _Taken:
    """What became of the runs that were looked at."""

    codes: list[int] = field(default_factory=list)
    """The exit code of each that was replayed."""
    passed_over: Counter[str] = field(default_factory=Counter)

    @property
    def held(self) -> int:
        return self.codes.count(0)

    def exit_code(self, asked: int) -> int:
        if self.held == asked:
            return 0
        return 1 if 1 in self.codes else max(self.codes, default=3)


def take_samples(options: argparse.Namespace, project: Project, checks: Sequence[Check]) -> int:
    """Freeze and replay runs that went well until N are held. 0 they are, or there are fewer and all of those are;
    otherwise 1 a guard failed, 3 there is none or no verdict.
    """
    if options.sample < 1 or options.check or options.replace:
        raise ConfigurationError(
            "--sample takes a number of at least 1, no --check (it has guards only) and no --replace (a request that "
            "has a scenario is not frozen again)."
        )
    out = Path(options.out) if options.out else project.scenarios
    there, seen, taken, screen = frozen_already(out, project.redaction_key()), set[str](), _Taken(), Screen()
    for one in recorded_runs(project, options.traces, checks).newest():
        if taken.held == options.sample:
            break
        if one.run.request is None or one.run.request in seen:
            continue  # of each request one is tried, the newest
        if there.has(one.run):
            seen.add(one.run.request)
            taken.passed_over[_THERE] += 1
            continue
        draft = _draft(one, project, checks)
        if draft is None:
            taken.passed_over[_UNFIT] += 1
            continue
        seen.add(one.run.request)
        folder = out / draft.scenario.id
        holding = _replayed(draft, folder, project, options.runs)
        taken.codes.append(holding.exit_code)
        if not holding.held:
            taken.passed_over[_NOT_HELD] += 1
        _show(screen, draft, folder, holding, as_json=options.json)
    _show_end(screen, taken, options.sample, as_json=options.json)
    return taken.exit_code(options.sample)


def _draft(one: RecordedRun, project: Project, checks: Sequence[Check]) -> Draft | None:
    """Its scenario; ``None`` where it makes none."""
    try:
        return sample(one, checks, redaction=project.redaction())
    except (CannotRedact, FreezeRefused):
        return None


def _replayed(draft: Draft, folder: Path, project: Project, runs: int | None) -> Holding:
    """Its replays. What does not hold, or could not be replayed, is no scenario and does not stay on disk."""
    draft.write(folder)
    held = False
    try:
        holding = hold(folder, project, runs=runs)
        held = holding.held
    finally:
        if not held:
            draft.remove(folder)
    return holding


def _show(screen: Screen, draft: Draft, folder: Path, holding: Holding, *, as_json: bool) -> None:
    if as_json:
        kept = {"folder": str(folder) if holding.held else None}
        grades = {"completeness": draft.scenario.completeness.model_dump()}
        print(json.dumps({**holding_record(holding), **kept, **grades}))
        return
    if holding.held:
        screen.line(f"wrote {near(folder)}")
        found = draft.scenario.completeness.model_dump().items()
        screen.para(", ".join(f"{name} {grade}" for name, grade in found), indent="  ")
    else:
        screen.line(f"not kept: {draft.scenario.id}")
        screen.para(draft.scenario.title, indent="  ")
    show_holding(screen, holding, as_json=False)


def _show_end(screen: Screen, taken: _Taken, asked: int, *, as_json: bool) -> None:
    if as_json:
        counts = {"asked": asked, "held": taken.held, "passed_over": dict(taken.passed_over)}
        print(json.dumps({"kind": "samples", **counts}))
        return
    if taken.passed_over:
        said = "; ".join(f"{number} {why}" for why, number in taken.passed_over.items())
        screen.para(f"passed over: {said}", "dim")
    if taken.held < asked:
        screen.line(f"{counted(taken.held, 'sample')} of {asked} held: there are no more runs", "yellow")
