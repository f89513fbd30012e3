"""``redfirst freeze``: a flagged run becomes a scenario draft."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from redfirst.collector_processor.commands.prove import holding_record, show_holding
from redfirst.collector_processor.recorded.sources import (
    Recorded,
    add_source_arguments,
    followed,
    recorded_runs,
)
from redfirst.collector_processor.rules_file import checks_of
from redfirst.collector_processor.terminal import Screen, counted, near
from redfirst.evaluators import ConfigurationError, Outcome, Stop, flagged
from redfirst.evaluators.check import Check
from redfirst.replay.covering import covers
from redfirst.replay.freezing import FreezeRefused, RecordedRun, freeze, sample
from redfirst.replay.holding import hold
from redfirst.replay.project import Project, load_project
from redfirst.replay.pseudonyms import CannotRedact


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument(
        "run",
        nargs="?",
        metavar="RUN",
        help="a trace id, the beginning of one, or the link of its page in a backend",
    )
    parser.add_argument(
        "--sample",
        type=int,
        metavar="N",
        help="instead: the newest N runs that nothing flagged, each of another request, with guards only",
    )
    parser.add_argument(
        "-n", "--runs", type=int, metavar="N", help="replays of each sample (default: 3, at least 2)"
    )
    add_source_arguments(parser)
    parser.add_argument(
        "--check", action="append", default=[], metavar="ID", help="prove this failed check (repeatable)"
    )
    parser.add_argument("--out", metavar="DIR", help="folder to write (default: scenarios/ID)")
    parser.add_argument("--replace", action="store_true", help="overwrite another version of the scenario")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")


def execute(options: argparse.Namespace) -> int:
    """Write the draft. 3 when the trace lacks what an execution needs, or a sample does not stay green."""
    if (options.run is None) == (options.sample is None):
        raise ConfigurationError("freeze: name a run, or ask for --sample N; not both.")
    project = load_project(Path.cwd())
    checks = checks_of(project, options.rules)
    if options.sample is not None:
        return take_samples(options, project, checks)
    wanted, traces = followed(options.run, options.traces)
    recorded = recorded_runs(project, traces, checks)
    incident = recorded.named(wanted)
    cover = covers(project.scenarios).of_run(incident.run, incident.verdicts)
    draft = freeze(
        incident,
        checks,
        only=options.check,
        control=passing_run(recorded, incident),
        redaction=project.redaction(),
    )
    folder = Path(options.out) if options.out else project.scenarios / draft.scenario.id
    draft.write(folder, replace=options.replace)
    if options.json:
        print(
            json.dumps(
                {
                    "scenario": draft.scenario.id,
                    "folder": str(folder),
                    "targets": [check.id for check in draft.scenario.targets()],
                    "completeness": draft.scenario.completeness.model_dump(),
                    "control": "good.jsonl" in draft.files,
                    "redacted": draft.scenario.origin.get("redacted", {}),
                    "notes": list(draft.notes),
                    "covered_by": None if cover is None else cover.scenario,
                }
            )
        )
        return 0
    screen = Screen()
    screen.line(f"wrote {folder}")
    screen.para(draft.scenario.title, indent="  ")
    grades = draft.scenario.completeness.model_dump().items()
    screen.para(", ".join(f"{name} {grade}" for name, grade in grades), indent="  ")
    if cover is not None and cover.scenario != folder.name:
        screen.para(f"{cover.said}: this is its failure again", indent="  note: ", hang="        ")
    for name, count in draft.scenario.origin.get("redacted", {}).items():
        screen.para(f"replaced by pseudonyms: {counted(count, 'value')} ({name})", indent="  ")
    for note in draft.notes:
        screen.para(note, indent="  note: ", hang="        ")
    print(
        f"  next: redfirst prove {shlex.quote(near(folder))}"
    )  # whole, however long: it is there to be copied
    return 0


def take_samples(options: argparse.Namespace, project: Project, checks: Sequence[Check]) -> int:
    """Freeze and replay runs that went well. 0 all are held, 1 a guard failed, 3 there is none or no verdict."""
    if options.sample < 1 or options.check:
        raise ConfigurationError("--sample takes a number of at least 1, and no --check: it has guards only.")
    recorded = recorded_runs(project, options.traces, checks)
    out = Path(options.out) if options.out else project.scenarios
    screen, codes, seen = Screen(), list[int](), set[str]()
    for one in recorded.newest():
        if len(codes) == options.sample:
            break
        if one.run.request is None or one.run.request in seen:
            continue
        try:
            draft = sample(one, checks, redaction=project.redaction())
        except (CannotRedact, FreezeRefused):
            continue  # flagged, cut short or recorded in part: the next one is taken
        seen.add(one.run.request)
        folder = out / draft.scenario.id
        draft.write(folder, replace=options.replace)
        holding = hold(folder, project, runs=options.runs)
        codes.append(holding.exit_code)
        if not options.json:
            screen.line(f"wrote {near(folder)}")
            grades = draft.scenario.completeness.model_dump().items()
            screen.para(", ".join(f"{name} {grade}" for name, grade in grades), indent="  ")
            show_holding(screen, holding, as_json=False)
        else:
            grades_record = {"completeness": draft.scenario.completeness.model_dump()}
            print(json.dumps({**holding_record(holding), "folder": str(folder), **grades_record}))
    if len(codes) < options.sample and not options.json:
        screen.line(
            f"{counted(len(codes), 'sample')} of {options.sample}: no more runs can be frozen", "yellow"
        )
    return 1 if 1 in codes else max(codes, default=3)


def passing_run(recorded: Recorded, incident: RecordedRun) -> RecordedRun | None:
    """A run of the same task that completed and that no check complained of: the control's recording."""
    for other in recorded.same_task(incident):
        unsure = any(v.outcome is Outcome.INCONCLUSIVE for v in other.verdicts)
        if other.run.termination.reason is Stop.COMPLETED and not unsure and not flagged(other.verdicts):
            return other
    return None
