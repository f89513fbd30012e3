"""The recorded runs that a command speaks of: in files, or in the project's store."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from typing import Protocol

from redfirst.collector_processor.backends.selecting import backend_of, is_address, link_of
from redfirst.collector_processor.home import Home
from redfirst.collector_processor.recorded.in_backend import RunsInBackend
from redfirst.collector_processor.recorded.in_files import RunsInFiles
from redfirst.collector_processor.recorded.in_store import RunsInStore
from redfirst.collector_processor.storing.store import Label
from redfirst.evaluators.check import Check
from redfirst.evaluators.errors import ConfigurationError
from redfirst.replay.freezing import RecordedRun
from redfirst.replay.project import Project


class Recorded(Protocol):
    """Recorded runs with the spans they came from, judged by the checks in force."""

    def named(self, wanted: str) -> RecordedRun:
        """The run whose id begins so.

        Raises:
            ConfigurationError: none does, or more than one.
        """
        ...

    def labels(self, run_id: str) -> Sequence[Label]:
        """What people said of a run."""
        ...

    def newest(self) -> Iterable[RecordedRun]:
        """Runs, the newest first, as far as their spans are still there; those that a check flagged may be left out."""
        ...

    def same_task(self, incident: RecordedRun) -> Iterable[RecordedRun]:
        """Other runs that began with the same words in the same state, as far as their spans are still there.
        Those that a check flagged may be left out."""
        ...


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """``--traces`` and ``--rules``."""
    parser.add_argument(
        "--traces",
        action="append",
        metavar="PATH",
        help="OTLP files or folders, or a backend as KIND+http://HOST: phoenix, mlflow, jaeger, langfuse "
        "(default: the store, and without one traces: of redfirst.yaml)",
    )
    parser.add_argument("--rules", metavar="FILE", help="a rules file (default: rules: of redfirst.yaml)")


def followed(wanted: str, traces: Sequence[str] | None) -> tuple[str, Sequence[str] | None]:
    """The run and the traces that are meant: of a link to the page of a trace, those that it says.

    Raises:
        ConfigurationError: it is the link of something else.
    """
    if not is_address(wanted):
        return wanted, traces
    link = link_of(wanted)
    return link.trace_id, traces or [link.selector]


def recorded_runs(project: Project, traces: Sequence[str] | None, checks: Sequence[Check]) -> Recorded:
    """The runs in the given traces; without any, those in the project's store, or in the traces it names.

    Raises:
        ConfigurationError: there are none to read, or a backend stands among files.
        UnreadableInput: a file is not OTLP.
        StoreRefused: the store cannot be opened.
    """
    home = Home(project.home)
    if not traces and home.store.exists():
        return RunsInStore(home, checks)
    named = traces or project.settings.traces
    backends = [one for one in named if is_address(one)]
    if backends:
        if len(named) > 1:
            raise ConfigurationError(
                f"--traces {backends[0]}: a backend is read alone; leave the others out."
            )
        return RunsInBackend(backend_of(backends[0], os.environ), checks)
    paths = list(traces or (str(project.root / path) for path in named))
    if not paths:
        raise ConfigurationError(
            f"no runs to look in: there is no store in {home.folder}; start redfirst serve, pass --traces PATH, "
            f"or set traces: in redfirst.yaml."
        )
    return RunsInFiles.read(paths, checks)
