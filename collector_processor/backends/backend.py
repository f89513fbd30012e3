"""What a backend is asked for: the spans of a trace, and the newest traces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from redfirst.collector_processor.backends.getting import BackendUnreadable
from redfirst.collector_processor.importing.formats import BadRecord, Document, Format, Place
from redfirst.evaluators.span import Span

Json = Any


class Backend(Protocol):
    """A store of traces with an API. Reads only; keeps nothing between calls."""

    name: str
    """As the command line names it."""
    address: str

    def trace(self, trace_id: str) -> Sequence[Span]:
        """The spans of a trace, by its 32 hex digits.

        Raises:
            NotThere: there is no such trace.
            BackendUnreadable: the server is away, or answers something else.
        """
        ...

    def newest(self, most: int, like: Sequence[Span] = ()) -> Iterable[str]:
        """Ids of traces, the newest first; where the API asks for it, those of the service of ``like``."""
        ...


def spans_of(form: Format, answers: Iterable[Json], where: str) -> list[Span]:
    """The spans in answers of an API, by the importer that reads its exported files.

    Raises:
        BackendUnreadable: an answer is not in the format.
    """
    documents = [Document(where="", value=answer) for answer in answers]
    spans: list[Span] = []
    try:
        for number, record in enumerate(form.records(documents)):
            spans += form.spans(record, Place(source=where, number=number))
    except BadRecord as problem:
        raise BackendUnreadable(f"{form.name}: {where} answered what cannot be read: {problem}.") from problem
    return spans
