"""A run's spans out of the journal, for the scorer and for whoever shows or freezes a stored run."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from redfirst.collector_processor.journal.format import Position, Record, Signal
from redfirst.collector_processor.journal.reading import JournalFiles, RecordLost
from redfirst.collector_processor.scoring.slices import Slice, Slices, cut, joined
from redfirst.collector_processor.storing.store import StoreReader
from redfirst.evaluators.errors import UnreadableInput
from redfirst.evaluators.otlp import Decoded, decode

_CACHE_BYTES = 64 << 20
MOST_SPANS = 100_000
MOST_BYTES = 256 << 20
"""Of one run. What comes beyond them is kept and forwarded, and not judged."""


@dataclass(slots=True)
class Gathered:
    """The spans and log records of a run, each distinct one once, in order of arrival."""

    slices: dict[Signal, dict[Slice, None]]
    left_out: int = 0
    """Spans and log records beyond what one run may have."""
    lost: list[str] = field(default_factory=list)
    """Traces of which the journal no longer holds everything."""
    _bytes: int = 0

    def take(self, signal: Signal, pieces: Iterable[Slice], *, spans: int, size: int) -> None:
        """Add what is new, up to so many spans and bytes."""
        held = self.slices[signal]
        for piece in pieces:
            if piece in held:
                continue
            if len(held) >= spans or self._bytes + len(piece.item) > size:
                self.left_out += 1
                continue
            held[piece] = None
            self._bytes += len(piece.item)


class SpanSource:
    """A run's slices out of the journal; requests that several runs share are cut once."""

    def __init__(self, folder: Path) -> None:
        self._files = JournalFiles(folder)
        self._cut: OrderedDict[Position, tuple[Record, Slices]] = OrderedDict()
        self._bytes = 0

    def slices(self, trace_id: bytes, positions: Sequence[Position]) -> Mapping[Signal, list[Slice]]:
        """The trace's spans and log records in these journal records, each distinct one once; what another tenant
        than the first record's sent under the same trace id is not among them.

        Raises:
            RecordLost: one of the records is no longer there.
            UnreadableInput: one is no request.
        """
        found: dict[Signal, dict[Slice, None]] = {"traces": {}, "logs": {}}
        tenant = self.tenant(positions)
        for position in positions:
            record, slices = self._at(position)
            if record.tenant != tenant:
                continue  # nobody adds to the run of another by sending its trace id
            found[record.signal].update(dict.fromkeys(slices.get(trace_id, ())))
        return {signal: list(pieces) for signal, pieces in found.items()}

    def tenant(self, positions: Sequence[Position]) -> str:
        """Whose run it is: the tenant of its first record.

        Raises:
            RecordLost: that record is no longer there.
            UnreadableInput: it is no request.
        """
        return self._at(min(positions))[0].tenant if positions else ""

    def gather(
        self,
        traces: Mapping[bytes, Sequence[Position]],
        *,
        spans: int = MOST_SPANS,
        size: int = MOST_BYTES,
    ) -> Gathered:
        """What these traces hold together, as far as one run may be large, of each what its own tenant sent. Of several
        traces, one that the journal no longer holds whole is left out and named.

        Raises:
            RecordLost: the only trace is no longer whole.
            UnreadableInput: a record is no request.
        """
        found = Gathered({"traces": {}, "logs": {}})
        for trace_id, positions in traces.items():
            try:
                records = [self._at(position) for position in positions] if len(traces) > 1 else None
            except RecordLost:
                found.lost.append(trace_id.hex())
                continue
            tenant = self.tenant(positions)
            for record, slices in records if records is not None else map(self._at, positions):
                if record.tenant != tenant:
                    continue
                found.take(record.signal, slices.get(trace_id, ()), spans=spans, size=size)
        return found

    def close(self) -> None:
        """Close the journal's files."""
        self._files.close()

    def _at(self, position: Position) -> tuple[Record, Slices]:
        known = self._cut.get(position)
        if known is not None:
            self._cut.move_to_end(position)
            return known
        record = self._files.at(position).record
        try:
            known = (record, cut(record.body, record.signal))
        except Exception as problem:
            raise UnreadableInput(
                f"Journal record {position} cannot be cut into spans: {problem}."
            ) from problem
        self._cut[position] = known
        self._bytes += len(record.body)
        while self._bytes > _CACHE_BYTES and len(self._cut) > 1:
            self._bytes -= len(self._cut.popitem(last=False)[1][0].body)
        return known


def stored_spans(reader: StoreReader, source: SpanSource, run_id: str) -> Decoded:
    """The spans and log records of a stored run, of all of its traces.

    Raises:
        RecordLost: the journal no longer holds all of them.
        UnreadableInput: a record is no request.
    """
    total = Decoded()
    for trace_id in reader.traces_of(run_id):
        total += decoded(source.slices(bytes.fromhex(trace_id), reader.positions(trace_id)))
    return total


def decoded(pieces: Mapping[Signal, Collection[Slice]]) -> Decoded:
    """The spans and log records of slices."""
    total = Decoded()
    for signal, slices in pieces.items():
        if slices:
            total += decode(joined(slices), content="protobuf", signal=signal)
    return total


def span_set_hash(pieces: Mapping[Signal, Collection[Slice]]) -> str:
    """The same for the same spans and log records, in whatever order and however often they came."""
    total = 0
    for signal, slices in pieces.items():
        for item in {piece.item for piece in slices}:
            total += _number(item, signal)
    return f"{total % 2**128:032x}"


def with_silence(hashed: str) -> str:
    """The hash of the same spans after it was also seen that nothing followed them."""
    return f"{(int(hashed or '0', 16) + _number(b'nothing followed', 'silence')) % 2**128:032x}"


def _number(item: bytes, kind: str) -> int:
    return int.from_bytes(hashlib.blake2b(item, digest_size=16, person=kind.encode()).digest(), "big")
