"""Faults 11 to 14: whatever a destination does, what was acknowledged is stored, and forwarded once it can be.

Oracle: the spans that senders were answered for are those in the journal and those that each destination took, or that
were put aside for it with a reason. Each destination stands beside a healthy one, which has everything first.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from redfirst.collector_processor.forwarding.destinations import Destination
from redfirst.collector_processor.forwarding.forwarder import Forwarder
from redfirst.collector_processor.forwarding.refused import FOLDER, DeadLetters
from redfirst.collector_processor.journal.format import Record
from redfirst.collector_processor.journal.writing import Journal
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.posting.answers import LONGEST_WAIT, wait_before
from redfirst.collector_processor.storing.sqlite import SqliteStore
from tests.service.conftest import Served, a_run, body_of, eventually, free_port
from tests.service.endpoint import OK, Endpoint

from .conftest import SpanName, journalled

PROTOBUF = "application/x-protobuf"


@contextmanager
def listening(*respond: Any, **more: Any) -> Iterator[Endpoint]:
    made = Endpoint(*respond, **more)
    try:
        yield made
    finally:
        made.close()


def forwarding(served: Served, urls: dict[str, str], **more: Any) -> Served:
    """The service, with destinations of these names; ``more`` is of all but the first."""
    wanted = [
        {"name": name, "endpoint": url, **({} if number == 0 else more)}
        for number, (name, url) in enumerate(urls.items())
    ]
    return served.start(REDFIRST_FORWARD=json.dumps(wanted))


def accept(served: Served, count: int, *, spans: int = 3) -> list[bytes]:
    """Bodies that were acknowledged, in order."""
    bodies = [body_of(a_run(spans=spans)) for _ in range(count)]
    for body in bodies:
        assert served.post("/v1/traces", body, content_type=PROTOBUF)[0] == 200
    return bodies


def spans_of(*bodies: bytes) -> list[SpanName]:
    return [
        (span.trace_id.hex(), span.span_id.hex())
        for body in bodies
        for group in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]


def count(served: Served, name: str, **labels: str) -> float:
    shown = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    return served.metrics().get(f"{name}{{{shown}}}", 0.0)


def all_of_it(served: Served, sent: list[bytes], *endpoints: Endpoint) -> None:
    """Acknowledged = stored = forwarded, in order and byte for byte."""
    for endpoint in endpoints:
        eventually(lambda endpoint=endpoint: len(endpoint.bodies) >= len(sent), within=30)
        assert endpoint.bodies == sent
    assert journalled(served.home) == set(spans_of(*sent))
    assert not list((served.home / FOLDER).glob("*/*.pb"))


def test_an_hour_without_a_destination_loses_nothing_and_keeps_the_order(tmp_path: Path) -> None:
    """Fault 11, by a clock that only the waits between tries move: requests come all the while and are durable at once;
    the destination is asked as often as the waits say, and is given everything in order when it listens."""
    port, now, sent, tries = free_port(), [1_790_000_000.0], [], []
    begun = now[0]
    metrics, back = Metrics(), []
    journal, store = Journal(tmp_path / "journal"), SqliteStore(tmp_path / "store.sqlite3")

    def accepted() -> None:
        body = body_of(a_run())
        record = Record(signal="traces", tenant="default", arrival_ns=int(now[0] * 1e9), body=body)
        journal.append(record).result(10)
        sent.append(body)

    def wait(attempt: int, after: float | None) -> float:
        seconds = wait_before(attempt, after)
        tries.append(seconds)
        now[0] += seconds
        accepted()
        if now[0] - begun >= 3600 and not back:
            back.append(Endpoint(port=port))
        return 0.0

    accepted()
    forwarder = Forwarder(
        Destination(name="away", url=f"http://127.0.0.1:{port}", timeout=5.0, backlog=True),
        journal,
        store,
        DeadLetters(tmp_path / FOLDER, "away", metrics),
        metrics,
        wait=wait,
        clock=lambda: now[0],
    )
    forwarder.begin()
    eventually(lambda: back and len(back[0].bodies) >= len(sent), within=60)
    eventually(lambda: metrics.value("redfirst_forward_lag_seconds", destination="away") == 0)
    forwarder.stop()
    assert forwarder.join(10)
    back[0].close()
    journal.close()
    store.close()

    assert back[0].bodies == sent
    assert len(sent) == len(tries) + 1
    assert 3600 / LONGEST_WAIT <= len(tries) <= 2 * 3600 / LONGEST_WAIT + 10
    labels = {"destination": "away", "outcome": "again", "reason": "connection"}
    assert metrics.value("redfirst_forward_requests_total", **labels) == len(tries)
    assert metrics.value("redfirst_forward_dropped_total") == 0


def test_a_destination_that_takes_long_for_an_answer_delays_no_other(stopped: Served) -> None:
    """Fault 12: the healthy one has everything while the slow one is at its first request, which is not sent twice."""
    release = threading.Event()

    def slowly(_body: bytes, before: int) -> Any:
        if before == 0:
            release.wait(100)
        return OK

    with listening() as healthy, listening(slowly) as slow:
        served = forwarding(stopped, {"healthy": healthy.url, "slow": slow.url}, timeout=120)
        sent = accept(served, 8)
        eventually(lambda: healthy.bodies == sent, within=60)
        assert (len(slow.times), slow.bodies) == (1, []), "it is still at its first answer"
        release.set()
        all_of_it(served, sent, healthy, slow)
        assert len(slow.times) == len(sent)


def test_a_destination_that_asks_to_wait_is_left_alone_that_long(stopped: Served) -> None:
    """Fault 12: 429 with Retry-After, again and again; nobody else is kept waiting."""
    enough = threading.Event()

    def busily(_body: bytes, before: int) -> Any:
        return OK if before >= 3 and enough.is_set() else (429, {"Retry-After": "1"}, b"")

    with listening() as healthy, listening(busily) as busy:
        served = forwarding(stopped, {"healthy": healthy.url, "busy": busy.url})
        sent = accept(served, 4)
        eventually(lambda: healthy.bodies == sent)
        assert busy.bodies == []
        enough.set()
        all_of_it(served, sent, healthy, busy)
        tries = len(busy.times) - len(sent)
        gaps = [later - earlier for earlier, later in zip(busy.times[:tries], busy.times[1:], strict=False)]
        assert min(gaps) >= 1.0
        again = {"destination": "busy", "outcome": "again", "reason": "status_429"}
        assert count(served, "redfirst_forward_requests_total", **again) == tries >= 3


def test_a_destination_that_takes_only_small_requests_gets_them_split(stopped: Served) -> None:
    """Fault 12: 413 halves until it fits; every span arrives once, in order, and none is put aside."""

    def small(body: bytes, _before: int) -> Any:
        return (413, {}, b"") if len(spans_of(body)) > 4 else OK

    with listening() as healthy, listening(small) as picky:
        served = forwarding(stopped, {"healthy": healthy.url, "picky": picky.url})
        sent = accept(served, 3, spans=25)
        eventually(lambda: spans_of(*picky.bodies) == spans_of(*sent), within=30)
        assert max(len(spans_of(body)) for body in picky.bodies) <= 4
        all_of_it(served, sent, healthy)


def test_what_a_destination_takes_in_part_is_counted_and_done(stopped: Served) -> None:
    """Fault 12: a partial success is not sent again, and what it left out is counted."""
    answer = ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = 2
    with (
        listening() as healthy,
        listening(lambda _body, _before: (200, {}, answer.SerializeToString())) as some,
    ):
        served = forwarding(stopped, {"healthy": healthy.url, "some": some.url})
        sent = accept(served, 3)
        all_of_it(served, sent, healthy, some)
        rejected = {"destination": "some", "signal": "traces"}
        eventually(lambda: count(served, "redfirst_forward_rejected_total", **rejected) == 6)
        assert len(some.times) == 3


class HalfOpen:
    """A way to an endpoint on which the other side vanishes: what is sent is taken and nothing comes back, not even an
    end. New connections go through when it is told so."""

    def __init__(self, port: int) -> None:
        self._behind = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self.gone = threading.Event()
        self.swallowed = 0
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near = self._server.accept()[0]
            except OSError:
                return
            lost = threading.Event()
            far = socket.create_connection(("127.0.0.1", self._behind))
            self._open += [near, far]
            threading.Thread(target=self._pass, args=(near, far, lost, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(far, near, lost, False), daemon=True).start()

    def _pass(self, source: socket.socket, to: socket.socket, lost: threading.Event, forth: bool) -> None:
        try:
            while data := source.recv(65536):
                if forth and self.gone.is_set():
                    lost.set()
                if lost.is_set():
                    self.swallowed += len(data)
                else:
                    to.sendall(data)
        except OSError:
            return

    def close(self) -> None:
        for one in (self._server, *self._open):
            one.close()


def test_a_connection_that_died_without_a_word_is_given_up_after_its_time(stopped: Served) -> None:
    """Fault 12: half-open TCP. The kept connection swallows a request; after the time-out it goes over another."""
    with listening() as healthy, listening() as behind:
        way = HalfOpen(behind.port)
        served = forwarding(stopped, {"healthy": healthy.url, "behind": way.url}, timeout=1)
        sent = accept(served, 2)
        eventually(lambda: behind.bodies == sent)
        way.gone.set()
        sent += accept(served, 1)
        eventually(lambda: way.swallowed > 0)
        way.gone.clear()
        sent += accept(served, 3)
        all_of_it(served, sent, healthy, behind)
        way.close()
        timeouts = {"destination": "behind", "outcome": "again", "reason": "timeout"}
        assert count(served, "redfirst_forward_requests_total", **timeouts) >= 1


def test_one_dead_of_three_destinations_holds_up_neither_of_the_others(stopped: Served) -> None:
    """Fault 13: over a kill, too; the dead one is told of as behind, and has everything in order once it lives."""
    port = free_port()
    with listening() as first, listening() as third:
        urls = {"first": first.url, "dead": f"http://127.0.0.1:{port}", "third": third.url}
        served = forwarding(stopped, urls)
        sent = accept(served, 6)
        eventually(lambda: first.bodies == third.bodies == sent)
        eventually(lambda: count(served, "redfirst_forward_lag_seconds", destination="dead") > 0)
        served.kill()
        served = forwarding(stopped, urls)
        sent += accept(served, 2)
        eventually(lambda: set(first.bodies) == set(third.bodies) == set(sent))
        assert served.metrics()["redfirst_ready"] == 1
        with listening(port=port) as dead:
            all_of_it(served, sent, dead)
            eventually(lambda: count(served, "redfirst_forward_lag_seconds", destination="dead") == 0)


@pytest.mark.parametrize("status", [400, 422])
def test_a_poisonous_span_costs_itself_alone(stopped: Served, status: int) -> None:
    """Fault 14: a destination refuses one span of a batch for ever; it is found by halving and put aside with the reason,
    the rest of its batch and what comes after is delivered, and nobody else hears of it."""
    poison: list[SpanName] = []

    def refuses(body: bytes, _before: int) -> Any:
        return (status, {}, b"no") if set(poison) & set(spans_of(body)) else OK

    with listening() as healthy, listening(refuses) as picky:
        batch = body_of(a_run(spans=16))
        poison.append(spans_of(batch)[9])
        served = forwarding(stopped, {"healthy": healthy.url, "picky": picky.url})
        sent = accept(served, 1)
        assert served.post("/v1/traces", batch, content_type=PROTOBUF)[0] == 200
        sent += [batch, *accept(served, 2)]
        eventually(lambda: healthy.bodies == sent)
        eventually(lambda: picky.bodies and picky.bodies[-1] == sent[-1])
        assert spans_of(*picky.bodies) == [name for name in spans_of(*sent) if name not in poison]
        (letter,) = (served.home / FOLDER / "picky").glob("*.pb")
        assert spans_of(letter.read_bytes()) == poison
        assert json.loads(letter.with_suffix(".json").read_text())["reason"] == f"status_{status}"
        dead = {"destination": "picky", "reason": f"status_{status}"}
        assert count(served, "redfirst_forward_dead_letters_total", **dead) == 1
        assert journalled(served.home) == set(spans_of(*sent))
