"""Files and directories of OTLP as one stream of spans and log records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from redfirst.evaluators.errors import UnreadableInput
from redfirst.evaluators.otlp import decode
from redfirst.evaluators.otlp_json import NotOtlp
from redfirst.evaluators.span import LogRecord, Span

SUFFIXES = (".pb", ".bin", ".json", ".jsonl", ".ndjson", ".otlp", ".binpb", ".protobuf")
"""Names that are read in a directory, with or without ``.gz``. A file named on its own is always read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Everything that was read, and a report of what was not."""

    spans: Sequence[Span] = ()
    logs: Sequence[LogRecord] = ()
    files: int = 0
    skipped: Mapping[str, int] = field(default_factory=Counter)
    """Files of a directory that were not read, by reason."""
    refused: Mapping[str, int] = field(default_factory=Counter)
    """Records that were left out of files otherwise good, by reason."""


def read_files(paths: Iterable[str | Path]) -> Stream:
    """All paths as one stream, in the order given; directories in sorted order, with all below them.

    Raises:
        UnreadableInput: a path is not there, or a file named by the caller, or one that looks like
            OTLP, is not; the message names the file and, where there are lines, the line.
    """
    spans: list[Span] = []
    logs: list[LogRecord] = []
    skipped: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    files = 0
    for path, named in files_below(paths, skipped, SUFFIXES, "OTLP"):
        found = _decoded(path, named, skipped)
        if found is None:
            continue
        files += 1
        spans.extend(found[0])
        logs.extend(found[1])
        refused.update(found[2])
    return Stream(spans=spans, logs=logs, files=files, skipped=skipped, refused=refused)


def files_below(
    paths: Iterable[str | Path], skipped: Counter[str], suffixes: tuple[str, ...], kind: str
) -> Iterator[tuple[Path, bool]]:
    """Each file to read and whether the caller named it; directories in sorted order, with all below them.

    Raises:
        UnreadableInput: a path is not there.
    """
    for given in paths:
        path = Path(given)
        if path.is_dir():
            for inner in sorted(path.rglob("*")):
                if not inner.is_file():
                    continue
                if any(part.startswith(".") for part in inner.relative_to(path).parts):
                    skipped["hidden"] += 1  # kept replays, environments, version control
                elif _plain_name(inner).endswith(suffixes):
                    yield inner, False
                else:
                    skipped[f"not named like {kind}"] += 1
        elif path.exists():
            yield path, True
        else:
            raise UnreadableInput(f"{path}: there is no such file or directory.")


def _plain_name(path: Path) -> str:
    return path.name.lower().removesuffix(".gz")


def _decoded(
    path: Path, named: bool, skipped: Counter[str]
) -> tuple[Sequence[Span], Sequence[LogRecord], Mapping[str, int]] | None:
    try:
        body = path.read_bytes()
    except OSError as problem:
        raise UnreadableInput(f"{path}: cannot be read: {problem.strerror}.") from problem
    try:
        found = decode(body, signal="logs" if ".logs." in path.name.lower() else None)
    except NotOtlp as problem:
        if named:
            raise UnreadableInput(f"{path}: {problem}") from problem
        skipped["JSON, but not OTLP"] += 1  # a directory may hold other JSON beside the traces
        return None
    except UnreadableInput as problem:
        raise UnreadableInput(f"{path}: {problem}") from problem
    return found.spans, found.logs, found.refusals()
