"""Which process judges which run. Large runs are judged in a process of their own, so that no other run waits behind one."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence

from redfirst.collector_processor.scoring.process import Job, ScorerProcess

LARGE = 2_000
"""Spans from which a run is judged apart."""


class Lanes:
    """A ``Scoring`` over several processes; that of the large runs is started with the first of them.

    A run is always given to the same of the usual ones: its answers come in the order in which they were asked for.
    """

    def __init__(self, make: Callable[[], ScorerProcess], *, usual: int = 1, large: int = LARGE) -> None:
        """``make`` starts a process; ``usual`` is how many judge the runs of usual size."""
        self._make = make
        self._large = large
        self._usual = [make() for _ in range(usual)]
        self._apart: ScorerProcess | None = None
        self._rules: tuple[str, str] | None = None

    @property
    def alive(self) -> bool:
        """Whether what supervises the processes runs."""
        return all(one.alive for one in self._all())

    @property
    def revision(self) -> str:
        """Of the checks that the processes judge by; empty before all have begun, and while they change."""
        revisions = {one.revision for one in self._usual}
        return revisions.pop() if len(revisions) == 1 else ""

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue jobs, each where it belongs."""
        large = [job for job in jobs if _spans(job) >= self._large]
        if large and self._apart is None:
            self._apart = self._make()
            if self._rules is not None:
                self._apart.judge_by(self._rules)
        if large and self._apart is not None:
            self._apart.submit(large)
        shares: list[list[Job]] = [[] for _ in self._usual]
        for job in jobs:
            if _spans(job) < self._large:
                shares[zlib.crc32(job.run_id.encode()) % len(shares)].append(job)
        for one, share in zip(self._usual, shares, strict=True):
            if share:
                one.submit(share)

    def judge_by(self, rules: tuple[str, str]) -> None:
        """Judge by these rules from the next chunk of jobs on."""
        self._rules = rules
        for one in self._all():
            one.judge_by(rules)

    def close(self) -> None:
        """End the processes; what they had not answered is judged after the next start."""
        for one in self._all():
            one.close()

    def _all(self) -> Iterator[ScorerProcess]:
        yield from self._usual
        if self._apart is not None:
            yield self._apart


def _spans(job: Job) -> int:
    return job.spans if job.traces is None else sum(map(len, job.traces.values()))
