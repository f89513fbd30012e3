"""Large runs are judged in a process of their own, so that no other run waits behind one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from redfirst.collector_processor.scoring.process import Job, ScorerProcess

LARGE = 2_000
"""Spans from which a run is judged apart."""


class Lanes:
    """A ``Scoring`` over two processes; that of the large runs is started with the first of them."""

    def __init__(self, make: Callable[[], ScorerProcess], *, large: int = LARGE) -> None:
        """``make`` starts a process."""
        self._make = make
        self._large = large
        self._common = make()
        self._apart: ScorerProcess | None = None
        self._rules: tuple[str, str] | None = None

    @property
    def alive(self) -> bool:
        """Whether what supervises the processes runs."""
        return self._common.alive and (self._apart is None or self._apart.alive)

    @property
    def revision(self) -> str:
        """Of the checks that the processes judge by; empty before one has begun."""
        return self._common.revision

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue jobs, each where it belongs."""
        large = [job for job in jobs if _spans(job) >= self._large]
        if large and self._apart is None:
            self._apart = self._make()
            if self._rules is not None:
                self._apart.judge_by(self._rules)
        if large and self._apart is not None:
            self._apart.submit(large)
        rest = [job for job in jobs if _spans(job) < self._large]
        if rest:
            self._common.submit(rest)

    def judge_by(self, rules: tuple[str, str]) -> None:
        """Judge by these rules from the next chunk of jobs on."""
        self._rules = rules
        self._common.judge_by(rules)
        if self._apart is not None:
            self._apart.judge_by(rules)

    def close(self) -> None:
        """End the processes; what they had not answered is judged after the next start."""
        self._common.close()
        if self._apart is not None:
            self._apart.close()


def _spans(job: Job) -> int:
    return job.spans if job.traces is None else sum(map(len, job.traces.values()))
