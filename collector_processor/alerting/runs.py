"""The runs that alerts count: what of a stored run matters to them, and which version of it."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeVar

from redfirst.collector_processor.alerting.policy import ABANDONED, COVERAGE, INFRASTRUCTURE, Sample, Stream
from redfirst.collector_processor.alerting.reference import KNOWN
from redfirst.collector_processor.endings import APART, ending_of, termination_of
from redfirst.collector_processor.storing.store import RunState, StoredRun, request_hash
from redfirst.evaluators.check import severity_named
from redfirst.evaluators.trajectory import Stop
from redfirst.evaluators.verdict import Outcome, Severity
from redfirst.replay.covering import recorded_signature
from redfirst.replay.outcome import Signature

_LONGEST = 300
_T = TypeVar("_T")


@lru_cache(maxsize=8192)
def _shared(value: _T) -> _T:
    """An equal value that is there already: very many runs are held, and what is said of them is mostly the same."""
    return value


class Began(NamedTuple):
    """The first run of a new version of the agent, or with another model."""

    at_ns: int
    what: str
    """``version`` or ``model``."""
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One version of a run, as far as alerts need it."""

    run_id: str
    version: int
    judged_ns: int
    at_ns: int | None
    """When it was judged first; None when it has no verdicts."""
    tenant: str
    agent: str
    session: str = ""
    agent_version: str = ""
    models: tuple[str, ...] = ()
    trace_id: str = ""
    """Its first trace, for links."""
    failed: tuple[tuple[str, str], ...] = ()
    """The checks that flag it, each with its reason."""
    signature: Signature = frozenset()
    """How it failed, for finding the scenario that keeps that."""
    decided: frozenset[str] = frozenset()
    """The checks which could have flagged it and came to an answer; empty when it is no observation."""
    ending: Stop = Stop.UNKNOWN
    ended_because: str = ""
    task: str = ""
    """The hash of the words that it began with; empty when they are not known."""
    part: bool = False
    """Its spans belong to a run of several traces, which is what counts."""


def observed(versions: Sequence[StoredRun]) -> Observed:
    """What alerts see of a run, from all of its versions, oldest first; at least one."""
    latest = versions[-1]
    scored = [run.judged_ns for run in versions if run.state is RunState.SCORED]
    record = latest.record or {} if latest.state is RunState.SCORED else {}
    verdicts = record.get("verdicts") or ()
    could = [one for one in verdicts if severity_named(one["severity"]) >= Severity.FLAG]
    trace_id = next(iter((latest.record or {}).get("trace_ids") or ()), latest.run_id)
    return Observed(
        run_id=latest.run_id,
        version=latest.version,
        judged_ns=latest.judged_ns,
        at_ns=min(scored, default=None),
        tenant=_shared(latest.tenant),
        agent=_shared(latest.agent or ""),
        session=_shared((latest.record or {}).get("session_id") or ""),
        agent_version=_shared(((latest.record or {}).get("versions") or {}).get("agent") or ""),
        models=_shared(tuple(((latest.record or {}).get("versions") or {}).get("models") or ())),
        trace_id=latest.run_id if trace_id == latest.run_id else trace_id,
        failed=tuple((one["check"], one["because"]) for one in could if one["outcome"] == Outcome.FAILED),
        signature=recorded_signature(one for one in could if one["outcome"] == Outcome.FAILED),
        decided=_shared(
            frozenset(one["check"] for one in could if one["outcome"] in (Outcome.FAILED, Outcome.PASSED))
        ),
        ending=ending_of(record),
        ended_because=_shared(termination_of(record).get("because", "")),
        task=_shared(request_hash(record["request"]) if record.get("request") else ""),
        part=latest.state is RunState.PART,
    )


class Observations:
    """The runs that may still count. Taking them in any order, and again, ends in the same."""

    def __init__(self, per_check: bool = False) -> None:
        self._per_check = per_check
        self._runs: dict[str, Observed] = {}
        self._parts: set[str] = set()
        """Of them, those that are in no stream; every other is in its agent's stream about coverage."""
        self._streams: dict[Stream, list[Sample]] = {}
        self._changed: dict[Stream, int] = {}

    def take(self, seen: Observed) -> None:
        """Take a version of a run in. The newest is what counts, at the time of the first that had verdicts."""
        before = self._runs.get(seen.run_id)
        if before is not None and before.version >= seen.version:
            return
        self._runs[seen.run_id] = seen
        (self._parts.add if seen.part else self._parts.discard)(seen.run_id)
        gone, come = set(self._samples(before)), set(self._samples(seen))
        for stream, sample in gone - come:
            self._streams[stream].remove(sample)
        held: dict[Sample, Sample] = {}
        for stream, sample in come - gone:
            insort(self._streams.setdefault(stream, []), held.setdefault(sample, sample))
        for stream, sample in gone ^ come:
            self._changed[stream] = min(sample.at_ns, self._changed.get(stream, sample.at_ns))

    def changed(self, stream: Stream) -> int | None:
        """The time of the earliest run that came or went since this was asked last; None when none did."""
        return self._changed.pop(stream, None)

    def samples(self, stream: Stream) -> Sequence[Sample]:
        """The runs of a stream, in order of time."""
        return self._streams.get(stream, ())

    def streams(self) -> Iterable[Stream]:
        """Every stream that has runs; one of a task needs as many as a past does."""
        return [
            stream for stream, samples in self._streams.items() if not stream.task or len(samples) >= KNOWN
        ]

    def run(self, run_id: str) -> Observed:
        """What is known of a run."""
        return self._runs[run_id]

    def within(self, stream: Stream, start_ns: int, end_ns: int) -> list[Sample]:
        """The runs of a stream after ``start_ns`` and up to ``end_ns``."""
        return [sample for sample in self.samples(stream) if start_ns < sample.at_ns <= end_ns]

    def began(self, stream: Stream, start_ns: int, end_ns: int) -> list[Began]:
        """The versions and models that runs of a stream first named between these times, in order of time. Those of its
        first known run are not news."""
        known: set[tuple[str, str]] = set()
        found: list[Began] = []
        for number, sample in enumerate(self.samples(stream)):
            run = self.run(sample.run_id)
            named = [("version", run.agent_version)] if run.agent_version else []
            for new in [*named, *(("model", model) for model in run.models)]:
                if new not in known and number:
                    found.append(Began(sample.at_ns, *new))
                known.add(new)
        return [one for one in found if start_ns <= one.at_ns <= end_ns]

    def forget(self, until_ns: int) -> None:
        """Let go of runs up to this time."""
        for run_id in [part for part in self._parts if _at(self._runs[part]) <= until_ns]:
            self._parts.remove(run_id)
            del self._runs[run_id]
        for stream, samples in self._streams.items():
            old = bisect_right(samples, until_ns, key=lambda sample: sample.at_ns)
            if stream.about == COVERAGE:
                for sample in samples[:old]:
                    del self._runs[sample.run_id]
            del samples[:old]
        self._streams = {stream: samples for stream, samples in self._streams.items() if samples}
        self._changed = {stream: at for stream, at in self._changed.items() if stream in self._streams}

    def _samples(self, seen: Observed | None) -> Iterator[tuple[Stream, Sample]]:
        if seen is None or seen.part:
            return
        at_ns = _at(seen)
        about = Stream(seen.tenant, seen.agent, about=COVERAGE)
        unjudged = not seen.decided and seen.ending not in APART
        yield about, Sample(at_ns, seen.run_id, unjudged, seen.session)
        if seen.at_ns is None:
            return
        yield from _endings(seen, at_ns)
        if seen.ending in APART or not seen.decided:
            return
        failed = {check for check, _ in seen.failed}
        flagged = (
            {check: check in failed for check in seen.decided} if self._per_check else {"": bool(failed)}
        )
        for check, bad in flagged.items():
            sample = Sample(at_ns, seen.run_id, bad, seen.session, seen.agent_version)
            stream = Stream(seen.tenant, seen.agent, check)
            yield stream, sample
            if seen.task:
                yield stream._replace(task=seen.task), sample


def _at(seen: Observed) -> int:
    """When it counts."""
    return seen.judged_ns if seen.at_ns is None else seen.at_ns


def _endings(seen: Observed, at_ns: int) -> Iterator[tuple[Stream, Sample]]:
    """Whether infrastructure ended it, and if not whether it was abandoned; a parked run has not ended."""
    if seen.ending in (Stop.UNKNOWN, Stop.PARKED):
        return
    infra = seen.ending is Stop.INFRA
    yield (
        Stream(seen.tenant, seen.agent, about=INFRASTRUCTURE),
        Sample(at_ns, seen.run_id, infra, seen.session),
    )
    if not infra:
        bad = seen.ending is Stop.ABANDONED
        yield (
            Stream(seen.tenant, seen.agent, about=ABANDONED),
            Sample(at_ns, seen.run_id, bad, seen.session, seen.agent_version),
        )


def reasons(failing: Iterable[Observed], stream: Stream, limit: int = 3) -> list[Mapping[str, object]]:
    """The checks that flagged most of these runs, each with its number of runs and the first reason; of streams about how
    runs end, what the end was."""
    found: dict[str, list[str]] = {}
    for run in failing:
        ended = stream.about in (INFRASTRUCTURE, ABANDONED)
        for name, because in (("termination", run.ended_because),) if ended else run.failed:
            if stream.check in ("", name):
                found.setdefault(name, []).append(because)
    ranked = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        {"check": name, "runs": len(texts), "example": _short(texts[0])} for name, texts in ranked[:limit]
    ]


def _short(text: str) -> str:
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 1] + "…"
