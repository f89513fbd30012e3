"""What the disk did to a segment costs those bytes alone: they are kept aside by reason, and all else is delivered."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redfirst.collector_processor.journal.format import (
    FORMAT,
    SEGMENT_HEADER,
    START,
    JournalTooNew,
    Position,
    Record,
    frame,
    segment_path,
    segments,
)
from redfirst.collector_processor.journal.quarantine import FOLDER
from redfirst.collector_processor.journal.reading import JournalFiles
from redfirst.collector_processor.journal.writing import Journal

FIXTURES = Path(__file__).parents[1] / "fixtures"
QUARANTINED = "redfirst_journal_quarantined_bytes_total"


def record(body: bytes) -> Record:
    return Record(signal="traces", tenant="default", arrival_ns=7, body=body)


def write(folder: Path, *items: bytes) -> list[Position]:
    journal = Journal(folder)
    positions = [journal.append(record(item)).result(10) for item in items]
    journal.close()
    return positions


def replayed(folder: Path) -> tuple[list[bytes], dict[str, int]]:
    """What a start reads of the journal, and the bytes that it put aside by name."""
    journal = Journal(folder)
    found = [placed.record.body for placed in journal.read_from(START, limit_bytes=1 << 30)]
    journal.read_from(START, limit_bytes=1 << 30)  # a second reader changes nothing
    journal.close()
    aside = folder / FOLDER
    kept = {path.name: path.stat().st_size for path in aside.iterdir()} if aside.exists() else {}
    counted = sum(
        journal.metrics.value(QUARANTINED, reason=reason) for reason in {name.split(".")[-1] for name in kept}
    )
    assert counted == sum(kept.values())
    return found, kept


def test_a_segment_of_the_first_format_is_still_read(tmp_path):
    """Signal, tenant, arrival and body of each record, as they were written then; new ones go behind them."""
    shutil.copy(FIXTURES / "journal" / "format-1.segment", segment_path(tmp_path, 1))
    stem = "openai-raw__otel-openai-v2-legacy__tool_error"
    bodies = [
        (FIXTURES / "otlp" / f"{stem}.{name}.otlp.pb").read_bytes()
        for name in ("001.logs", "002", "003.logs")
    ]
    write(tmp_path, b"new")

    files = JournalFiles(tmp_path)
    found = [placed.record for placed in files.scan(START)]
    files.close()
    assert [(one.signal, one.tenant, one.arrival_ns, one.body) for one in found[:3]] == [
        ("logs", "default", 1764000000 * 10**9, bodies[0]),
        ("traces", "default", 1764000001 * 10**9, bodies[1]),
        ("logs", "acme", 1764000002 * 10**9, bodies[2]),
    ]
    assert found[3].body == b"new"


def test_a_journal_of_a_newer_version_is_refused_and_untouched(tmp_path):
    """An older program neither cuts it nor writes behind it."""
    write(tmp_path, b"one")
    path = segment_path(tmp_path, 1)
    newer = SEGMENT_HEADER[:-1] + bytes([FORMAT + 1]) + b"what comes then"
    path.write_bytes(newer)

    with pytest.raises(JournalTooNew, match="newer redfirst"):
        Journal(tmp_path)
    assert path.read_bytes() == newer
    assert segments(tmp_path) == [1]


def test_bodies_are_compressed_and_come_back_whole(tmp_path):
    """What shrinks is stored smaller, what does not is stored as it is."""
    text, noise = b"the order was looked at " * 1000, bytes(range(256)) + bytes(reversed(range(256)))
    write(tmp_path, text, noise, b"")

    assert segment_path(tmp_path, 1).stat().st_size < len(text) / 10 + len(noise) + 200
    assert replayed(tmp_path) == ([text, noise, b""], {})


def test_a_record_that_a_sender_wrote_into_a_body_is_never_taken_for_one(tmp_path):
    """A body that holds whole frames, for every place of a small file, and is damaged: what is in it stays bytes."""
    forged = record(b"forged")
    inside = b"".join(frame(forged, Position(9, offset)) for offset in range(8, 400, 8)) + bytes(range(200))
    _, second, _ = write(tmp_path, b"one", inside, b"three")
    damage(segment_path(tmp_path, 1), second.offset + 4)  # the length: the end of the record is not known

    found, kept = replayed(tmp_path)
    assert found == [b"one", b"three"]
    assert list(kept) == [f"0000000001-{second.offset}.checksum"]


@pytest.mark.parametrize(
    ("offset", "reason"),
    [(0, "no_record"), (5, "checksum"), (13, "checksum"), (30, "checksum")],
    ids=["mark", "length", "head checksum", "payload"],
)
def test_a_flipped_byte_costs_its_record_alone(tmp_path, offset, reason):
    """Wherever in the record it is, those before and after it are delivered, and it is put aside with the reason."""
    _, second, third = write(tmp_path, b"one", b"two" * 20, b"three")
    damage(segment_path(tmp_path, 1), second.offset + offset)

    found, kept = replayed(tmp_path)
    assert found == [b"one", b"three"]
    assert kept == {f"0000000001-{second.offset}.{reason}": third.offset - second.offset}


@pytest.mark.parametrize("bits", [0x03, 0x10])
@pytest.mark.parametrize("byte", range(len(SEGMENT_HEADER)))
def test_a_damaged_segment_header_costs_nothing(tmp_path, byte, bits):
    """Any byte of it, that of the version too: every record is still known by its own checksums."""
    write(tmp_path, b"one", b"two")
    damage(segment_path(tmp_path, 1), byte, bits)

    assert replayed(tmp_path) == ([b"one", b"two"], {})


def test_zeroes_where_the_file_was_made_longer_are_put_aside(tmp_path):
    """What some file systems leave after a crash: the length is there, the content is not."""
    write(tmp_path, b"one")
    path = segment_path(tmp_path, 1)
    end = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(end + 100)

    assert replayed(tmp_path) == ([b"one"], {f"0000000001-{end}.zeroes": 100})


def test_a_zeroed_page_in_the_middle_costs_the_records_in_it(tmp_path):
    """Those around it are delivered."""
    items = [bytes([n]) * 10 for n in range(20)]
    positions = write(tmp_path, *items)
    path = segment_path(tmp_path, 1)
    data = bytearray(path.read_bytes())
    start, end = positions[5].offset, positions[9].offset
    data[start:end] = bytes(end - start)
    path.write_bytes(data)

    found, kept = replayed(tmp_path)
    assert found == items[:5] + items[9:]
    assert kept == {f"0000000001-{start}.zeroes": end - start}


@settings(max_examples=40)
@given(st.data())
def test_any_flipped_byte_costs_one_record_at_most(tmp_path_factory, data):
    """Law: of n records at least n - 1 are delivered, in order, none of them altered."""
    folder = tmp_path_factory.mktemp("flipped")
    items = [bytes([65 + n]) * (40 * n) for n in range(5)]
    write(folder, *items)
    path = segment_path(folder, 1)
    at = data.draw(st.integers(len(SEGMENT_HEADER), path.stat().st_size - 1))
    damage(path, at, data.draw(st.integers(1, 255)))

    found, _ = replayed(folder)
    assert len(found) >= len(items) - 1
    assert [item for item in items if item in found] == found


def damage(path: Path, offset: int, bits: int = 0xFF) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= bits
    path.write_bytes(data)
