"""Any mix of result files, logs, kept runs and stores as one list of trials."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from redfirst.collector_processor.home import Home
from redfirst.collector_processor.reliability.results import inspect_log, lines, tau
from redfirst.collector_processor.reliability.results.fields import mapping
from redfirst.collector_processor.reliability.results.kept import kept_folders, kept_trials
from redfirst.collector_processor.reliability.results.stored import stored_trials
from redfirst.collector_processor.reliability.trial import Trial, distinct, renumbered
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.evaluators.errors import UnreadableInput
from redfirst.evaluators.otlp import unzipped

Json = Any

EXPECTED = (
    "JSON lines with task, trial and passed; a results file of τ-bench or τ²-bench; a log of Inspect; a kept run; "
    "a store"
)
_SUFFIXES = (".json", ".jsonl", ".ndjson", ".eval")
_GZIP, _ZIP, _SQLITE = b"\x1f\x8b", b"PK\x03\x04", b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How results are to be read, where they leave a choice."""

    scorer: str | None = None
    """The score of an Inspect log that counts."""
    mode: str | None = None
    """The mode of kept runs that count."""
    agent: str | None = None
    """The agent of a store whose runs count."""
    renumber: bool = False
    """Whether runs are numbered anew per task, because every file numbers its own from 0."""


@dataclass(frozen=True, slots=True)
class Results:
    """The trials, and what of the files was not read."""

    trials: tuple[Trial, ...]
    notes: tuple[str, ...] = field(default=())


def read_results(paths: Sequence[str | Path], how: Reading = Reading()) -> Results:
    """All trials of the paths, in the order given.

    Raises:
        UnreadableInput: a path is not there or of no kind that is known, a record is wrong, or a trial stands there
            twice; the message names the place.
        ConfigurationError: the results leave a choice that ``how`` does not make.
        StoreRefused: a store cannot be opened.
        MissingExtra: a file is packed in a way that nothing installed unpacks.
    """
    unread: Counter[str] = Counter()
    found = [trial for path in paths for trial in _of_path(Path(path), how, unread)]
    if not found:
        raise UnreadableInput(f"{', '.join(map(str, paths))}: no run in it.")
    notes = [f"keys not read: {', '.join(sorted(unread))}"] if unread else []
    return Results(renumbered(found) if how.renumber else distinct(found), tuple(notes))


def _of_path(path: Path, how: Reading, unread: Counter[str]) -> Iterable[Trial]:
    if path.is_dir():
        return _of_folder(path, how, unread)
    try:
        body = path.read_bytes()
    except OSError as problem:
        raise UnreadableInput(f"{path}: cannot be read: {problem.strerror}.") from problem
    if body.startswith(_SQLITE):
        return _of_store(path, how)
    return _of_body(body, str(path), how, unread)


def _of_folder(folder: Path, how: Reading, unread: Counter[str]) -> Iterable[Trial]:
    """A home's store, kept runs, or a folder of logs."""
    store = Home(folder).store
    if store.is_file():
        return _of_store(store, how)
    kept = kept_folders(folder)
    if kept:
        return kept_trials(kept, mode=how.mode)
    inner = [path for path in sorted(folder.rglob("*")) if path.name.removesuffix(".gz").endswith(_SUFFIXES)]
    if not inner:
        raise UnreadableInput(f"{folder}: holds no results; expected: {EXPECTED}.")
    return [trial for path in inner for trial in _of_path(path, how, unread)]


def _of_store(path: Path, how: Reading) -> Iterable[Trial]:
    reader = SqliteReader(path)
    try:
        return list(stored_trials(reader, agent=how.agent))
    finally:
        reader.close()


def _of_body(body: bytes, place: str, how: Reading, unread: Counter[str]) -> Iterable[Trial]:
    if body.startswith(_GZIP):
        try:
            body = unzipped(body)
        except UnreadableInput as problem:
            raise UnreadableInput(f"{place}: {problem}") from problem
    body = body.removeprefix(codecs.BOM_UTF8)
    if body.startswith(_ZIP):
        return inspect_log.archive_trials(place, body, scorer=how.scorer)
    if not body.strip():
        raise UnreadableInput(f"{place}: the file is empty; expected: {EXPECTED}.")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return _of_lines(body, place, unread)
    return _of_document(document, place, how, unread)


def _of_document(document: Json, place: str, how: Reading, unread: Counter[str]) -> Iterable[Trial]:
    if tau.is_tau(document):
        return tau.tau_trials(document, place)
    if tau.is_tau2(document):
        return tau.tau2_trials(document, place)
    if inspect_log.is_log(document):
        return inspect_log.log_trials(document, place, scorer=how.scorer)
    records = document if isinstance(document, list) else [document]
    return [_of_record(one, f"{place}: record {number}", unread) for number, one in enumerate(records)]


def _of_lines(body: bytes, place: str, unread: Counter[str]) -> Iterator[Trial]:
    for number, line in enumerate(body.splitlines(), 1):
        if not line.strip():
            continue
        where = f"{place}: line {number}"
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as problem:
            raise UnreadableInput(f"{where}: not JSON ({problem}); expected: {EXPECTED}.") from problem
        yield _of_record(record, where, unread)


def _of_record(given: Json, where: str, unread: Counter[str]) -> Trial:
    record: Mapping[str, Json] = mapping(given, where)
    if tau.is_wrapped(record):
        return tau.wrapped_trial(record, where)
    if tau.is_tau([record]):
        return tau.tau_trial(record, where)
    if not lines.is_line(record):
        raise UnreadableInput(f"{where}: no result of a run; expected: {EXPECTED}.")
    unread.update(lines.unread(record))
    return lines.trial_of(record, where)
