"""The mixture of runs that ``soak.py`` sends.

Of the runs of ``ingest_runs.py``, a tenth calls one tool again and again with the same arguments and is to be flagged; a
quarter names an agent and a model that no other run names, as a careless sender would; a twentieth misses a span, which
comes when the run has been judged, so that it is judged again.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ingest_runs import SPANS, Template, templates

from redfirst.collector_processor.scoring.slices import Slice, joined

FLAGGED, NAMED, LATE = 0.1, 0.25, 0.05
_NUMBER = "00000000"
"""Stands where a run's own number goes, which is as long: no length in the message changes."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run to send."""

    trace_id: str
    spans: tuple[bytes, ...]
    late: tuple[bytes, ...]
    """Of its spans, what is sent when it has been judged."""
    flagged: bool
    """Whether it is to be flagged."""


class Mixture:
    """Runs without end, the same ones in the same order for one seed, but for their ids."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - made-up runs
        session = f"s-{_NUMBER}"
        own = {"agent": f"agent-{_NUMBER}", "model": f"model-{_NUMBER}"}
        self._parts = {
            (flagged, named): templates(session=session, stuck=flagged, **(own if named else {}))
            for flagged in (False, True)
            for named in (False, True)
        }
        self._made = 0

    def run(self, *, late: bool = True) -> Run:
        """The next one; none is ``late`` where that would be in the way."""
        flagged, named, misses = (self._chance.random() < share for share in (FLAGGED, NAMED, LATE))
        self._made += 1
        number = f"{self._made:08d}".encode()
        trace_id, root = secrets.token_bytes(16), secrets.token_bytes(8)
        first, *rest = (
            replace(part, rest=part.rest.replace(_NUMBER.encode(), number)).made(trace_id, root)
            for part in self._parts[flagged, named]
        )
        missing = (rest.pop(SPANS // 2 - 1),) if late and misses else ()
        return Run(trace_id.hex(), (*rest, first), missing, flagged)


def body(spans: Sequence[bytes]) -> bytes:
    """A request with these spans."""
    return joined([Slice(b"", b"", "", "", span) for span in spans])


def small_runs(count: int) -> tuple[list[str], bytes]:
    """A request with runs of one span each, and their ids."""
    part: Template = templates()[0]
    ids = [secrets.token_bytes(16) for _ in range(count)]
    return [one.hex() for one in ids], body([part.made(one, one[:8]) for one in ids])
