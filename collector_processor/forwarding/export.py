"""One OTLP export request to one destination, packed as it is configured, and what its answer means."""

from __future__ import annotations

import gzip
import time

import zstandard

from redfirst.collector_processor.forwarding.destinations import Destination
from redfirst.collector_processor.journal.format import Signal
from redfirst.collector_processor.posting.answers import Reading, understood, unreachable
from redfirst.collector_processor.posting.poster import NoAnswer, Poster


class Export:
    """Sends requests to one destination over a connection that is kept. For one thread."""

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._poster = Poster(destination.url, timeout=destination.timeout, tls=destination.tls)
        self._secrets = tuple(destination.headers.values())
        self._headers = {**destination.headers, "Content-Type": "application/x-protobuf"}
        if destination.compression != "none":
            self._headers["Content-Encoding"] = destination.compression

    def packed(self, body: bytes) -> bytes:
        """A request as it goes over the wire, however often."""
        if self._destination.compression == "gzip":
            return gzip.compress(body, compresslevel=3, mtime=0)
        return zstandard.compress(body, 3) if self._destination.compression == "zstd" else body

    def send(self, packed: bytes, signal: Signal) -> Reading:
        """Send once; that no answer came is an answer too."""
        try:
            answer = self._poster.post(f"{self._poster.path}/v1/{signal}", packed, self._headers)
        except NoAnswer as problem:
            return unreachable(problem.reason)
        return understood(answer, signal, time.time(), secrets=self._secrets)

    def close(self) -> None:
        """Close the connection."""
        self._poster.close()
