"""A run's spans out of the journal, for the scorer and for whoever shows or freezes a stored run."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path

from redfirst.collector_processor.journal.format import Position, Record, Signal
from redfirst.collector_processor.journal.reading import JournalFiles
from redfirst.collector_processor.scoring.slices import Slice, Slices, cut, joined
from redfirst.evaluators.errors import UnreadableInput
from redfirst.evaluators.otlp import Decoded, decode

_CACHE_BYTES = 64 << 20


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


def decoded(pieces: Mapping[Signal, list[Slice]]) -> Decoded:
    """The spans and log records of slices."""
    total = Decoded()
    for signal, slices in pieces.items():
        if slices:
            total += decode(joined(slices), content="protobuf", signal=signal)
    return total


def span_set_hash(pieces: Mapping[Signal, list[Slice]]) -> str:
    """The same for the same spans and log records, in whatever order and however often they came."""
    total = 0
    for signal, slices in pieces.items():
        for item in {piece.item for piece in slices}:
            total += int.from_bytes(
                hashlib.blake2b(item, digest_size=16, person=signal.encode()).digest(), "big"
            )
    return f"{total % 2**128:032x}"
