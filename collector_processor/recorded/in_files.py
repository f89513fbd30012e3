"""Runs of files and folders of OTLP, for the commands that show and freeze recorded runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from redfirst.collector_processor.recorded.files import Stream, read_files
from redfirst.collector_processor.storing.store import Label
from redfirst.collector_processor.terminal import counted
from redfirst.evaluators.check import Check, judge
from redfirst.evaluators.errors import ConfigurationError
from redfirst.evaluators.reading import read
from redfirst.evaluators.trajectory import Trajectory
from redfirst.replay.freezing import RecordedRun, same_task


@dataclass(frozen=True, slots=True)
class RunsInFiles:
    """Every run of some traces."""

    runs: Sequence[RecordedRun]

    @classmethod
    def read(cls, paths: Sequence[str], checks: Sequence[Check]) -> RunsInFiles:
        """The runs of all files as one stream.

        Raises:
            UnreadableInput: a file is not OTLP.
        """
        stream = read_files(paths)
        return cls([_with_spans(run, stream, checks) for run in read(stream.spans, stream.logs).runs])

    def named(self, wanted: str) -> RecordedRun:
        """The run whose trace id or run id begins so.

        Raises:
            ConfigurationError: none does, or more than one.
        """
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
        raise ConfigurationError(f"run {wanted}: not among the {counted(len(self.runs), 'run')} read.{hint}")

    def labels(self, run_id: str) -> Sequence[Label]:  # noqa: ARG002 - the interface's
        """None: labels are kept in a store."""
        return ()

    def newest(self) -> Iterator[RecordedRun]:
        """Every run, the newest first."""
        yield from sorted(self.runs, key=lambda one: -one.run.start_ns)

    def same_task(self, incident: RecordedRun) -> Iterator[RecordedRun]:
        """Other runs that began with the same words in the same state."""
        for other in self.runs:
            if other.run.run_id != incident.run.run_id and same_task(incident.run, other.run):
                yield other


def _with_spans(run: Trajectory, stream: Stream, checks: Sequence[Check]) -> RecordedRun:
    mine = set(run.trace_ids)
    return RecordedRun(
        run=run,
        spans=[span for span in stream.spans if span.trace_id in mine],
        logs=[log for log in stream.logs if log.trace_id in mine],
        verdicts=judge(run, checks),
    )
