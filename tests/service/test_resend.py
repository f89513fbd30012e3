"""What a destination refused for good is given to it again on request, and is kept until it takes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from redfirst.collector_processor.cli import main

from .conftest import eventually
from .test_forwarding import OK, Endpoint, Home, to, traces

CONFIG = "serve: {{forward: [{{name: backend, endpoint: '{url}', headers: {{authorization: 'env:KEY'}}}}]}}"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.close()


@pytest.fixture
def refused(tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, bytes]:
    """Two requests that a wrong key made letters of, in the home of a project that has the right one."""
    home = Home(tmp_path)
    endpoint.respond = lambda _body, _count: (401, {}, b"")
    home.forward(to(endpoint.url))
    bodies = home.accept(traces("first", "x")), home.accept(traces("second"))
    eventually(lambda: len(home.letters("backend")) == 2)
    home.stop()
    home.journal.close()
    home.store.close()
    (tmp_path / "redfirst.yaml").write_text(CONFIG.format(url=endpoint.url))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REDFIRST_HOME", str(tmp_path))
    monkeypatch.setenv("KEY", "Bearer right")
    endpoint.got.clear()
    return bodies


def test_what_was_refused_arrives_once_the_key_is_right(
    refused: tuple[bytes, bytes], endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same bytes, in order; nothing is left, and a second time nothing is sent."""
    endpoint.respond = lambda _body, _count: OK

    assert main(["resend", "--list", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["destination"], row["records"], row["became"]) for row in rows] == [
        ("backend", 2, "status_401"),
        ("backend", 1, "status_401"),
    ]
    assert endpoint.got == []
    assert main(["resend", "backend"]) == 0
    assert endpoint.bodies == list(refused)
    assert {headers["authorization"] for _, headers, _ in endpoint.got} == {"Bearer right"}
    assert capsys.readouterr().out.splitlines()[-1] == "2 requests, 0 not taken"
    assert main(["resend"]) == 0
    assert len(endpoint.got) == 2
    assert "nothing is kept" in capsys.readouterr().out
    assert not list(Path("dead-letters").rglob("*.*"))


def test_what_is_refused_again_stays(
    refused: tuple[bytes, bytes], endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that is taken goes, one that is not stays whole; exit code 1 says so."""
    endpoint.respond = lambda body, _: (400, {}, b"") if body == refused[0] else OK

    assert main(["resend", "--json"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["became"] for row in rows] == ["status_400", "delivered"]
    (kept,) = Path("dead-letters").rglob("*.pb")
    assert kept.read_bytes() == refused[0]


def test_partly_taken_is_not_taken(refused: tuple[bytes, bytes], endpoint: Endpoint) -> None:
    """A partial success loses nothing: the letter stays."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    partial = ExportTraceServiceResponse()
    partial.partial_success.rejected_spans = 1
    endpoint.respond = lambda _body, _count: (200, {}, partial.SerializeToString())

    assert main(["resend"]) == 1
    assert len(list(Path("dead-letters").rglob("*.pb"))) == 2


def test_a_letter_whose_note_is_lost_is_sent_all_the_same(
    refused: tuple[bytes, bytes], endpoint: Endpoint
) -> None:
    """The request is what matters."""
    endpoint.respond = lambda _body, _count: OK
    for note in Path("dead-letters").rglob("*.json"):
        note.write_text("{")

    assert main(["resend"]) == 0
    assert endpoint.bodies == list(refused)


def test_a_destination_that_is_unknown_or_gone(
    refused: tuple[bytes, bytes], endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong name is an error of usage; what is kept for a removed destination is said and stays."""
    assert main(["resend", "backnd"]) == 2
    assert "No destination is called 'backnd' (configured: backend)" in capsys.readouterr().err
    Path("redfirst.yaml").write_text("serve: {}")
    assert main(["resend", "--json"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["became"] for row in rows} == {"not_configured"}
    assert endpoint.got == []


def test_doctor_says_that_something_is_kept(
    refused: tuple[bytes, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    """With the command that gives it again."""
    main(["doctor", "--json", "--timeout", "0.5"])
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (one,) = (row for row in found if row["subject"] == "forwarding")

    assert one["found"] == "2 requests that backend refused for good"
    assert "redfirst resend" in one["remedy"]
