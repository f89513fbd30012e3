"""What is known of the backends that are told verdicts: which of their kinds were ever read back from a real server."""

from __future__ import annotations

from collections.abc import Iterable

from redfirst.collector_processor.doctor.findings import Finding, Level
from redfirst.collector_processor.settings import SinkSettings
from redfirst.collector_processor.sinks.backends import KINDS


def backends_told(settings: Iterable[SinkSettings]) -> list[Finding]:
    """One finding for each configured sink."""
    return [_told(entry) for entry in settings]


def _told(entry: SinkSettings) -> Finding:
    kind = KINDS[entry.kind]
    if kind.read_back:
        return Finding(
            subject="sink",
            level=Level.OK,
            found=f"{entry.name}: {entry.kind}, read back from {kind.read_back}",
            means="" if kind.withdraws else "What was sent there is not deleted with the run.",
        )
    return Finding(
        subject="sink",
        level=Level.NOTE,
        found=f"{entry.name}: {entry.kind} is unverified: its requests are those of the vendor's SDK, and no score "
        "was ever read back from a real server",
        means="Scores may not arrive, or not on the right trace; the checks themselves do not depend on it.",
        remedy="Look at one run there, and see redfirst_sink_runs_total in /metrics.",
    )
