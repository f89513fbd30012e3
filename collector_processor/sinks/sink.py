"""The seam: what every kind of backend must do, and the request that it does it with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from redfirst.collector_processor.sinks.scores import RunScores

Json = Any


class NotTaken(Exception):
    """A backend did not take a request."""

    def __init__(
        self, reason: str, *, again: bool, whole: bool = False, after: float | None = None, said: str = ""
    ) -> None:
        super().__init__(f"{reason}: {said}" if said else reason)
        self.reason = reason
        """A short name for counters: ``connection``, ``status_429``, ``not_there`` …"""
        self.again = again
        """Whether it is worth trying again."""
        self.whole = whole
        """Whether it is the backend that cannot be had, and not this run."""
        self.after = after
        """Seconds that it asked to wait."""


class Send(Protocol):
    """Makes one request to the backend: a body is sent as JSON, bytes as protobuf."""

    def __call__(self, method: str, path: str, body: Json | bytes | None = None) -> Json:
        """The answer's JSON; None where it has none.

        Raises:
            NotTaken: it is no success. What is not there yet has the reason ``not_there``.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a backend may hold of a run: everything that was ever sent, and not withdrawn since."""

    run_id: str
    trace_id: str
    root_span_id: str
    session_id: str | None
    names: tuple[str, ...]
    """Of scores of the run."""
    places: tuple[tuple[str, str], ...] = ()
    """Span ids and names of scores on single spans."""
    target: str = ""
    """What the backend itself calls the run, where that is not its trace's id."""

    def to_json(self) -> dict[str, Json]:
        """As it is stored."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Json]) -> Told:
        """As it was stored."""
        return cls(
            **{
                **value,
                "names": tuple(value["names"]),
                "places": tuple((span, name) for span, name in value["places"]),
            }
        )

    def moved(self, now: Told) -> bool:
        """Whether the scores belong to something else now: a root that came late, a session that was told late."""
        places = [(told.trace_id, told.root_span_id, told.session_id, told.target) for told in (self, now)]
        return places[0] != places[1]

    def beyond(self, names: Collection[str]) -> tuple[str, ...]:
        """The names that are not among these."""
        return tuple(name for name in self.names if name not in names)


class Sink(Protocol):
    """One kind of backend. Knows its requests and nothing of queues, waiting or counting.

    Every call may be made twice, also when the first was cut off anywhere between: the second leaves what one would
    have left. After ``tell`` the backend holds these scores of the run and none of an earlier version; after
    ``withdraw`` it holds none. A backend that has no way to do that says so in ``KINDS``.
    """

    def told(self, about: RunScores) -> Told:
        """What ``tell`` is going to leave in the backend."""
        ...

    def tell(self, about: RunScores, before: Told, send: Send) -> None:
        """Send the scores; ``before`` is what the backend may hold already.

        Raises:
            NotTaken: a request was not.
        """
        ...

    def withdraw(self, before: Told, send: Send) -> None:
        """Take back every score of a run.

        Raises:
            NotTaken: a request was not; what is not there any more was.
        """
        ...


def told_of(about: RunScores, *, names: Collection[str] | None = None, target: str = "") -> Told:
    """Scores of the run alone; without ``names`` all of them."""
    return Told(
        run_id=about.run_id,
        trace_id=about.trace_id,
        root_span_id=about.root_span_id,
        session_id=about.session_id,
        names=about.names if names is None else tuple(names),
        target=target,
    )


def gone(send: Send, method: str, path: str, body: Json | None = None) -> None:
    """Delete something; what is not there has been deleted.

    Raises:
        NotTaken: it may still be there.
    """
    try:
        send(method, path, body)
    except NotTaken as problem:
        if problem.reason != "not_there":
            raise
