"""Bodies that were requests once: a seeded mutator that knows a little of protobuf and JSON."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from redfirst.collector_processor.journal.format import Signal

FIXTURES = Path(__file__).parents[1] / "fixtures"
CORPUS = FIXTURES / "fuzz"
_LONGEST = 8_000
"""Bytes of a recorded body that is mutated: what a parser can be led into does not need longer ones."""
_TELLING = (
    0,
    1,
    2,
    7,
    8,
    9,
    10,
    15,
    16,
    17,
    31,
    32,
    34,
    47,
    58,
    63,
    64,
    92,
    123,
    125,
    127,
    128,
    193,
    237,
    255,
)
_JSON_VALUES = (
    b"null", b"true", b"0", b"-1", b"1e999", b"NaN", b"9007199254740993", b"18446744073709551616", b"0.5", b'""',
    b"[]", b"{}", b'"\\ud800"', b'"NaN"', b'"AAECAwQF"', b'"5b8efff798038103d269b633813fc60c"', b"[[[[[[[[]]]]]]]]",
    b'"\\u0000"',
)  # fmt: skip
_JSON_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null')


_KINDS: Mapping[Signal, Any] = {"traces": ExportTraceServiceRequest, "logs": ExportLogsServiceRequest}
_KEYS = (
    "openinference.span.kind",
    "gen_ai.operation.name",
    "input.value",
    "llm.token_count.prompt",
    "",
    "\x00",
)


@dataclass(frozen=True, slots=True)
class Body:
    """One body to send."""

    data: bytes
    signal: Signal
    is_json: bool


def corpus() -> list[Body]:
    """The bodies that are kept for this, and the short ones of those recorded from frameworks."""
    found = []
    for path in sorted([*CORPUS.iterdir(), *(FIXTURES / "otlp").iterdir()]):
        if path.suffix not in (".pb", ".json") or path.stat().st_size > _LONGEST:
            continue
        signal: Signal = "logs" if ".logs." in path.name else "traces"
        found.append(Body(path.read_bytes(), signal, path.suffix == ".json"))
    return found


class Mutator:
    """Mutated bodies, the same for the same seed."""

    def __init__(self, seed: int, bodies: Sequence[Body]) -> None:
        self._random = random.Random(seed)
        self._bodies = bodies
        self._binary: tuple[Callable[[bytearray], None], ...] = (
            self._flip, self._flip, self._set, self._set, self._insert, self._delete, self._repeat, self._cut, self._splice,
            self._length, self._noise,
        )  # fmt: skip

    def __call__(self) -> Body:
        """The next one."""
        body = self._random.choice(self._bodies)
        if not body.is_json and self._random.random() < 0.5:
            return Body(self._fields(body), body.signal, is_json=False)
        data = bytearray(body.data)
        for _ in range(1 + int(self._random.expovariate(0.7))):
            if body.is_json and self._random.random() < 0.6:
                data = self._json(data)
            else:
                self._random.choice(self._binary)(data)
        wrong_kind = self._random.random() < 0.02
        return Body(bytes(data), body.signal, body.is_json != wrong_kind)

    def _at(self, data: bytearray) -> int:
        return self._random.randrange(len(data)) if data else 0

    def _flip(self, data: bytearray) -> None:
        if data:
            data[self._at(data)] ^= 1 << self._random.randrange(8)

    def _set(self, data: bytearray) -> None:
        if data:
            data[self._at(data)] = self._random.choice(_TELLING)

    def _insert(self, data: bytearray) -> None:
        at = self._at(data)
        data[at:at] = self._random.randbytes(self._random.randint(1, 12))

    def _delete(self, data: bytearray) -> None:
        at = self._at(data)
        del data[at : at + self._random.randint(1, 40)]

    def _repeat(self, data: bytearray) -> None:
        at = self._at(data)
        piece = bytes(data[at : at + self._random.randint(1, 200)])
        data[at:at] = piece * self._random.randint(1, 8)

    def _cut(self, data: bytearray) -> None:
        del data[self._at(data) :]

    def _splice(self, data: bytearray) -> None:
        other = self._random.choice(self._bodies).data
        start = self._random.randrange(len(other)) if other else 0
        at = self._at(data)
        data[at : at + self._random.randint(0, 60)] = other[start : start + self._random.randint(1, 300)]

    def _length(self, data: bytearray) -> None:
        """A length of protobuf that says too much, or goes on for ever."""
        at = self._at(data)
        data[at : at + 1] = self._random.choice(
            (b"\xff\xff\xff\xff\x0f", b"\xff" * 10, b"\x80\x80\x00", b"\xff\xff\xff\xff\x07", b"\x7f")
        )

    def _noise(self, data: bytearray) -> None:
        data[:] = self._random.randbytes(self._random.randint(0, 64))

    def _fields(self, body: Body) -> bytes:
        """A request that can be decoded, with other ids, times, values and spans than it had."""
        request = _KINDS[body.signal]()
        try:
            request.ParseFromString(body.data)
        except DecodeError:
            return body.data
        items = _items(request)
        for _ in range(self._random.randint(1, 3) if items else 0):
            item, other = self._random.choice(items), self._random.choice(items)
            change = self._random.randrange(6)
            if change == 0:
                item.trace_id = self._id(item.trace_id)
            elif change == 1:
                item.span_id = self._id(item.span_id)
            elif change == 2:
                item.attributes.extend(list(other.attributes))
            elif change == 3 and item is not other:
                item.CopyFrom(other)
            elif change == 4:
                item.attributes.add(key=self._random.choice(_KEYS)).value.string_value = (
                    "x" * self._random.choice((0, 1, 9999))
                )
            elif body.signal == "traces":
                item.parent_span_id = self._id(other.span_id)
                item.end_time_unix_nano = self._random.choice((0, 1, 2**63, 2**64 - 1))
        return bytes(request.SerializeToString())

    def _id(self, known: bytes) -> bytes:
        return self._random.choice((known, known[:-1], known + b"x", bytes(len(known)), b"", known[::-1]))

    def _json(self, data: bytearray) -> bytearray:
        tokens = list(_JSON_TOKEN.finditer(data))
        if not tokens:
            return data
        token = self._random.choice(tokens)
        return bytearray(data[: token.start()] + self._random.choice(_JSON_VALUES) + data[token.end() :])


def _items(request: Any) -> list[Any]:
    """Its spans or log records."""
    if isinstance(request, ExportTraceServiceRequest):
        return [
            span for group in request.resource_spans for scope in group.scope_spans for span in scope.spans
        ]
    return [
        record
        for group in request.resource_logs
        for scope in group.scope_logs
        for record in scope.log_records
    ]
