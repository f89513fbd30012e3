"""What a backend is told of one version of a run: a score per check and one for the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redfirst.collector_processor.sinks.root import Root
from redfirst.collector_processor.storing.store import StoredRun

Json = Any

RUN = "redfirst"
"""Name of the score of the run as a whole; those of checks are called this, a full stop and the check."""
LEAST, MOST = 0.0, 1.0
"""Range of every score."""
_LONGEST = 2000
_TOLD = ("passed", "failed", "inconclusive")
_FLAGGING = ("flag", "page")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One named answer about a run."""

    name: str
    label: str
    """``passed``, ``failed`` or ``inconclusive``; of the run, ``clean`` or ``flagged``."""
    value: float | None
    """0 to 1, the ratio where the check has one, else 1 for passed and 0 for failed; None when inconclusive."""
    because: str
    revision: str = ""
    severity: str = ""
    places: tuple[tuple[str, str], ...] = ()
    """Span ids with a note: where a failure is seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScores:
    """One version of a run for a backend."""

    run_id: str
    version: int
    root: Root
    """The span the verdict belongs to; its trace is the one that ends the run."""
    session_id: str | None
    agent: str | None
    flagged: bool
    failed: tuple[str, ...]
    """The checks that flag it."""
    judged_ns: int
    scores: tuple[Score, ...]

    @property
    def trace_id(self) -> str:
        """In hex."""
        return self.root.span.trace_id.hex()

    @property
    def root_span_id(self) -> str:
        """In hex."""
        return self.root.span.span_id.hex()

    @property
    def names(self) -> tuple[str, ...]:
        """Of every score."""
        return tuple(score.name for score in self.scores)


def scores_of(run: StoredRun, root: Root) -> RunScores:
    """The scores of a run that was judged; a check that did not apply has none."""
    record: Mapping[str, Json] = run.record or {}
    verdicts = [verdict for verdict in record.get("verdicts", ()) if verdict["outcome"] in _TOLD]
    return RunScores(
        run_id=run.run_id,
        version=run.version,
        root=root,
        session_id=record.get("session_id"),
        agent=run.agent,
        flagged=run.flagged,
        failed=tuple(run.failed),
        judged_ns=run.judged_ns,
        scores=(_whole(run.flagged, verdicts), *map(_score, verdicts)) if record else (),
    )


def _whole(flagged: bool, verdicts: list[Mapping[str, Json]]) -> Score:
    guilty = [
        verdict for verdict in verdicts if verdict["outcome"] == "failed" and verdict["severity"] in _FLAGGING
    ]
    unclear = [verdict["check"] for verdict in verdicts if verdict["outcome"] == "inconclusive"]
    because = "; ".join(f"{verdict['check']}: {verdict['because']}" for verdict in guilty)
    if not guilty:
        because = f"no check flags the run{'; inconclusive: ' + ', '.join(unclear) if unclear else ''}"
    return Score(
        name=RUN,
        label="flagged" if flagged else "clean",
        value=LEAST if flagged else MOST,
        because=because[:_LONGEST],
    )


def _score(verdict: Mapping[str, Json]) -> Score:
    outcome, value = verdict["outcome"], verdict["score"]
    if outcome == "inconclusive":
        value = None
    elif value is None:
        value = MOST if outcome == "passed" else LEAST
    return Score(
        name=f"{RUN}.{verdict['check']}",
        label=outcome,
        value=value,
        because=verdict["because"][:_LONGEST],
        revision=verdict["revision"],
        severity=verdict["severity"],
        places=tuple(
            (one["span_id"], one.get("note") or "") for one in verdict["evidence"] if one.get("span_id")
        ),
    )
