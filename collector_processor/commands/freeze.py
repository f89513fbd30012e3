"""``redfirst freeze``: a flagged run becomes a scenario draft."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path

from redfirst.collector_processor.commands.samples import take_samples
from redfirst.collector_processor.links import Links
from redfirst.collector_processor.recorded.sources import (
    Recorded,
    add_source_arguments,
    followed,
    recorded_runs,
)
from redfirst.collector_processor.rules_file import checks_of
from redfirst.collector_processor.terminal import Screen, counted, near, tell
from redfirst.evaluators import ConfigurationError, Outcome, Stop, flagged
from redfirst.replay.covering import covers_of
from redfirst.replay.freezing import RecordedRun, freeze
from redfirst.replay.project import load_project
from redfirst.replay.scenario import load
from redfirst.replay.standing import standing


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
    """Write the draft. 2 where another version of it is, 3 when the trace lacks what an execution needs."""
    if options.run is None and options.sample is None:
        raise ConfigurationError("freeze: name a run, or ask for --sample N ('redfirst traces' lists runs).")
    if options.run is not None and options.sample is not None:
        raise ConfigurationError(f"freeze: run {options.run} and --sample are both given; give one of them.")
    project = load_project(Path.cwd())
    checks = checks_of(project, options.rules)
    if options.sample is not None:
        return take_samples(options, project, checks)
    wanted, traces = followed(options.run, options.traces)
    recorded = recorded_runs(project, traces, checks)
    incident = recorded.named(wanted)
    known = covers_of(project)
    cover = known.of_run(incident.run, incident.verdicts)
    if cover is None and known.untold:
        tell(known.said_untold)
    draft = freeze(
        incident,
        checks,
        only=options.check,
        control=passing_run(recorded, incident),
        redaction=project.redaction(),
    )
    url = Links.of_project(project).beside(incident.run.run_id, next(iter(incident.run.trace_ids), None))
    folder = Path(options.out) if options.out else project.scenarios / draft.scenario.id
    written = draft.write(folder, replace=options.replace)
    if options.json:
        print(
            json.dumps(
                {
                    "scenario": draft.scenario.id,
                    "folder": str(folder),
                    "written": written,
                    "targets": [check.id for check in draft.scenario.targets()],
                    "completeness": draft.scenario.completeness.model_dump(),
                    "control": "good.jsonl" in draft.files,
                    "redacted": draft.scenario.origin.get("redacted", {}),
                    "notes": list(draft.notes),
                    "covered_by": None if cover is None else cover.scenario,
                    **url,
                }
            )
        )
        return 0
    screen = Screen()
    screen.line(f"wrote {near(folder)}" if written else f"there already, as it was frozen: {near(folder)}")
    screen.para(draft.scenario.title, indent="  ")
    grades = draft.scenario.completeness.model_dump().items()
    screen.para(", ".join(f"{name} {grade}" for name, grade in grades), indent="  ")
    if url:
        print(f"  trace: {url['url']}")  # whole, too
    if cover is not None and cover.scenario != folder.name:
        screen.para(f"{cover.said}: this is its failure again", indent="  note: ", hang="        ")
    for name, count in draft.scenario.origin.get("redacted", {}).items():
        screen.para(f"replaced by pseudonyms: {counted(count, 'value')} ({name})", indent="  ")
    for note in draft.notes:
        screen.para(note, indent="  note: ", hang="        ")
    verb = "prove" if written or not standing(load(folder)).proven else "run"
    print(
        f"  next: redfirst {verb} {shlex.quote(near(folder))}"
    )  # whole, however long: it is there to be copied
    return 0


def passing_run(recorded: Recorded, incident: RecordedRun) -> RecordedRun | None:
    """A run of the same task that completed and that no check complained of: the control's recording."""
    for other in recorded.same_task(incident):
        unsure = any(v.outcome is Outcome.INCONCLUSIVE for v in other.verdicts)
        if other.run.termination.reason is Stop.COMPLETED and not unsure and not flagged(other.verdicts):
            return other
    return None
