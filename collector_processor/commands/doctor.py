"""``redfirst doctor``: what in this environment keeps spans from being seen, and which checks cannot fire for it."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import distributions, entry_points
from pathlib import Path

from redfirst.collector_processor.doctor import findings, probes, program, spans
from redfirst.collector_processor.doctor.findings import Finding, Level
from redfirst.collector_processor.doctor.told import backends_told
from redfirst.collector_processor.home import Home
from redfirst.collector_processor.settings import configured, in_force
from redfirst.collector_processor.terminal import Screen, clean
from redfirst.evaluators.errors import ConfigurationError
from redfirst.evaluators.python_check import installed
from redfirst.instrumentation.counts import SpanCounts
from redfirst.replay.project import load_project

_FILE_ALONE = "Where configure(file=…) is all you use, name the file under traces: in redfirst.yaml."
_STYLES = {Level.OK: "green", Level.NOTE: "yellow", Level.BLIND: "red"}


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument(
        "--home", metavar="DIR", help="the service's home (default: REDFIRST_HOME or .redfirst)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per finding, one per line")
    parser.add_argument(
        "--timeout",
        type=float,
        default=2.0,
        metavar="SECONDS",
        help="how long to wait for an answer (default: %(default)s)",
    )
    parser.add_argument(
        "command",
        nargs="*",
        metavar="COMMAND",
        help="after --: your program, run to its end to count its spans",
    )


def execute(options: argparse.Namespace) -> int:
    """Look at everything and say what it means. 1 when a finding blinds a check."""
    if not 0 < options.timeout <= 60:
        raise ConfigurationError(f"--timeout {options.timeout:g}: give seconds above 0 and up to 60.")
    project = load_project(Path.cwd())
    home = Home(Path(options.home) if options.home else project.home)
    ran = program.run(options.command, quiet=options.json) if options.command else None
    files = [project.root / name for name in project.settings.traces if "://" not in name]
    found = [
        *examine(home, os.environ, timeout=options.timeout, ran=ran, files=files),
        *backends_told(in_force(configured(project)).sinks),
    ]
    if options.json:
        for one in found:
            print(json.dumps(asdict(one)))
    else:
        _print(found)
    return 1 if any(one.level is Level.BLIND for one in found) else 0


def examine(
    home: Home,
    environment: Mapping[str, str],
    *,
    timeout: float = 2.0,
    ran: program.Program | None = None,
    files: Sequence[Path] = (),
) -> list[Finding]:
    """Every finding of a program that was run, or of this process: call it in your own to have that looked at.

    Args:
        home: where a service keeps its files.
        environment: the variables that the program sees.
        timeout: seconds that an endpoint has to answer.
        ran: the program, when it was run for this.
        files: the files that the project reads traces from.
    """
    packages = {(one.metadata["Name"] or "").lower().replace("_", "-") for one in distributions()}
    own: list[Finding] = []
    seen: list[tuple[str, SpanCounts]] = []
    if ran is not None:
        own, seen = ran.findings(), [*ran.counts]
    elif isinstance(here := probes.provider(environment), Finding):
        own = [here]
    else:
        seen = [("process", here)]
    shown = [one for who, of in seen for one in spans.provider_and_spans(of, who=who, ended=ran is not None)]
    samplers = [of.sampler for _, of in seen]
    return [
        *own,
        *shown,
        *(_exporting(environment, seen, files, timeout=timeout)),
        *findings.sampling(environment, samplers[0] if samplers else None),
        *findings.content(environment, packages),
        *findings.limits(environment),
        *findings.duplicates(packages),
        *probes.own_faults(),
        *findings.checks({name: point.value for name, point in installed().items()}),
        *probes.service(home, environment, timeout=timeout),
        *probes.dead_letters(home),
    ]


def _exporting(
    environment: Mapping[str, str],
    seen: Sequence[tuple[str, SpanCounts]],
    files: Sequence[Path],
    *,
    timeout: float,
) -> list[Finding]:
    """Where spans go and whether they are taken there: of the exporters seen, otherwise of what is set here."""
    installed = {point.name for point in entry_points(group="opentelemetry_traces_exporter")}
    said = findings.exporting(environment, installed)
    exporters = [exporter for _, of in seen for exporter in of.exporters or ()]
    if exporters and not findings.disabled(environment):
        return [
            one
            for url, protocol in probes.targets(exporters)
            for one in probes.endpoint(url, protocol, environment, timeout=timeout)
        ]
    if said[0].level is not Level.OK or "otlp" not in said[0].found:
        return said
    answer = probes.endpoint(*probes.target(environment), environment, timeout=timeout)
    if files and findings.otlp_is_default(environment):
        # The project reads its traces from files, and nothing here asks for an endpoint.
        said = findings.trace_files(files)
        answer = [
            replace(one, level=min(one.level, Level.NOTE, key=list(Level).index), blinds=()) for one in answer
        ]
    elif findings.otlp_is_default(environment):
        answer = [replace(one, remedy=f"{one.remedy} {_FILE_ALONE}") if one.remedy else one for one in answer]
    return [*said, *answer]


def _print(found: Sequence[Finding]) -> None:
    screen = Screen()
    for one in found:
        style = _STYLES[one.level]
        screen.para(f"{one.subject}: {one.found}", mark=(f"{one.level.value:5}", style), hang=" " * 6)
        for line in (one.means, _blinds(one), one.remedy):
            if line:
                screen.para(clean(line), indent=" " * 6)
    blind = sorted({check for one in found if one.level is Level.BLIND for check in one.blinds})
    screen.line()
    if not blind:
        screen.line("Every check can fire.", "green")
    elif "all" in blind:
        screen.line("No check can be relied on to fire.", "red")
    else:
        screen.para(f"These may not fire: {', '.join(blind)}.", "red")


def _blinds(one: Finding) -> str:
    if not one.blinds:
        return ""
    return f"Cannot fire: {'any check' if one.blinds == findings.ALL else ', '.join(one.blinds)}."
