"""Mutated bodies at the door, and damaged segments before the journal's readers, in this process."""

from __future__ import annotations

import random
import resource
import tempfile
import time
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from redfirst.collector_processor.journal.format import SEGMENT_HEADER as HEADER
from redfirst.collector_processor.journal.format import (
    START,
    JournalTooNew,
    Position,
    Record,
    frame,
    segment_path,
)
from redfirst.collector_processor.journal.reading import JournalFiles
from redfirst.collector_processor.receiving.request import check, heads_of
from redfirst.collector_processor.scoring.slices import cut
from redfirst.evaluators.errors import UnreadableInput
from redfirst.evaluators.otlp import decode

from .mutating import Body, Mutator, corpus

_WARM = 5_000
_DECODED = 50
"""One accepted body in so many is read to the end, as a scorer does."""
_SEGMENTS = 200
"""One damaged segment for so many bodies."""


@dataclass
class Figures:
    """What came of the bodies."""

    bodies: int = 0
    segments: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    grown_mib: float = 0.0
    """Growth of the peak of resident memory after the first few thousand."""


def run(count: int, seed: int) -> Figures:
    """Try so many bodies. What is not a documented answer, or is accepted and not whole, raises, and the body is in the
    message."""
    mutated = Mutator(seed, corpus())
    figures = Figures()
    begun = time.perf_counter()
    peak = 0.0
    with tempfile.TemporaryDirectory(prefix="redfirst-fuzz-") as folder:
        segment = _Segment(Path(folder), seed)
        for number in range(count):
            body = mutated()
            try:
                figures.answers[_answer(body, read=number % _DECODED == 0)] += 1
            except Exception as problem:
                kind = f"{body.signal}, {'json' if body.is_json else 'protobuf'}"
                raise AssertionError(f"seed {seed}, body {number} ({kind}): {body.data.hex()}") from problem
            if number % _SEGMENTS == 0:
                segment.damaged()
                figures.segments += 1
            if number == _WARM:
                peak = _peak_mib()
    figures.bodies = count
    figures.seconds = time.perf_counter() - begun
    figures.grown_mib = _peak_mib() - peak if peak else 0.0
    return figures


def _answer(body: Body, *, read: bool) -> str:
    try:
        checked = check(body.data, body.signal, is_json=body.is_json)
    except UnreadableInput:
        return "refused"
    if not checked.accepted:
        return "nothing to keep"
    # what is journalled is what a start and a scorer find again
    assert heads_of(checked.body, body.signal) == checked.heads
    pieces = sum(len(found) for found in cut(checked.body, body.signal).values())
    assert pieces == checked.accepted or body.signal == "logs"
    if read:
        decode(checked.body, content="protobuf", signal=body.signal)
    return "partly accepted" if checked.rejected else "accepted"


class _Segment:
    """A segment of the journal, damaged anew each time; a reader gives no record that was not written."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._random = random.Random(seed)
        self._files = JournalFiles(folder)
        self._path = segment_path(folder, 1)
        whole = bytearray(HEADER)
        self._written = set()
        for number in range(20):
            body = self._random.randbytes(30) * (1 + number % 3 * 10)
            self._written.add(body)
            record = Record(signal="traces", tenant="default", arrival_ns=number, body=body)
            whole += frame(record, Position(1, len(whole)))
        self._whole = bytes(whole)

    def damaged(self) -> None:
        data = bytearray(self._whole)
        for _ in range(self._random.randint(1, 4)):
            at = self._random.randrange(len(data))
            how = self._random.randrange(4)
            if how == 0:
                data[at] ^= 1 << self._random.randrange(8)
            elif how == 1:
                data[at : at + 100] = bytes(100)
            elif how == 2:
                del data[at:]
                data += bytes(1)
            else:
                data[at:at] = self._random.randbytes(16)
        self._path.write_bytes(data)
        self._files.close()
        try:
            found = [placed.record.body for placed in self._files.scan(START)]
        except JournalTooNew:
            return  # the version and the first record are both damaged: an older program keeps its hands off
        assert set(found) <= self._written, f"altered: {zlib.compress(bytes(data)).hex()}"


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
