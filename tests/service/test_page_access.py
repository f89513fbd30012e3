"""Who may read, label and erase on port 4320: whoever may send, and the commands on the service's own machine."""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from .conftest import QUICK, Served, Tools, a_run, body_of, eventually

TOKENS = json.dumps([{"tenant": "north", "token": "env:NORTH"}, {"tenant": "south", "token": "env:SOUTH"}])
GUARDED = {**QUICK, "REDFIRST_TOKENS": TOKENS, "NORTH": "n-1", "SOUTH": "s-1"}
PROTOBUF = "application/x-protobuf"


def bearer(token: str) -> str:
    return f"Bearer {token}"


def basic(token: str) -> str:
    return "Basic " + base64.b64encode(f"whoever:{token}".encode()).decode()


@pytest.fixture(scope="module")
def guarded(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("guarded") / "home", GUARDED).start()
    yield made
    made.kill()


@pytest.fixture
def fresh(tools: Tools, tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path / "home", GUARDED)
    yield made
    if made.process is not None:
        made.kill()


def asked(
    url: str,
    authorization: str | None = None,
    *,
    posted: dict[str, Any] | None = None,
    context: ssl.SSLContext | None = None,
) -> tuple[int, dict[str, str], Any]:
    """Status, headers and what was said."""
    headers = {"content-type": "application/json"}
    if authorization is not None:
        headers["authorization"] = authorization
    data = None if posted is None else json.dumps(posted).encode()
    request = urllib.request.Request(url, data=data, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20, context=context) as answer:
            status, given, body = answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as problem:
        with problem:
            status, given, body = problem.code, problem.headers, problem.read()
    said = json.loads(body) if given["content-type"] == "application/json" else body.decode()
    return status, {name.lower(): value for name, value in given.items()}, said


def judged(service: Served, token: str) -> str:
    """A run that was sent with a token and judged."""
    run = a_run()
    sent = service.post("/v1/traces", body_of(run), content_type=PROTOBUF, authorization=bearer(token))
    assert sent[0] == 200
    name = f"{run[0].context.trace_id:032x}"
    eventually(lambda: name in service.stored())
    return name


def command(service: Served, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "redfirst.collector_processor.cli", *arguments, "--home", str(service.home)],
        cwd=service.home.parent,
        env={**os.environ, "REDFIRST_HOME": str(service.home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def requests(run_id: str) -> list[tuple[str, dict[str, Any] | None]]:
    """Everything that the port does, but health."""
    return [
        ("/metrics", None),
        ("/api/runs", None),
        (f"/api/runs/{run_id}", None),
        (f"/api/runs/{run_id}/label", {"right": True}),
        (f"/api/runs/{run_id}/delete", {}),
        ("/api/backfill", {"since_ns": 0, "revision": ""}),
        ("/api/erasures", {"user": "u-1"}),
    ]


@pytest.mark.parametrize(
    "wrong", [None, bearer("n-2"), bearer(""), basic("n-2"), "Basic n-1", "Basic é", "Digest n-1"]
)
def test_without_a_token_of_the_receivers_nothing_is_told_or_changed(guarded: Served, wrong: str | None):
    """401 that says how, for every path but health, as for senders; and it is counted."""
    name = judged(guarded, "n-1")
    before = refused(guarded)
    for number, (path, posted) in enumerate(requests(name), 1):
        status, headers, said = asked(guarded.page + path, wrong, posted=posted)
        assert (path, status) == (path, 401)
        assert headers["www-authenticate"].startswith("Bearer, Basic realm=")
        assert "Bearer TOKEN" in said["error"]
        assert refused(guarded) == before + number
    assert name in guarded.stored()
    assert [asked(guarded.page + path)[0] for path in ("/healthz", "/readyz")] == [200, 200]


def refused(service: Served) -> float:
    text = asked(f"{service.page}/metrics", bearer("n-1"))[2]
    lines = [line for line in text.splitlines() if line.startswith('redfirst_rejected_total{reason="unauth')]
    return float(lines[0].rpartition(" ")[2]) if lines else 0.0


@pytest.mark.parametrize("way", [bearer, basic], ids=["bearer", "basic"])
def test_a_token_opens_the_runs_of_its_tenant_and_no_others(guarded: Served, way: Any):
    """Another tenant's run is none: not listed, not shown, not labelled, not erased, by its id or by its user's."""
    mine, theirs = judged(guarded, "n-1"), judged(guarded, "s-1")
    api = f"{guarded.page}/api/runs"
    listed = {run["trace_id"] for run in asked(api, way("n-1"))[2]["runs"]}
    assert (mine in listed, theirs in listed) == (True, False)
    for run_id, expected in ((mine, 200), (theirs, 404)):
        assert asked(f"{api}/{run_id}", way("n-1"))[0] == expected
        assert asked(f"{api}/{run_id}/label", way("n-1"), posted={"right": True})[0] == expected
        assert asked(f"{api}/{run_id}/delete", way("n-1"), posted={})[0] == expected
    assert asked(f"{guarded.page}/api/erasures", way("n-1"), posted={"user": "u"})[2] == {"erased": []}
    again = {"since_ns": 0, "revision": ""}
    assert asked(f"{guarded.page}/api/backfill", way("n-1"), posted=again)[0] == 403
    assert asked(f"{guarded.page}/metrics", way("s-1"))[0] == 200
    assert (mine in guarded.stored(), theirs in guarded.stored()) == (False, True)
    assert not guarded.stored()[theirs].labels


@pytest.mark.parametrize(
    "posted", [{}, {"user": ""}, {"user": 7}, {"user": "a", "session": "b"}, {"agent": "support"}]
)
def test_an_erasure_is_of_one_user_or_one_session(guarded: Served, posted: dict[str, Any]):
    """Anything else erases nothing, and is told what to give."""
    status, _, said = asked(f"{guarded.page}/api/erasures", bearer("n-1"), posted=posted)
    assert (status, said) == (400, {"error": 'An erasure is {"user": "ID"} or {"session": "ID"}.'})


def test_commands_on_the_machine_need_no_token(guarded: Served, monkeypatch: pytest.MonkeyPatch):
    """label, delete and backfill go through the service, doctor reads its metrics: what may read the home may do that.
    The key is in the lock alone, which nobody else can read, and in no output."""
    mine, theirs = judged(guarded, "n-1"), judged(guarded, "s-1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # of a company, which must not learn the key
    command(guarded, "label", theirs, "wrong")
    assert [label.right for label in guarded.stored()[theirs].labels] == [False]
    command(guarded, "delete", mine)
    monkeypatch.delenv("http_proxy")
    assert mine not in guarded.stored()
    assert json.loads(command(guarded, "backfill", "--json"))["by"] == "service"
    lock = guarded.home / "serve.lock"
    key = json.loads(lock.read_text())["token"]
    assert lock.stat().st_mode & 0o077 == 0
    assert len(key) >= 32
    said = doctor(guarded)
    assert "spans accepted" in said
    assert key not in said


def doctor(service: Served) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "redfirst.collector_processor.cli", "doctor"],
        cwd=service.home.parent,
        env={
            **os.environ,
            "REDFIRST_HOME": str(service.home),
            "OTEL_EXPORTER_OTLP_ENDPOINT": service.http,
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer n-1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


@pytest.mark.parametrize("mutual", [False, True], ids=["tls", "mtls"])
def test_the_port_has_the_receivers_certificate(fresh: Served, tmp_path: Path, mutual: bool):
    """No byte in the clear; with `client_ca` nobody without a certificate gets in; commands on the machine do, on a port
    of loopback that wants their key, which a stranger's request does not have."""
    authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
    issued = authority.issue_cert("localhost", "127.0.0.1", key_type=trustme.KeyType.ECDSA)
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    tls = {"certificate": "cert.pem", "key": "key.pem", **({"client_ca": "ca.pem"} if mutual else {})}
    tokens = {} if mutual else {"REDFIRST_TOKENS": TOKENS}
    fresh.start(**{"REDFIRST_TOKENS": "[]", **tokens, "REDFIRST_TLS": json.dumps(tls)})
    assert fresh.page.startswith("https://127.0.0.1:")

    context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        asked(fresh.page.replace("https:", "http:") + "/healthz")
    if mutual:
        with pytest.raises((urllib.error.URLError, ConnectionError)):
            asked(f"{fresh.page}/api/runs", context=context)
        context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    token = None if mutual else bearer("n-1")
    assert asked(f"{fresh.page}/api/runs", token, context=context)[2] == {"runs": []}

    local = json.loads((fresh.home / "serve.lock").read_text())["local"]
    assert local.startswith("http://127.0.0.1:")
    assert [asked(local + path, token, posted=posted)[0] for path, posted in requests("00" * 16)] == [401] * 7
    assert json.loads(command(fresh, "backfill", "--json"))["by"] == "service"
    assert fresh.stop() == 0
