"""Requests a destination will not take: halved to find the records it means, and those kept with the reason."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from redfirst.collector_processor.disk import sync_folder
from redfirst.collector_processor.journal.format import Signal
from redfirst.collector_processor.journal.reading import Placed
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.posting.answers import Reading
from redfirst.collector_processor.storing.rows import moment

FOLDER = "dead-letters"
LARGEST = 256 << 20
"""Bytes that are kept for one destination; beyond them refusals are only counted."""


def halves(body: bytes, signal: Signal) -> tuple[bytes, bytes] | None:
    """The request as two, in order; None when it holds a single record or cannot be read."""
    try:
        request: Any = _kind(signal).FromString(body)
    except DecodeError:
        return None
    count = sum(len(items) for _, _, items in _places(request, signal))
    if count < 2:
        return None
    return _part(request, signal, 0, count // 2), _part(request, signal, count // 2, count)


def records_in(body: bytes, signal: Signal) -> int:
    """How many spans or log records a request holds; 0 when it cannot be read."""
    try:
        return sum(len(items) for _, _, items in _places(_kind(signal).FromString(body), signal))
    except DecodeError:
        return 0


def _kind(signal: Signal) -> Any:
    return ExportTraceServiceRequest if signal == "traces" else ExportLogsServiceRequest


def _places(request: Any, signal: Signal) -> Iterator[tuple[Any, Any, Any]]:
    groups = request.resource_spans if signal == "traces" else request.resource_logs
    for group in groups:
        for scope in group.scope_spans if signal == "traces" else group.scope_logs:
            yield group, scope, scope.spans if signal == "traces" else scope.log_records


def _part(request: Any, signal: Signal, start: int, end: int) -> bytes:
    part = type(request)()
    part.CopyFrom(request)
    at = 0
    for _, _, items in list(_places(part, signal)):
        count = len(items)
        first, last = min(max(start - at, 0), count), min(max(end - at, 0), count)
        del items[last:]
        del items[:first]
        at += count
    groups = part.resource_spans if signal == "traces" else part.resource_logs
    for number in range(len(groups) - 1, -1, -1):
        scopes = groups[number].scope_spans if signal == "traces" else groups[number].scope_logs
        for inner in range(len(scopes) - 1, -1, -1):
            if not (scopes[inner].spans if signal == "traces" else scopes[inner].log_records):
                del scopes[inner]
        if not scopes:
            del groups[number]
    return bytes(part.SerializeToString())


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The folder of what one destination refused: each request as OTLP protobuf, its reason beside it."""

    folder: Path
    destination: str
    metrics: Metrics
    largest: int = LARGEST

    def keep(self, placed: Placed, body: bytes, reading: Reading, *, at_ns: int) -> Path | None:
        """Keep a refused request; None, and a named drop, when that is not possible. Twice is once."""
        signal = placed.record.signal
        self.metrics.add(
            "redfirst_forward_dead_letters_total", destination=self.destination, reason=reading.reason
        )
        mark = blake2b(body, digest_size=6).hexdigest()
        segment, offset = placed.position
        path = self.folder / f"{segment:010d}-{offset:012d}-{mark}.{signal}.pb"
        about = {
            "destination": self.destination,
            "signal": signal,
            "records": records_in(body, signal),
            "tenant": placed.record.tenant,
            "arrived": moment(placed.record.arrival_ns),
            "refused": moment(at_ns),
            "reason": reading.reason,
            "answer": reading.said,
        }
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if self._bytes() + len(body) > self.largest:
                self._dropped("dead_letters_full")
                return None
            # the note first: whoever finds the request finds what is known of it
            _write(path.with_suffix(".json"), json.dumps(about, indent=1).encode() + b"\n")
            _write(path, body)
            sync_folder(self.folder)
        except OSError:
            self._dropped("dead_letters_unwritable")
            return None
        return path

    def _bytes(self) -> int:
        return sum(path.stat().st_size for path in self.folder.iterdir())

    def _dropped(self, reason: str) -> None:
        self.metrics.add("redfirst_forward_dropped_total", destination=self.destination, reason=reason)


def _write(path: Path, data: bytes) -> None:
    aside = path.with_name(path.name + ".new")
    with aside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
