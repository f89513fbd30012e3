"""What an importer is: one format of records, taken apart and turned into spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from redfirst.evaluators.errors import RedfirstError
from redfirst.evaluators.span import Span


class BadRecord(RedfirstError):
    """One record that cannot be used; the others of its file can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One JSON value of a file."""

    where: str
    """Its place in the file: ``line 3``, or empty for the whole."""
    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What can be refused on its own: a run, or a span."""

    where: str
    """``line 3``, ``simulations[4]``."""
    value: object
    context: Mapping[str, object] = field(default_factory=dict)
    """What the file says of all its records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a record stands, for what is made from it."""

    source: str
    """File name and place in it."""
    number: int
    """How many records of the import came before it: runs without times keep the order of their records."""
    copy: int = 0
    """How many records with the very same content came before it: two equal runs are two runs."""


class Format(Protocol):
    """Knows one format. Pure; keeps nothing between calls; what a source does not say stays missing."""

    name: str
    """As the command line names it."""

    def claims(self, document: object) -> bool:
        """Whether a JSON value is in this format."""
        ...

    def records(self, documents: Sequence[Document]) -> Iterator[Record]:
        """The records of one file, in its order; each document is claimed."""
        ...

    def spans(self, record: Record, place: Place) -> Iterable[Span]:
        """The spans of one record; the same record gives the same spans.

        Raises:
            BadRecord: the record cannot be used; the message says what was found.
        """
        ...


def joined(*places: str) -> str:
    """Places inside one another as one text."""
    return " ".join(place for place in places if place)


def found(value: object) -> str:
    """What a value is, for a message."""
    if isinstance(value, Mapping):
        keys = ", ".join(sorted(map(str, value)))
        return (
            f"an object with the keys {keys[:80]}{'…' if len(keys) > 80 else ''}"
            if value
            else "an empty object"
        )
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return "null" if value is None else f"a {type(value).__name__}"
