"""Scoring in this very process: for one who waits for the answers, and drives the pipeline step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from redfirst.collector_processor.scoring.process import Job, asked
from redfirst.collector_processor.scoring.span_source import SpanSource
from redfirst.collector_processor.scoring.worker import revision_of_all, score
from redfirst.evaluators.check import Check

Json = Any


class InlineScoring:
    """A ``Scoring`` that answers before ``submit`` returns. It bounds neither time nor memory."""

    def __init__(
        self,
        journal: Path,
        checks: Iterable[Check],
        on_answer: Callable[[Job, Mapping[str, Json]], None],
    ) -> None:
        self._source = SpanSource(journal)
        self._checks = tuple(checks)
        self._on_answer = on_answer
        self.revision = revision_of_all(self._checks)

    def submit(self, jobs: Sequence[Job]) -> None:
        """Judge them, one after the other."""
        for number, job in enumerate(jobs):
            answer = score(self._source, self._checks, orjson.loads(orjson.dumps(asked(number, job))))
            self._on_answer(job, {**answer, "revision": self.revision})

    def close(self) -> None:
        """Close the journal's files."""
        self._source.close()
