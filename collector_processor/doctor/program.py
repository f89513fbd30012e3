"""A program of the user's, run under the doctor: what became of its spans."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from redfirst.collector_processor.doctor.findings import ALL, Finding, Level
from redfirst.evaluators.errors import ConfigurationError
from redfirst.instrumentation.counts import REPORT_VARIABLE, SpanCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A command that has ended."""

    command: str
    code: int
    """Its exit code; negative: the signal that ended it."""
    counts: Sequence[tuple[str, SpanCounts]]
    """With the name of the process; several where it forked or configured several providers."""

    def findings(self) -> list[Finding]:
        """How it ended, and that it could be counted."""
        how = f"exit code {self.code}" if self.code >= 0 else f"signal {signal.Signals(-self.code).name}"
        if not self.counts:
            return [
                Finding(
                    subject="program",
                    level=Level.BLIND,
                    found=f"{self.command} ended with {how} and did not call configure() of redfirst.instrumentation",
                    means="Its spans were not counted; without a provider there are none.",
                    blinds=ALL,
                    remedy="Call configure() where it starts: a provider that is set is joined as it is.",
                )
            ]
        if self.code == 0:
            return [Finding(subject="program", level=Level.OK, found=f"{self.command} ended")]
        return [
            Finding(
                subject="program",
                level=Level.NOTE,
                found=f"{self.command} ended with {how}",
                means="What it did in its last tenth of a second may be missing from the counts."
                if self.code < 0
                else "",
            )
        ]


def run(command: Sequence[str], *, quiet: bool) -> Program:
    """Run a command to its end, as a shell would; ``quiet``: what it prints goes to standard error.

    Raises:
        ConfigurationError: there is no such command.
    """
    if shutil.which(command[0]) is None:
        raise ConfigurationError(
            f"doctor -- {command[0]}: there is no such command. Give it as you start it, as in: "
            "redfirst doctor -- python -m yourbot."
        )
    with tempfile.TemporaryDirectory(prefix="redfirst-doctor-") as folder:
        sys.stdout.flush()
        process = subprocess.Popen(  # noqa: S603 - what the user typed
            command, env={**os.environ, REPORT_VARIABLE: folder}, stdout=sys.stderr if quiet else None
        )
        # Ctrl-C is for the program, which the terminal sends it to as well; ours is to report
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            code = process.wait()
        finally:
            signal.signal(signal.SIGINT, before)
        reports = sorted(Path(folder).glob("*.json"))
        found = {one.stem: SpanCounts.from_json(json.loads(one.read_bytes())) for one in reports}
    if any(seen.started for seen in found.values()):  # a parent that only forks has nothing to say
        found = {stem: seen for stem, seen in found.items() if seen.started}
    alone = len({stem.partition("-")[0] for stem in found}) == 1
    counts = [
        ("program" if alone else f"process {stem.partition('-')[0]}", seen) for stem, seen in found.items()
    ]
    return Program(
        command=textwrap.shorten(" ".join(command), 60, placeholder=" …"), code=code, counts=counts
    )
