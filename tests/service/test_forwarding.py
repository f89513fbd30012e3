"""What was accepted arrives at every destination: the same bytes, at least once, whatever happens on the way."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from redfirst.collector_processor.companions import Parts
from redfirst.collector_processor.forwarding.destinations import Destination, destinations
from redfirst.collector_processor.forwarding.forwarder import RETIRED, Forwarding
from redfirst.collector_processor.forwarding.refused import FOLDER, halves
from redfirst.collector_processor.journal.format import Record
from redfirst.collector_processor.journal.writing import Journal
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.posting.answers import (
    FIRST_WAIT,
    LONGEST_ASKED,
    LONGEST_WAIT,
    Fate,
    asked_to_wait,
    understood,
    wait_before,
)
from redfirst.collector_processor.posting.poster import Answer
from redfirst.collector_processor.settings import ForwardSettings, ServeSettings
from redfirst.collector_processor.storing.sqlite import SqliteStore
from redfirst.evaluators.errors import ConfigurationError

from .conftest import eventually
from .endpoint import OK, Endpoint


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.close()


def traces(*names: str) -> bytes:
    """A request with spans of these names, each group of its own shape so that the order of bytes matters."""
    request = ExportTraceServiceRequest()
    for number, name in enumerate(names):
        if number % 2 == 0:
            scope = request.resource_spans.add().scope_spans.add()
            scope.scope.name = f"scope {number}"
        scope.spans.add(name=name, trace_id=os.urandom(16), span_id=os.urandom(8))
    return request.SerializeToString()


def names_in(body: bytes) -> list[str]:
    found = ExportTraceServiceRequest.FromString(body)
    return [
        span.name for group in found.resource_spans for scope in group.scope_spans for span in scope.spans
    ]


def logs(count: int = 1) -> bytes:
    request = ExportLogsServiceRequest()
    scope = request.resource_logs.add().scope_logs.add()
    for _ in range(count):
        scope.log_records.add(trace_id=os.urandom(16), span_id=os.urandom(8))
    return request.SerializeToString()


class Home:
    """A journal and a store, and forwarding over them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.metrics = Metrics()
        self.journal = Journal(folder / "journal", metrics=self.metrics)
        self.store = SqliteStore(folder / "store.sqlite3")
        self.said: list[str] = []
        self.forwarding: Forwarding | None = None

    def accept(
        self, body: bytes, what: Any = "traces", *, age: float = 0.0, tenant: str = "default"
    ) -> bytes:
        arrival = time.time_ns() - int(age * 1e9)
        self.journal.append(Record(signal=what, tenant=tenant, arrival_ns=arrival, body=body)).result(5)
        return body

    def forward(self, *wanted: Destination) -> Home:
        self.forwarding = Forwarding(wanted, self.folder, say=self.said.append)
        self.forwarding.start(
            Parts(
                journal=self.journal,
                store=self.store,
                reader=self.store,
                spans=lambda: pytest.fail("forwarding reads no spans"),
                metrics=self.metrics,
            )
        )
        return self

    def stop(self) -> None:
        if self.forwarding is not None:
            self.forwarding.stop(5)
            self.forwarding = None

    def letters(self, name: str) -> list[tuple[bytes, dict[str, Any]]]:
        found = sorted((self.folder / FOLDER / name).glob("*.pb"))
        return [(path.read_bytes(), json.loads(path.with_suffix(".json").read_text())) for path in found]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    made.stop()
    made.journal.close()
    made.store.close()


def to(url: str, name: str = "backend", **more: Any) -> Destination:
    return Destination(name=name, url=url, **{"timeout": 2.0, **more})


@pytest.mark.parametrize("packed", ["none", "gzip", "zstd"])
def test_a_destination_receives_the_bytes_that_were_accepted(
    home: Home, endpoint: Endpoint, packed: str
) -> None:
    """Traces and log records arrive byte for byte, in order, at their own paths, with the configured headers."""
    home.forward(to(endpoint.url + "/otlp", headers={"x-team": "blue"}, compression=packed))
    sent = [home.accept(traces("a", "b", "c")), home.accept(logs(), "logs"), home.accept(traces("d"))]
    eventually(lambda: len(endpoint.got) == 3)

    assert endpoint.bodies == sent
    assert [path for path, _, _ in endpoint.got] == ["/otlp/v1/traces", "/otlp/v1/logs", "/otlp/v1/traces"]
    for _, headers, _ in endpoint.got:
        assert headers["content-type"] == "application/x-protobuf"
        assert headers["x-team"] == "blue"
        assert headers.get("content-encoding") == (None if packed == "none" else packed)


def test_a_destination_gets_the_signals_it_takes(home: Home, endpoint: Endpoint) -> None:
    """With ``signals: [traces]`` no log record is sent, and what comes after it is."""
    home.forward(to(endpoint.url, signals=("traces",)))
    home.accept(logs(), "logs")
    sent = home.accept(traces("a"))
    eventually(lambda: endpoint.got)

    assert endpoint.bodies == [sent]


def test_a_destination_gets_what_its_tenants_sent(home: Home) -> None:
    """With ``tenants: [support]`` nothing of billing's leaves by it, and another gets everyone's."""
    with closing(Endpoint()) as theirs, closing(Endpoint()) as everyones:
        home.forward(to(theirs.url, tenants=("support",)), to(everyones.url, "all"))
        billing = home.accept(traces("b"), tenant="billing")
        support = home.accept(traces("s"), tenant="support")
        eventually(lambda: theirs.got and len(everyones.got) == 2)

        assert theirs.bodies == [support]
        assert everyones.bodies == [billing, support]


def pem(blob: trustme.Blob, path: Path) -> str:
    blob.write_to_path(str(path))
    return str(path)


def test_a_destination_behind_tls_is_shown_our_certificate(home: Home, tmp_path: Path) -> None:
    """A private authority is trusted where it is configured, and nowhere else; the server sees who we are."""
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    authority.configure_trust(server)
    server.verify_mode = ssl.CERT_REQUIRED
    ours = authority.issue_cert("sender@example.org").private_key_and_cert_chain_pem
    tls = {"ca": pem(authority.cert_pem, tmp_path / "ca"), "certificate": pem(ours, tmp_path / "ours")}
    made = Endpoint(tls=server)
    (known,) = destinations([ForwardSettings(name="known", endpoint=made.url, **tls)])
    (stranger,) = destinations([ForwardSettings(name="stranger", endpoint=made.url)])
    home.forward(known, stranger)
    sent = home.accept(traces("a"))
    eventually(lambda: made.bodies == [sent])
    labels = {"destination": "stranger", "outcome": "again", "reason": "tls"}
    eventually(lambda: home.metrics.value("redfirst_forward_requests_total", **labels) >= 1)
    home.stop()
    made.close()

    assert made.bodies == [sent]


def test_a_certificate_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    """A missing file, a file that is no certificate, a key alone: each is named."""
    (tmp_path / "text").write_text("no certificate")
    for files, said in (
        ({"ca": "/nowhere"}, "ca: the file /nowhere cannot be read"),
        ({"certificate": str(tmp_path / "text")}, "the certificates cannot be used"),
        ({"key": str(tmp_path / "text")}, "a key needs its certificate"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            destinations([ForwardSettings(name="b", endpoint="https://b.example", **files)])


def test_one_dead_destination_delays_no_other_and_loses_nothing(home: Home, endpoint: Endpoint) -> None:
    """A destination that is down gets everything, in order, when it is up; meanwhile the others go on."""
    other = Endpoint()
    port = other.port
    other.close()
    home.forward(to(endpoint.url, "up"), to(f"http://127.0.0.1:{port}", "down"))
    sent = [home.accept(traces(str(number))) for number in range(5)]
    eventually(lambda: endpoint.bodies == sent)

    assert home.metrics.value("redfirst_forward_lag_seconds", destination="down") >= 0
    eventually(
        lambda: home.metrics.value(
            "redfirst_forward_requests_total", destination="down", outcome="again", reason="connection"
        )
    )
    revived = Endpoint(port=port)
    eventually(lambda: revived.bodies == sent)
    eventually(lambda: home.metrics.value("redfirst_forward_lag_seconds", destination="down") == 0)
    revived.close()
    assert home.said == [
        "forwarding to down: not delivered (connection); trying again",
        "forwarding to down: delivering again",
    ]


def test_a_destination_that_never_answers_is_given_its_time_and_no_more(
    home: Home, endpoint: Endpoint
) -> None:
    """A hanging server counts as a time-out and is tried again; stopping does not wait for it."""
    release = threading.Event()

    def hang(_: bytes, count: int) -> tuple[int, dict[str, str], bytes]:
        if count == 0:
            release.wait(10)
        return OK

    endpoint.respond = hang
    home.forward(to(endpoint.url, timeout=0.3))
    sent = home.accept(traces("a"))
    labels = {"destination": "backend", "outcome": "again", "reason": "timeout"}
    eventually(lambda: home.metrics.value("redfirst_forward_requests_total", **labels) >= 1)
    release.set()
    eventually(lambda: sent in endpoint.bodies)


def test_retry_after_is_honoured(home: Home, endpoint: Endpoint) -> None:
    """A 429 with Retry-After is tried again after that time, not before, and counted as tried again."""
    endpoint.respond = lambda _, count: (429, {"Retry-After": "1"}, b"") if count == 0 else OK
    home.forward(to(endpoint.url))
    sent = home.accept(traces("a"))
    eventually(lambda: endpoint.bodies == [sent])

    assert endpoint.times[1] - endpoint.times[0] >= 1.0
    assert (
        home.metrics.value(
            "redfirst_forward_requests_total", destination="backend", outcome="again", reason="status_429"
        )
        == 1
    )
    assert home.letters("backend") == []


def test_a_poisonous_span_is_put_aside_and_all_others_arrive(home: Home, endpoint: Endpoint) -> None:
    """A 400 for one span of many: that span alone is kept with the reason, everything else is delivered."""
    endpoint.respond = lambda body, _: (
        (400, {}, b"bad span of \x1b[31mtenant; key s3cret") if b"poison" in body else OK
    )
    home.forward(to(endpoint.url, headers={"authorization": "Bearer s3cret"}))
    home.accept(traces("a", "b", "c", "poison", "e", "f", "g"))
    after = home.accept(traces("after"))
    eventually(lambda: after in endpoint.bodies)

    arrived = [name for body in endpoint.bodies for name in names_in(body)]
    assert arrived == ["a", "b", "c", "e", "f", "g", "after"]
    ((body, about),) = home.letters("backend")
    assert names_in(body) == ["poison"]
    assert about["reason"] == "status_400"
    assert about["records"] == 1
    assert about["answer"] == "bad span of �[31mtenant; key …"
    labels = {"destination": "backend", "reason": "status_400"}
    assert home.metrics.value("redfirst_forward_dead_letters_total", **labels) == 1


def test_a_destination_that_refuses_all_of_a_large_request_is_not_asked_for_ever(
    home: Home, endpoint: Endpoint
) -> None:
    """Halving has a bound; what is left is put aside, and every span is in exactly one letter."""
    endpoint.respond = lambda _body, _count: (413, {}, b"")
    home.forward(to(endpoint.url))
    names = [str(number) for number in range(300)]
    home.accept(traces(*names))
    eventually(
        lambda: (
            home.store.cursor("forward:backend") is not None
            and home.metrics.value("redfirst_forward_lag_seconds") == 0
            and endpoint.got
        )
    )

    assert len(endpoint.got) <= 2 * 64 + 1
    letters = [body for body, _ in home.letters("backend")]
    assert sorted(name for body in letters for name in names_in(body)) == sorted(names)


@pytest.mark.parametrize(
    ("status", "reason"), [(401, "status_401"), (404, "status_404"), (302, "redirect"), (307, "redirect")]
)
def test_a_refusal_of_the_sender_is_kept_whole_and_blocks_nothing(
    home: Home, endpoint: Endpoint, status: int, reason: str
) -> None:
    """A wrong key, a wrong path or a redirect: one request, one letter, no redirect followed, the next goes on."""
    target = Endpoint()
    endpoint.respond = lambda body, _: (status, {"Location": target.url}, b"") if b"first" in body else OK
    home.forward(to(endpoint.url))
    first, second = home.accept(traces("first", "x")), home.accept(traces("second"))
    eventually(lambda: endpoint.bodies == [second])
    target.close()

    assert len(endpoint.got) == 2
    assert target.got == []
    ((body, about),) = home.letters("backend")
    assert body == first
    assert about["reason"] == reason


def test_partial_success_is_counted_and_not_sent_again(home: Home, endpoint: Endpoint) -> None:
    """Spans that a destination rejects of an accepted request are counted; the request is done."""
    answer = ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = 2
    endpoint.respond = lambda _body, _count: (200, {}, answer.SerializeToString())
    home.forward(to(endpoint.url))
    home.accept(traces("a", "b", "c"))
    labels = {"destination": "backend", "signal": "traces"}
    eventually(lambda: home.metrics.value("redfirst_forward_rejected_total", **labels) == 2)

    assert len(endpoint.got) == 1


def test_a_restart_goes_on_where_it_stopped(home: Home, endpoint: Endpoint) -> None:
    """A clean stop and start sends nothing twice and leaves nothing out."""
    home.forward(to(endpoint.url))
    sent = [home.accept(traces("a")), home.accept(traces("b"))]
    eventually(lambda: endpoint.bodies == sent)
    home.stop()
    sent.append(home.accept(traces("c")))
    home.forward(to(endpoint.url))
    eventually(lambda: len(endpoint.bodies) >= 3)

    assert endpoint.bodies == sent


def test_what_a_dead_destination_is_held_for_has_an_end(home: Home, endpoint: Endpoint) -> None:
    """Requests older than they are held for are dropped, named and counted; fresh ones are still tried."""
    endpoint.respond = lambda body, _: (503, {}, b"") if b"old" in body else OK
    home.forward(to(endpoint.url, hold=60.0))
    home.accept(traces("old"), age=3600)
    home.accept(traces("older"), age=7200)
    fresh = home.accept(traces("fresh"))
    eventually(lambda: endpoint.bodies == [fresh])

    labels = {"destination": "backend", "reason": "held_too_long"}
    assert home.metrics.value("redfirst_forward_dropped_total", **labels) == 2


def test_a_destination_that_is_configured_no_more_holds_nothing(home: Home, endpoint: Endpoint) -> None:
    """Its cursor no longer keeps the journal; configured again, it begins like a new one."""
    home.forward(to(endpoint.url, "gone"))
    home.stop()
    home.forward()
    assert home.store.cursor("forward:gone") == RETIRED
    home.stop()
    home.forward(to(endpoint.url, "gone"))
    sent = home.accept(traces("a"))
    eventually(lambda: endpoint.bodies == [sent])
    home.stop()

    assert home.store.cursor("forward:gone") < RETIRED  # type: ignore[operator]


def test_a_new_destination_gets_the_backlog_only_when_asked(home: Home, endpoint: Endpoint) -> None:
    """Without ``backlog`` it begins with the runs that are not judged yet; with it, at the oldest request."""
    old = home.accept(traces("old"))
    home.store.save_cursor("assembly", home.journal.end)
    everything = Endpoint()
    home.forward(to(endpoint.url, "new"), to(everything.url, "all", backlog=True))
    new = home.accept(traces("new"))
    eventually(lambda: everything.bodies == [old, new] and endpoint.bodies)
    everything.close()

    assert endpoint.bodies == [new]


PROCESS = """
import sys, time
from pathlib import Path
from redfirst.collector_processor.companions import Parts
from redfirst.collector_processor.forwarding.forwarder import Forwarding
from redfirst.collector_processor.forwarding.destinations import Destination
from redfirst.collector_processor.journal.writing import Journal
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.storing.sqlite import SqliteStore

folder = Path(sys.argv[1])
store = SqliteStore(folder / "store.sqlite3")
metrics = Metrics()
parts = Parts(journal=Journal(folder / "journal"), store=store, reader=store, spans=lambda: None, metrics=metrics)
Forwarding([Destination(name="backend", url=sys.argv[2], timeout=2.0)], folder).start(parts)
time.sleep(60)
"""


def test_a_killed_forwarder_loses_nothing(tmp_path: Path, endpoint: Endpoint) -> None:
    """kill -9 at arbitrary moments: after the last start every accepted request has arrived, identical."""
    home = Home(tmp_path)
    sent = [home.accept(traces(f"span {number}", "x")) for number in range(300)]
    home.journal.close()
    home.store.close()
    for round_ in range(4):
        wanted = len(endpoint.got) + 40
        process = subprocess.Popen([sys.executable, "-c", PROCESS, str(tmp_path), endpoint.url])
        eventually(
            (lambda wanted=wanted: len(endpoint.got) >= wanted)
            if round_ < 3
            else lambda: set(sent) <= set(endpoint.bodies),
            within=20,
        )
        process.send_signal(signal.SIGKILL)
        process.wait()

    assert set(endpoint.bodies) == set(sent)
    first = [endpoint.bodies.index(body) for body in sent]
    assert first == sorted(first)


@pytest.mark.parametrize(
    ("status", "fate", "divisible"),
    [
        (200, Fate.DELIVERED, False),
        (202, Fate.DELIVERED, False),
        *((status, Fate.AGAIN, False) for status in (429, 500, 502, 503, 504)),
        *((status, Fate.REFUSED, True) for status in (400, 413, 422)),
        *((status, Fate.REFUSED, False) for status in (301, 302, 308, 401, 403, 404, 405, 408, 415)),
    ],
)
def test_every_status_has_one_meaning(status: int, fate: Fate, divisible: bool) -> None:
    """429, 502, 503, 504 are tried without end, other 5xx a few times, the rest of 3xx and 4xx never."""
    reading = understood(Answer(status), "traces", 0.0)

    assert (reading.fate, reading.divisible) == (fate, divisible)
    assert (reading.tries is not None) == (status == 500)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        ("99999999999999999999", LONGEST_ASKED),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 100.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("soon", None),
        ("-1", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(value: str | None, seconds: float | None) -> None:
    """What cannot be read asks for nothing; nothing asks for longer than an hour."""
    assert asked_to_wait(value, 0.0) == seconds


@given(st.integers(1, 10_000), st.none() | st.floats(0, 3600), st.floats(0, 1))
def test_waiting_grows_is_scattered_and_never_shorter_than_asked(
    attempt: int, after: float | None, chance: float
) -> None:
    """Between half and all of a doubling time with a ceiling, or what was asked where that is longer."""
    longest = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(attempt - 1, 16))
    own = wait_before(attempt, None, chance=chance)

    assert longest / 2 <= own <= longest
    assert wait_before(attempt, after, chance=chance) == max(own, after or 0.0)


@settings(max_examples=50)
@given(st.lists(st.text("abc", min_size=1, max_size=3), max_size=12))
def test_halving_keeps_every_span_once_and_in_order(names: list[str]) -> None:
    """Two halves hold what the whole held; a request of one span has none."""
    found = halves(traces(*names), "traces")

    if len(names) < 2:
        assert found is None
    else:
        assert found is not None
        assert [*names_in(found[0]), *names_in(found[1])] == names
        assert abs(len(names_in(found[0])) - len(names_in(found[1]))) <= 1


def test_secrets_come_from_the_environment_and_are_never_shown() -> None:
    """A missing variable is named, its value never is; two destinations cannot share a name."""
    entry = ForwardSettings(name="a", endpoint="env:URL", headers={"authorization": "env:KEY"})
    made = destinations([entry], {"URL": "http://h/x/", "KEY": "Bearer k3y"})[0]

    assert made.headers == {"authorization": "Bearer k3y"}
    assert made.url == "http://h/x"
    assert "k3y" not in repr(made)
    for environment, said in (
        ({}, "URL is not set"),
        ({"URL": "http://h"}, "KEY is not set"),
        ({"URL": "http://u:k3y@h", "KEY": "k"}, "without credentials"),
        ({"URL": "http://h/v1/traces", "KEY": "k"}, "give the base URL"),
        ({"URL": "http://h", "KEY": "k3y\nx: y"}, "characters no header may have"),
    ):
        with pytest.raises(ConfigurationError, match=said) as caught:
            destinations([entry], environment)
        assert "k3y" not in str(caught.value)
    with pytest.raises(ConfigurationError, match="two of this name"):
        destinations([entry, entry], {"URL": "http://h", "KEY": "k"})
    assert ServeSettings.model_validate({"forward": '[{"name": "a", "endpoint": "http://h"}]'}).forward


def test_serve_forwards_what_it_acknowledges(stopped: Any, tools: Any, endpoint: Endpoint) -> None:
    """A whole service with a destination: identical bytes, also for what it was killed over."""
    slow = threading.Event()
    endpoint.respond = lambda _body, count: OK if slow.is_set() or count < 2 else (503, {}, b"")
    forward = json.dumps([{"name": "backend", "endpoint": endpoint.url}])
    served = stopped.start(REDFIRST_FORWARD=forward)
    sent = [tools.body_of(tools.a_run()) for _ in range(6)]
    for body in sent:
        assert served.post("/v1/traces", body, content_type="application/x-protobuf")[0] == 200
    eventually(lambda: len(endpoint.got) >= 3)
    served.kill()
    slow.set()
    served.start(REDFIRST_FORWARD=forward)
    eventually(lambda: set(endpoint.bodies) == set(sent))
    eventually(lambda: served.metrics()['redfirst_forward_lag_seconds{destination="backend"}'] == 0)
    assert served.stop() == 0
