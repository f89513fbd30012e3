"""Fault 39: what is edited while the service runs and is wrong changes nothing; what is right is in force."""

from __future__ import annotations

import json
import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import pytest
import trustme
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from tests.service.conftest import Served, a_run, body_of, eventually, parsed

PROTOBUF = "application/x-protobuf"
GOOD = "schema: redfirst.rules/1\nrules:\n  - {{id: {0}, kind: forbid, call: search}}\n"
BROKEN = {
    "no YAML": "schema: [",
    "no such kind": "schema: redfirst.rules/1\nrules:\n  - {id: x, kind: forbidd, call: search}\n",
    "nothing": "",
    "not there": None,
}


@pytest.mark.parametrize("wrong", BROKEN)
def test_a_rules_file_that_is_wrong_leaves_the_old_rules_in_force(stopped: Served, wrong: str) -> None:
    """Refused, counted and said with the file's name; runs go on being judged by the rules before; a mended file is taken
    without a restart."""
    folder = stopped.home.parent
    rules = folder / "rules.yaml"
    rules.write_text(GOOD.format("before"))
    (folder / "redfirst.yaml").write_text("rules: rules.yaml\n")
    stopped.start()
    assert "before" in judged(stopped)

    text = BROKEN[wrong]
    if text is None:
        rules.unlink()
    else:
        rules.write_text(text)
    refused = 'redfirst_rules_reloads_total{result="refused"}'
    eventually(lambda: stopped.metrics().get(refused) == 1)
    assert "before" in judged(stopped)
    assert stopped.metrics()["redfirst_ready"] == 1

    rules.write_text(GOOD.format("after"))
    eventually(lambda: stopped.metrics().get('redfirst_rules_reloads_total{result="taken"}') == 1)
    found = judged(stopped)
    assert ("before" in found, "after" in found) == (False, True)
    assert stopped.metrics()[refused] == 1


def judged(served: Served) -> set[str]:
    """The checks that a run which is sent now is judged by."""
    run = a_run()
    assert served.post("/v1/traces", body_of(run), content_type=PROTOBUF)[0] == 200
    name = f"{run[0].context.trace_id:032x}"
    eventually(lambda: name in served.stored())
    return {one["check"] for one in served.get(f"/api/runs/{name}")["record"]["verdicts"]}


def issue(folder: Path, authority: trustme.CA) -> None:
    issued = authority.issue_cert("localhost", "127.0.0.1", key_type=trustme.KeyType.ECDSA)
    issued.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
    issued.private_key_pem.write_to_path(str(folder / "key.pem"))


def serials(served: Served, authority: trustme.CA) -> set[str]:
    """The certificate on each of the three ports, as whoever trusts this authority sees it; a run is sent over gRPC."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    found = set()
    for address in (urlsplit(served.http).netloc, urlsplit(served.page).netloc, served.grpc):
        host, _, port = address.rpartition(":")
        context.set_alpn_protocols(["h2"] if address == served.grpc else ["http/1.1"])
        with (
            socket.create_connection((host, int(port)), 20) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as secure,
        ):
            certificate = secure.getpeercert()
            assert certificate is not None
            found.add(str(certificate["serialNumber"]))
    credentials = grpc.ssl_channel_credentials(authority.cert_pem.bytes())
    with grpc.secure_channel(
        served.grpc, credentials, options=[("grpc.ssl_target_name_override", "localhost")]
    ) as channel:
        TraceServiceStub(channel).Export(parsed(body_of(a_run())), timeout=20)
    return found


def test_a_certificate_is_rotated_on_all_ports_and_a_broken_one_leaves_the_old_in_force(
    stopped: Served, tmp_path: Path
) -> None:
    """Old, broken, gone, new: at each moment all three ports show one good certificate, and senders deliver."""
    authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
    issue(tmp_path, authority)
    stopped.start(REDFIRST_TLS=json.dumps({"certificate": "cert.pem", "key": "key.pem"}))
    (first,) = serials(stopped, authority)

    (tmp_path / "key.pem").write_text("no key")
    assert serials(stopped, authority) == {first}
    (tmp_path / "cert.pem").unlink()
    assert serials(stopped, authority) == {first}
    reloads = {
        kind: f'redfirst_certificate_reloads_total{{result="{kind}"}}' for kind in ("refused", "taken")
    }
    assert stopped.metrics()[reloads["refused"]] == 2

    issue(tmp_path, authority)
    (second,) = serials(stopped, authority)
    assert second != first
    assert stopped.metrics()[reloads["taken"]] == 1
    eventually(lambda: len(stopped.stored()) == 4)
    assert stopped.stop() == 0
