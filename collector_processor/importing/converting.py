"""Files of records into OTLP files, one for each, with an account of what could not be used."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from redfirst.collector_processor.importing.documents import SUFFIXES, documents
from redfirst.collector_processor.importing.formats import (
    BadRecord,
    Document,
    Format,
    Place,
    Record,
    found,
    joined,
)
from redfirst.collector_processor.importing.registry import FORMATS, format_of
from redfirst.collector_processor.importing.writing import OtlpFile, output_name
from redfirst.collector_processor.recorded.files import files_below
from redfirst.evaluators.errors import UnreadableInput
from redfirst.evaluators.span import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A record, or a whole file, that was left out."""

    where: str
    """File and place in it."""
    reason: str


@dataclass(slots=True, kw_only=True)
class Account:
    """What an import did."""

    files: int = 0
    records: Counter[str] = field(default_factory=Counter)
    """Records imported, by format."""
    traces: set[str] = field(default_factory=set)
    spans: int = 0
    refused: list[Refusal] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    """Files of a directory that were not read, by reason."""
    written: list[Path] = field(default_factory=list)
    copies: Counter[str] = field(default_factory=Counter)
    """How often each content was seen."""


def convert(paths: Sequence[str], out: Path, wanted: Format | None) -> Account:
    """Every file under the paths into ``out``. A file that cannot be read is refused whole; a directory's files of
    other formats are skipped and counted.

    Args:
        wanted: the format of all files; found out for each file when ``None``.

    Raises:
        UnreadableInput: a path is not there.
        CannotWrite: the output folder cannot be written.
    """
    account = Account()
    names: set[str] = set()
    for path, named in files_below(paths, account.skipped, SUFFIXES, "JSON"):
        try:
            _file(path, named, out, wanted, names, account)
        except UnreadableInput as problem:
            account.refused.append(Refusal(where=str(path), reason=str(problem)))
    return account


def _file(
    path: Path, named: bool, out: Path, wanted: Format | None, names: set[str], account: Account
) -> None:
    values: list[Document] = []
    refused: list[Refusal] = []
    for item in documents(path):
        if isinstance(item, BadRecord):
            refused.append(Refusal(where=str(path), reason=str(item)))
        else:
            values.append(item)
    form = wanted or next((one for value in values[:_LOOKED_AT] if (one := format_of(value.value))), None)
    if form is None or not any(form.claims(value.value) for value in values):
        what = found(values[0].value) if values else "no JSON"
        if not named:
            account.skipped["JSON, but in no format that is known" if values else "not JSON"] += 1
            return
        kinds = f"a file in the format {wanted.name}" if wanted else _kinds()
        otlp = bool(values) and isinstance(values[0].value, Mapping) and not _OTLP.isdisjoint(values[0].value)
        hint = " That is OTLP, which 'redfirst score' reads as it is." if otlp else ""
        raise UnreadableInput(f"expected {kinds}, found {what}.{hint}")
    account.files += 1
    account.refused += refused
    mine: list[Document] = []
    for value in values:
        if form.claims(value.value):
            mine.append(value)
        else:
            reason = f"{value.where}: not in the format {form.name}: {found(value.value)}"
            account.refused.append(Refusal(where=str(path), reason=reason))
    with OtlpFile(out, output_name(path, form.name, names)) as target:
        for spans in _converted(path, form, form.records(mine), account):
            target.write(spans)
            account.spans += len(spans)
            account.traces.update(span.trace_id for span in spans)
    account.written += target.paths


_OTLP = frozenset({"resourceSpans", "resourceLogs"})
_LOOKED_AT = 10
"""Lines of a file by which its format is told, so that one bad line does not hide it."""


def _kinds() -> str:
    return "a file in one of the formats " + ", ".join(form.name for form in FORMATS)


def _converted(path: Path, form: Format, records: Iterable[Record], account: Account) -> Iterator[list[Span]]:
    for record in records:
        content = json.dumps([form.name, record.value], sort_keys=True, default=str)
        place = Place(
            source=joined(path.name, record.where),
            number=sum(account.records.values()),
            copy=account.copies[content],
        )
        try:
            spans = list(form.spans(record, place))
        except BadRecord as problem:
            account.refused.append(Refusal(where=joined(str(path), record.where), reason=str(problem)))
            continue
        account.copies[content] += 1
        account.records[form.name] += 1
        yield spans
