"""``redfirst doctor``: what in this environment keeps spans from being seen, and which checks cannot fire for it."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import distributions, entry_points
from pathlib import Path

from redfirst.collector_processor.doctor import findings, probes
from redfirst.collector_processor.doctor.findings import Finding, Level
from redfirst.collector_processor.home import Home
from redfirst.collector_processor.terminal import Screen, clean
from redfirst.evaluators.errors import ConfigurationError
from redfirst.replay.project import load_project

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


def execute(options: argparse.Namespace) -> int:
    """Look at everything and say what it means. 1 when a finding blinds a check."""
    if not 0 < options.timeout <= 60:
        raise ConfigurationError(f"--timeout {options.timeout:g}: give seconds above 0 and up to 60.")
    home = Home(Path(options.home) if options.home else load_project(Path.cwd()).home)
    found = examine(home, os.environ, timeout=options.timeout)
    if options.json:
        for one in found:
            print(json.dumps(asdict(one)))
    else:
        _print(found)
    return 1 if any(one.level is Level.BLIND for one in found) else 0


def examine(home: Home, environment: Mapping[str, str], *, timeout: float = 2.0) -> list[Finding]:
    """Every finding. Call it in your own process to have that one's provider looked at."""
    packages = {(one.metadata["Name"] or "").lower().replace("_", "-") for one in distributions()}
    exporters = {point.name for point in entry_points(group="opentelemetry_traces_exporter")}
    provider, sampler = probes.provider(environment)
    exporting = findings.exporting(environment, exporters)
    sends = "otlp" in exporting[0].found and exporting[0].level is Level.OK
    return [
        *provider,
        *exporting,
        *(probes.endpoint(environment, timeout=timeout) if sends else ()),
        *findings.sampling(environment, sampler),
        *findings.content(environment, packages),
        *findings.limits(environment),
        *findings.duplicates(packages),
        *probes.service(home, environment, timeout=timeout),
    ]


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
