"""What becomes of spans that come twice, late, in pieces or in an order of their own."""

from __future__ import annotations

import hashlib
import itertools
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redfirst.collector_processor.journal.format import START, Position, Record, Signal
from redfirst.collector_processor.journal.reading import JournalFiles
from redfirst.collector_processor.journal.writing import Journal
from redfirst.collector_processor.receiving.request import check, heads_of
from redfirst.collector_processor.scoring.slices import Slice, cut, joined
from redfirst.collector_processor.scoring.span_source import SpanSource, decoded, span_set_hash
from redfirst.evaluators.check import default_checks, judge
from redfirst.evaluators.otlp import Decoded
from redfirst.evaluators.reading import read
from redfirst.evaluators.record import run_record
from tests.otlp.bodies import NOW, SPAN, TRACE, a_span, body
from tests.otlp.items import proves

CAPTURES = Path(__file__).parents[1] / "fixtures" / "otlp"
Request = tuple[Signal, bytes]


def captures() -> dict[str, list[Request]]:
    """The recorded requests, by the program that they are of."""
    found: dict[str, list[Request]] = {}
    for path in sorted(CAPTURES.glob("*.otlp.pb")):
        signal: Signal = "logs" if ".logs." in path.name else "traces"
        found.setdefault("__".join(path.name.split(".")[0].split("__")), []).append(
            (signal, path.read_bytes())
        )
    return found


def journalled(folder: Path, requests: Iterable[Request], *, tenants: Iterable[str] = ()) -> None:
    """A journal with these requests, as the receiver checks them."""
    whose = itertools.chain(tenants, itertools.repeat("default"))
    records = [
        Record(signal=signal, tenant=tenant, arrival_ns=1, body=check(data, signal).body)
        for (signal, data), tenant in zip(requests, whose, strict=False)
    ]
    journal = Journal(folder)
    for waiting in [journal.append(record) for record in records]:
        waiting.result(30)
    journal.close()


def state(folder: Path) -> dict[str, tuple[str, str]]:
    """For each trace of a journal, the hash of its spans and that of the run they are read as, verdicts included."""
    files, places = JournalFiles(folder), dict[bytes, list[Position]]()
    for placed in files.scan(START):
        for trace_id in heads_of(placed.record.body, placed.record.signal):
            places.setdefault(trace_id, []).append(placed.position)
    files.close()
    source, found = SpanSource(folder), {}
    for trace_id, positions in places.items():
        pieces = source.slices(trace_id, positions)
        found[trace_id.hex()] = (span_set_hash(pieces), as_read(decoded(pieces)))
    source.close()
    return found


def as_read(found: Decoded) -> str:
    records = [run_record(run, judge(run, default_checks())) for run in read(found.spans, found.logs).runs]
    return hashlib.sha256(orjson.dumps(records, default=str)).hexdigest()


def once(requests: Sequence[Request], **how: Iterable[str]) -> dict[str, tuple[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        journalled(Path(folder), requests, **how)
        return state(Path(folder))


@st.composite
def shuffled(draw: st.DrawFn) -> tuple[str, list[Request]]:
    """A recorded program, its spans and log records in requests of any cut, in any order, some of them twice."""
    name = draw(st.sampled_from(sorted(captures())))
    singles: list[tuple[Signal, Slice]] = [
        (signal, piece)
        for signal, data in captures()[name]
        for pieces in cut(data, signal).values()
        for piece in pieces
    ]
    again = draw(st.lists(st.sampled_from(singles), max_size=5))
    order = draw(st.permutations([*singles, *again]))
    size = draw(st.integers(1, len(order)))
    requests: list[Request] = []
    for at in range(0, len(order), size):
        for signal in ("traces", "logs"):
            part = [piece for kind, piece in order[at : at + size] if kind == signal]
            if part:
                requests.append((signal, joined(part)))
    return name, requests


@proves(42, 45)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(shuffled())
def test_45_order_splitting_and_repetition_do_not_matter(found):
    """The spans of recorded runs, in any order, cut into any requests, some sent twice: the same state, hash for hash."""
    name, requests = found
    assert once(requests) == once(captures()[name])


@proves(45)
def test_45_among_others():
    """Every recorded program's requests at once, interleaved: each trace is stored as if it had come alone."""
    alone = {trace: kept for requests in captures().values() for trace, kept in once(requests).items()}
    rounds = itertools.zip_longest(*captures().values())
    mixed = [request for several in rounds for request in several if request is not None]
    assert len(alone) > 10
    assert once(mixed) == alone


@proves(42)
def test_42_a_batch_sent_again():
    """The same spans: the same hash, so no version more."""
    data: Request = ("traces", body(a_span(), a_span(b"another1")))
    assert once([data, data]) == once([data])


@proves(43)
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_43_a_span_sent_at_its_start_and_at_its_end(tmp_path, order):
    """Both are kept; read is the one that has ended, whichever came last."""
    states = (a_tool("pending", end_time_unix_nano=0), a_tool("ended"))
    journalled(tmp_path, [("traces", body(states[which])) for which in order])
    assert tools(tmp_path) == (2, ["ended"])


@proves(44)
def test_44_client_and_server_with_one_span_id(tmp_path):
    """Both are kept and passed on as they came; the run is read from the one that ended last."""
    client, server = a_tool("client", kind=3, end_time_unix_nano=NOW + 9000), a_tool("server", kind=2)
    journalled(tmp_path, [("traces", body(client)), ("traces", body(server))])
    assert tools(tmp_path) == (2, ["client"])


@proves(47)
@pytest.mark.parametrize(
    "parents",
    [
        {b"1": b"1"},
        {b"1": b"2", b"2": b"1"},
        {b"1": b"2", b"2": b"3", b"3": b"1", b"4": b"2"},
        {b"1": b"9", b"2": b"1"},
        {b"1": b"", b"2": b""},
    ],
    ids=["self", "two", "three and a tail", "missing", "two roots"],
)
def test_47_circles_and_gaps_end(tmp_path, parents):
    """A span that is its own ancestor, a parent that never came, several roots: the run is read, every span in it once."""
    spans = [a_tool(own.decode(), own * 8, parent_span_id=parent * 8) for own, parent in parents.items()]
    journalled(tmp_path, [("traces", body(*spans))])
    (run,) = read(stored(tmp_path)[1].spans).runs
    judge(run, default_checks())
    assert {call.span_id for call in run.tool_calls} <= {(own * 8).hex() for own in parents}
    assert len(run.tool_calls) >= 1


@proves(21)
def test_21_nobody_adds_to_the_run_of_another():
    """A run is its first sender's: what another tenant sends under its trace id is not read into it."""
    first, second = ("traces", body(a_span())), ("traces", body(a_span(b"another1")))
    both = once([first, second], tenants=["north", "south"])
    assert both == once([first], tenants=["north"])


def stored(folder: Path) -> tuple[list[Slice], Decoded]:
    """The spans of the one trace."""
    files = JournalFiles(folder)
    source = SpanSource(folder)
    pieces = source.slices(TRACE, [placed.position for placed in files.scan(START)])
    source.close()
    files.close()
    return pieces["traces"], decoded(pieces)


def a_tool(name: str, span_id: bytes = SPAN, **fields: Any) -> Any:
    span = a_span(span_id, **fields)
    span.attributes.add(key="openinference.span.kind").value.string_value = "TOOL"
    span.attributes.add(key="tool.name").value.string_value = name
    return span


def tools(folder: Path) -> tuple[int, list[str]]:
    """How many spans were kept, and the tool calls that are read from them."""
    pieces, found = stored(folder)
    return len(pieces), [call.name for run in read(found.spans).runs for call in run.tool_calls]
