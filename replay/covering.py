"""Which scenario keeps a failure already: the same agent, check, meaning and subject."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redfirst.evaluators import RedfirstError, Trajectory, Verdict
from redfirst.evaluators.check import judge
from redfirst.replay.outcome import Signature
from redfirst.replay.project import Project
from redfirst.replay.proving import Refused, incident
from redfirst.replay.raw_failure import ASKED_KEY, AnotherKey, RawFailure, asked_as, raw_failure
from redfirst.replay.scenario import SCENARIO_FILE, load
from redfirst.replay.standing import standing

Json = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """A scenario, and the failure that it is about."""

    path: Path
    agent: str
    proven: bool
    """Whether it gates: a proven one that fails again in production has regressed, or its fix is not out yet."""
    signature: Signature
    raw: RawFailure | None = None
    """The same before values in it were replaced by pseudonyms; ``None`` where none were."""

    def is_of(self, failed: Signature) -> bool:
        """Whether a run that failed so failed in all of this."""
        if not self.signature:
            return False
        return self.signature <= failed if self.raw is None else self.raw.within(failed)

    @property
    def scenario(self) -> str:
        """The name of its folder."""
        return self.path.name

    @property
    def said(self) -> str:
        """In one line."""
        return f"covered by scenario {self.scenario} ({'proven' if self.proven else 'draft'})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Covers:
    """The scenarios of a project, and what could not be read of them."""

    known: tuple[Cover, ...] = ()
    unreadable: tuple[str, ...] = ()
    """Why a scenario is not among them, one line each."""
    untold: tuple[str, ...] = ()
    """The scenarios with pseudonyms of another key: whether a run is one's failure again cannot be told."""

    @property
    def said_untold(self) -> str:
        """In one line; empty where there is none."""
        if not self.untold:
            return ""
        more = f" and {len(self.untold) - 1} more" if len(self.untold) > 1 else ""
        return (
            f"whether scenario {self.untold[0]}{more} covers a run cannot be told: its pseudonyms were made with another "
            f"key (REDFIRST_REDACTION_KEY, or redaction.key of the home it was frozen in)."
        )

    def of(self, agent: str, failed: Signature) -> Cover | None:
        """The scenario whose whole failure this is again; a proven one before a draft, then by name."""
        same = (one for one in self.known if one.agent == agent and one.is_of(failed))
        return min(same, key=lambda one: (not one.proven, one.scenario), default=None)

    def of_run(self, run: Trajectory, verdicts: Iterable[Verdict]) -> Cover | None:
        """The same for a run with its verdicts."""
        failed = frozenset().union(*(verdict.signature() for verdict in verdicts if verdict.flags))
        return self.of(run.agents[0] if run.agents else "", failed)


def covers_of(project: Project) -> Covers:
    """The scenarios of a project."""
    return covers(project.scenarios, project.redaction_key())


def covers(scenarios: Path, key: bytes | None = None) -> Covers:
    """The scenarios in the folders of a folder; none where there is no such folder. ``key`` is that of pseudonyms."""
    known: list[Cover] = []
    unreadable: list[str] = []
    untold: list[str] = []
    for path in sorted(scenarios.glob(f"*/{SCENARIO_FILE}")):
        try:
            known.append(_cover(path.parent, key))
        except AnotherKey:
            untold.append(path.parent.name)
        except Refused as problem:
            unreadable.append(f"{path.parent}: {problem}; freeze the run again.")
        except RedfirstError as problem:
            unreadable.append(str(problem))
    return Covers(known=tuple(known), unreadable=tuple(unreadable), untold=tuple(untold))


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """The requests and traces that scenarios were frozen from."""

    requests: frozenset[str] = frozenset()
    traces: frozenset[str] = frozenset()
    """Trace ids: pseudonyms may stand in a request."""
    hashed: tuple[tuple[str, str], ...] = ()
    """Of each request with pseudonyms: its trace id, and the keyed hash of its raw words."""
    key: bytes = b""

    def has(self, run: Trajectory) -> bool:
        """Whether one of them is of this run, or of the same request."""
        if run.request in self.requests or not self.traces.isdisjoint(run.trace_ids):
            return True
        return run.request is not None and any(
            asked_as(run.request, key=self.key, trace_id=trace_id) == kept for trace_id, kept in self.hashed
        )


def frozen_already(scenarios: Path, key: bytes | None = None) -> Frozen:
    """What the scenarios in the folders of a folder are of; one that cannot be read is of nothing."""
    runs: list[Trajectory] = []
    hashed: list[tuple[str, str]] = []
    for path in sorted(scenarios.glob(f"*/{SCENARIO_FILE}")):
        with suppress(RedfirstError, Refused):  # run says of it what is wrong
            folder = load(path.parent)
            runs.append(incident(folder))
            if (kept := folder.scenario.origin.get(ASKED_KEY)) is not None:
                hashed.append((runs[-1].trace_ids[0], str(kept)))
    return Frozen(
        requests=frozenset(run.request for run in runs if run.request is not None),
        traces=frozenset(trace for run in runs for trace in run.trace_ids),
        hashed=tuple(hashed),
        key=key or b"",
    )


def recorded_signature(verdicts: Iterable[Mapping[str, Json]]) -> Signature:
    """How a stored run failed; a record of an older version, which names no subjects, says nothing."""
    return frozenset(
        (one["check"], one["revision"], subject) for one in verdicts for subject in one.get("subjects", ())
    )


def _cover(path: Path, key: bytes | None) -> Cover:
    folder = load(path)
    verdicts = judge(incident(folder), folder.scenario.targets())
    signature: Signature = frozenset().union(*(verdict.signature() for verdict in verdicts))
    return Cover(
        path=path,
        agent=folder.scenario.agent,
        proven=standing(folder).proven,
        signature=signature,
        raw=raw_failure(folder.scenario.origin, signature, key),
    )
