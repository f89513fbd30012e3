"""OTLP bodies into spans and log records: protobuf, JSON and JSON lines, gzipped or not.

What is not OTLP is an ``UnreadableInput`` that says what was found; one record whose ids cannot be
used is left out and counted, because the rest of its body is still good.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from redfirst.evaluators.errors import UnreadableInput
from redfirst.evaluators.span import LogRecord, Span

Content = Literal["protobuf", "json"]

MAX_BYTES = 2**30
"""Largest body after decompression; beyond it a gzip file is refused, not unpacked."""

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Refused:
    """One record that was left out of a body that was otherwise good."""

    reason: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What a body held."""

    spans: tuple[Span, ...] = ()
    logs: tuple[LogRecord, ...] = ()
    refused: tuple[Refused, ...] = ()

    def __add__(self, other: Decoded) -> Decoded:
        return Decoded(
            spans=self.spans + other.spans, logs=self.logs + other.logs, refused=self.refused + other.refused
        )

    def refusals(self) -> Mapping[str, int]:
        """How many records were refused, by reason."""
        return Counter(item.reason for item in self.refused)


def decode_traces(body: bytes, *, content: Content | None = None) -> list[Span]:
    """The spans of an ``ExportTraceServiceRequest``.

    Raises:
        UnreadableInput: the body is not such a request.
    """
    return list(decode(body, content=content, signal="traces").spans)


def decode_logs(body: bytes, *, content: Content | None = None) -> list[LogRecord]:
    """The records of an ``ExportLogsServiceRequest``.

    Raises:
        UnreadableInput: the body is not such a request.
    """
    return list(decode(body, content=content, signal="logs").logs)


def decode(
    body: bytes, *, content: Content | None = None, signal: Literal["traces", "logs"] | None = None
) -> Decoded:
    """Whatever OTLP the body holds. ``content`` and ``signal`` are found out when they are not given.

    Raises:
        UnreadableInput: the body is not OTLP; the message says what was found, and on which line.
    """
    body = unzipped(body)
    if not body:
        return Decoded()
    if content == "json" or (content is None and _looks_like_json(body)):
        return _decode_json(body)
    from redfirst.evaluators.otlp_protobuf import from_protobuf

    spans, logs, refused = from_protobuf(body, signal)
    return Decoded(spans=tuple(spans), logs=tuple(logs), refused=tuple(Refused(*item) for item in refused))


def unzipped(body: bytes) -> bytes:
    """The body without gzip, when it had any.

    Raises:
        UnreadableInput: the gzip data are damaged, cut short, or larger than ``MAX_BYTES``.
    """
    if not body.startswith(_GZIP):
        return body
    parts: list[bytes] = []
    room = MAX_BYTES
    while body.startswith(_GZIP):
        inflater = zlib.decompressobj(wbits=31)
        try:
            part = inflater.decompress(body, room)
        except zlib.error as problem:
            raise UnreadableInput(f"The gzip data are damaged: {problem}.") from problem
        if inflater.unconsumed_tail:
            raise UnreadableInput(f"The gzip data unpack to more than {MAX_BYTES} bytes; split the file.")
        if not inflater.eof:
            raise UnreadableInput("The gzip data end too early: the file was cut short.")
        parts.append(part)
        room -= len(part)
        body = inflater.unused_data
        if body.startswith(_GZIP) and room <= 0:
            raise UnreadableInput(f"The gzip data unpack to more than {MAX_BYTES} bytes; split the file.")
    return b"".join(parts)


def _looks_like_json(body: bytes) -> bool:
    """A protobuf request begins with 0x0A, which is also a line feed: only then do both need a try."""
    text = body.removeprefix(_BOM).lstrip(b" \t\r\n")
    if not text.startswith((b"{", b"[")):
        return False
    if not body.startswith(b"\n"):
        return True
    from redfirst.evaluators.otlp_protobuf import is_protobuf

    return not is_protobuf(body)


def _decode_json(body: bytes) -> Decoded:
    from redfirst.evaluators.otlp_json import from_json

    parts: list[Decoded] = []
    for line, document in _documents(body):
        prefix = f"line {line}: " if line else ""
        try:
            spans, logs, refused = from_json(document)
        except UnreadableInput as problem:
            raise type(problem)(f"{prefix}{problem}") from problem
        parts.append(
            Decoded(
                spans=tuple(spans),
                logs=tuple(logs),
                refused=tuple(Refused(reason, f"{prefix}{where}") for reason, where in refused),
            )
        )
    return Decoded(
        spans=tuple(span for part in parts for span in part.spans),
        logs=tuple(log for part in parts for log in part.logs),
        refused=tuple(item for part in parts for item in part.refused),
    )


def _documents(body: bytes) -> Iterator[tuple[int | None, object]]:
    """Each JSON document with its line, or one document without a line number."""
    lines = body.removeprefix(_BOM).split(b"\n")
    filled = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if len(filled) > 1 and _is_json(filled[0][1]):
        for number, line in filled:
            yield number, _parse(line, line_number=number, last=number == filled[-1][0])
        return
    yield None, _parse(body.removeprefix(_BOM))


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _parse(text: bytes, *, line_number: int = 0, last: bool = False) -> object:
    """The JSON value of the text.

    Raises:
        UnreadableInput: the text is no JSON, not UTF-8, or nested too deeply.
    """
    at = f"line {line_number}: " if line_number else ""
    try:
        return json.loads(text.decode("utf-8"))
    except UnicodeDecodeError as problem:
        line = line_number or text.count(b"\n", 0, problem.start) + 1
        raise UnreadableInput(
            f"line {line}: not UTF-8 (byte 0x{text[problem.start]:02x} at offset {problem.start})."
        ) from problem
    except RecursionError as problem:
        raise UnreadableInput(f"{at}the JSON is nested too deeply to be OTLP.") from problem
    except json.JSONDecodeError as problem:
        half = " The last line is cut short: the writer was stopped, or is still writing." if last else ""
        line = line_number or problem.lineno
        near = problem.doc[problem.pos : problem.pos + _SHOWN].split("\n")[0] or "end of text"
        said = problem.msg.removesuffix(" at")
        raise UnreadableInput(
            f"line {line}: not JSON: {said} at column {problem.colno}, near {near!r}.{half}"
        ) from problem
    except ValueError as problem:
        raise UnreadableInput(f"{at}not JSON that can be read: {problem}.") from problem
