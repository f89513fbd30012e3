"""The recorded runs a command speaks of, and the checks they are judged by."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from redfirst.collector_processor.files import read_files
from redfirst.collector_processor.home import Home
from redfirst.collector_processor.stored_runs import StoredRuns
from redfirst.evaluators.check import Check, default_checks, judge
from redfirst.evaluators.errors import ConfigurationError
from redfirst.evaluators.reading import read
from redfirst.evaluators.rules import load_rules
from redfirst.evaluators.span import LogRecord, Span
from redfirst.evaluators.trajectory import Trajectory
from redfirst.replay.freezing import RecordedRun
from redfirst.replay.project import Project


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """``--traces`` and ``--rules``."""
    parser.add_argument(
        "--traces",
        action="append",
        metavar="PATH",
        help="OTLP files or folders (default: the store, and without one traces: of redfirst.yaml)",
    )
    parser.add_argument("--rules", metavar="FILE", help="a rules file (default: rules: of redfirst.yaml)")


def checks_of(project: Project, given: str | None) -> tuple[Check, ...]:
    """The default checks and those of the rules file in force.

    Raises:
        ConfigurationError: the rules file cannot be read or is wrong.
    """
    if given is None and project.settings.rules is None:
        return default_checks()
    path = Path(given) if given is not None else project.root / str(project.settings.rules)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigurationError(f"rules file {path}: cannot be read: {problem}.") from problem
    return (*default_checks(), *load_rules(text, str(path)))


@dataclass(frozen=True, slots=True)
class Recorded:
    """Every run of some traces, with the spans they came from, judged."""

    runs: Sequence[RecordedRun]

    def named(self, wanted: str) -> RecordedRun:
        """The run whose trace id or run id begins so.

        Raises:
            ConfigurationError: none does, or more than one.
        """
        if isinstance(self.runs, StoredRuns):
            return self.runs.named(wanted)
        hits = [
            r
            for r in self.runs
            if wanted and any(name.startswith(wanted.lower()) for name in (r.run.run_id, *r.run.trace_ids))
        ]
        if len(hits) == 1:
            return hits[0]
        if hits:
            some = ", ".join(hit.run.run_id[:12] for hit in hits[:4])
            raise ConfigurationError(
                f"run {wanted}: {len(hits)} runs begin so ({some} …); give more of the id."
            )
        flagged = [r.run.run_id[:12] for r in self.runs if any(v.flags for v in r.verdicts)]
        hint = f" Flagged: {', '.join(flagged[:4])}{' …' if len(flagged) > 4 else ''}." if flagged else ""
        raise ConfigurationError(f"run {wanted}: not among the {len(self.runs)} run(s) read.{hint}")


def recorded_runs(project: Project, traces: Sequence[str] | None, checks: Sequence[Check]) -> Recorded:
    """The runs in the given traces; without any, those in the project's store, or in the traces it names.

    Raises:
        ConfigurationError: there are none to read.
        UnreadableInput: a file is not OTLP.
        StoreRefused: the store cannot be opened.
    """
    home = Home(project.home)
    if not traces and home.store.exists():
        return Recorded(StoredRuns(home, checks))
    paths = list(traces or (str(project.root / path) for path in project.settings.traces))
    if not paths:
        raise ConfigurationError(
            f"no runs to look in: there is no store in {home.folder}; start redfirst serve, pass --traces PATH, "
            f"or set traces: in redfirst.yaml."
        )
    stream = read_files(paths)
    return Recorded(
        [_with_spans(run, stream.spans, stream.logs, checks) for run in read(stream.spans, stream.logs).runs]
    )


def _with_spans(
    run: Trajectory, spans: Sequence[Span], logs: Sequence[LogRecord], checks: Sequence[Check]
) -> RecordedRun:
    mine = set(run.trace_ids)
    return RecordedRun(
        run=run,
        spans=[span for span in spans if span.trace_id in mine],
        logs=[log for log in logs if log.trace_id in mine],
        verdicts=judge(run, checks),
    )
