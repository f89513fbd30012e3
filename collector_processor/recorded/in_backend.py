"""Runs of a backend, asked for through its API as they are needed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from redfirst.collector_processor.backends.backend import Backend
from redfirst.collector_processor.backends.getting import BackendUnreadable
from redfirst.collector_processor.storing.store import Label
from redfirst.collector_processor.terminal import tell
from redfirst.evaluators.check import Check, judge
from redfirst.evaluators.errors import ConfigurationError
from redfirst.evaluators.reading import read
from redfirst.replay.freezing import RecordedRun, same_task

LOOKED_THROUGH = 50
"""Newest traces that a beginning of an id, a control or a sample is looked for among."""
_BEGINNING = re.compile(r"^[0-9a-fA-F]{0,31}$")


class RunsInBackend:
    """The traces that one backend holds."""

    def __init__(self, backend: Backend, checks: Sequence[Check]) -> None:
        self._backend = backend
        self._checks = checks

    def named(self, wanted: str) -> RecordedRun:
        """The run of a trace id, or of the beginning of one among the newest.

        Raises:
            ConfigurationError: none begins so, or more than one, or its trace is no run.
            BackendUnreadable: the backend cannot be asked.
        """
        trace_id = wanted
        if _BEGINNING.match(wanted):
            begins = wanted.lower()
            near = [one for one in self._backend.newest(LOOKED_THROUGH) if one.startswith(begins)]
            if len(near) != 1:
                found = f"{len(near)} of them begin so" if near else "none of them begins so"
                raise ConfigurationError(
                    f"run {wanted}: of the newest {LOOKED_THROUGH} traces in {self._backend.name}, {found}; "
                    f"give the whole id."
                )
            trace_id = near[0]
        recorded = self._load(trace_id)
        if recorded is None:
            raise ConfigurationError(f"run {wanted}: its trace holds no agent, model or tool call.")
        return recorded

    def labels(self, run_id: str) -> Sequence[Label]:  # noqa: ARG002 - the interface's
        """None: labels are kept in a store."""
        return ()

    def same_task(self, incident: RecordedRun) -> Iterator[RecordedRun]:
        """Other runs among the newest that began with the same words in the same state."""
        try:
            for other in self.newest(incident):
                if other.run.run_id != incident.run.run_id and same_task(incident.run, other.run):
                    yield other
        except BackendUnreadable as problem:  # the run itself was read, and a control can be had otherwise
            tell(f"no other run of the task was looked for: {problem}")

    def newest(self, like: RecordedRun | None = None) -> Iterator[RecordedRun]:
        """The runs of the newest traces; those that cannot be read are passed over."""
        for trace_id in self._backend.newest(LOOKED_THROUGH, () if like is None else like.spans):
            try:
                found = self._load(trace_id)
            except BackendUnreadable:
                continue  # deleted meanwhile, or no trace of an agent
            if found is not None:
                yield found

    def _load(self, trace_id: str) -> RecordedRun | None:
        spans = self._backend.trace(trace_id)
        runs = read(spans, ()).runs
        return RecordedRun(run=runs[0], spans=spans, verdicts=judge(runs[0], self._checks)) if runs else None
