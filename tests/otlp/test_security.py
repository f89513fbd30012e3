"""Who may send: certificates, tokens and browsers."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
import trustme

from redfirst.collector_processor.receiving.certificates import CertificateRefused, Certificates
from redfirst.collector_processor.receiving.origins import Origins
from redfirst.collector_processor.receiving.over_grpc import GrpcOptions
from redfirst.collector_processor.receiving.over_http import HttpOptions
from redfirst.collector_processor.receiving.tenants import Tenants, configured_tenants
from redfirst.collector_processor.settings import TokenSettings
from redfirst.evaluators.errors import ConfigurationError
from tests.otlp.bodies import JSON, PROTOBUF, TRACES, body
from tests.otlp.items import proves
from tests.otlp.receiver import Receiver, answer, head

TOKENS = Tenants([("north", "n-1"), ("north", "n-2"), ("south", "s-1")])


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA(key_type=trustme.KeyType.ECDSA)


def write(folder: Path, authority: trustme.CA, name: str = "localhost") -> None:
    issued = authority.issue_cert(name, "127.0.0.1", key_type=trustme.KeyType.ECDSA)
    issued.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
    issued.private_key_pem.write_to_path(str(folder / "key.pem"))
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))


@contextlib.contextmanager
def secured(
    tmp_path: Path, fresh, authority: trustme.CA, *, mutual: bool = False, changed=lambda _: None
) -> Iterator[Receiver]:
    write(tmp_path, authority)
    found = Certificates(
        tmp_path / "cert.pem", tmp_path / "key.pem", tmp_path / "ca.pem" if mutual else None, changed=changed
    )
    with fresh(certificates=found, grpc=GrpcOptions(certificates=found)) as receiver:
        yield receiver


def connected(receiver: Receiver, context: ssl.SSLContext) -> ssl.SSLSocket:
    host, _, port = receiver.http.rpartition(":")
    return context.wrap_socket(socket.create_connection((host, int(port)), 20), server_hostname="localhost")


def trusting(authority: trustme.CA, *, shown: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    if shown is not None:
        context.load_cert_chain(shown / "cert.pem", shown / "key.pem")
    return context


def serial(receiver: Receiver, authority: trustme.CA) -> str:
    with connected(receiver, trusting(authority)) as connection:
        return str(connection.getpeercert()["serialNumber"])


def grpc_status(receiver: Receiver, credentials: grpc.ChannelCredentials) -> grpc.StatusCode:
    options = [("grpc.ssl_target_name_override", "localhost")]
    with grpc.secure_channel(receiver.grpc, credentials, options=options) as channel:
        try:
            channel.unary_unary(TRACES)(body(), timeout=10)
        except grpc.RpcError as problem:
            return problem.code()
    return grpc.StatusCode.OK


@proves(21)
def test_21_tls(tmp_path, fresh, authority):
    """Both ports speak TLS of 1.2 or later; a sender that does not trust the authority sends nothing."""
    with secured(tmp_path, fresh, authority) as receiver:
        with connected(receiver, trusting(authority)) as connection:
            assert receiver.post("/v1/traces", body(), connection=connection).status == 200
        ca = (tmp_path / "ca.pem").read_bytes()
        assert grpc_status(receiver, grpc.ssl_channel_credentials(ca)) is grpc.StatusCode.OK
        with pytest.raises(ssl.SSLCertVerificationError):
            connected(receiver, ssl.create_default_context())
        old = trusting(authority)
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises(ssl.SSLError):
            connected(receiver, old)


@proves(21)
def test_21_senders_show_certificates(tmp_path, fresh, authority):
    """With `client_ca`, only those with one of that authority get in, over either protocol."""
    with secured(tmp_path, fresh, authority, mutual=True) as receiver:
        key, chain, ca = (tmp_path / name for name in ("key.pem", "cert.pem", "ca.pem"))
        with connected(receiver, trusting(authority, shown=tmp_path)) as connection:
            assert receiver.post("/v1/traces", body(), connection=connection).status == 200
        shown = grpc.ssl_channel_credentials(ca.read_bytes(), key.read_bytes(), chain.read_bytes())
        assert grpc_status(receiver, shown) is grpc.StatusCode.OK
        with pytest.raises((ssl.SSLError, ConnectionError)), connected(receiver, trusting(authority)) as bare:
            receiver.post("/v1/traces", body(), connection=bare)
        assert (
            grpc_status(receiver, grpc.ssl_channel_credentials(ca.read_bytes()))
            is grpc.StatusCode.UNAVAILABLE
        )
        assert len(receiver.spans()) == 2


@proves(21)
def test_21_certificates_are_renewed(tmp_path, fresh, authority):
    """New connections get the new certificate without a restart; a broken one changes nothing, and is told of once."""
    told: list[str | None] = []
    with secured(tmp_path, fresh, authority, changed=told.append) as receiver:
        first = serial(receiver, authority)
        write(tmp_path, authority)
        second = serial(receiver, authority)
        (tmp_path / "key.pem").write_text("no key")
        assert (first != second, serial(receiver, authority), serial(receiver, authority)) == (
            True,
            second,
            second,
        )
        other = trustme.CA(key_type=trustme.KeyType.ECDSA)
        write(tmp_path, other)
        assert serial(receiver, other) != second
        assert (
            grpc_status(receiver, grpc.ssl_channel_credentials(other.cert_pem.bytes())) is grpc.StatusCode.OK
        )
    assert [bool(problem) for problem in told] == [False, True, False]


@proves(21)
def test_21_authorities_of_senders_are_renewed(tmp_path, fresh, authority):
    """After a change, senders of the new authority get in and those of the old do not, over either protocol, also ones
    that do not say which name they look for."""
    old, new = tmp_path / "old", trustme.CA(key_type=trustme.KeyType.ECDSA)
    old.mkdir()
    write(old, authority)

    def nameless(shown: Path, trusted: trustme.CA) -> int:
        context = trusting(trusted, shown=shown)
        context.check_hostname = False
        host, _, port = receiver.http.rpartition(":")
        with context.wrap_socket(socket.create_connection((host, int(port)), 20)) as connection:
            return receiver.post("/v1/traces", body(), connection=connection).status

    def over_grpc(shown: Path, trusted: trustme.CA) -> grpc.StatusCode:
        key, chain = (shown / "key.pem").read_bytes(), (shown / "cert.pem").read_bytes()
        return grpc_status(receiver, grpc.ssl_channel_credentials(trusted.cert_pem.bytes(), key, chain))

    with secured(tmp_path, fresh, authority, mutual=True) as receiver:
        assert (nameless(old, authority), over_grpc(old, authority)) == (200, grpc.StatusCode.OK)
        write(tmp_path, new)
        assert (nameless(tmp_path, new), over_grpc(tmp_path, new)) == (200, grpc.StatusCode.OK)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            nameless(old, new)
        assert over_grpc(old, new) is grpc.StatusCode.UNAVAILABLE


@proves(21)
def test_21_a_certificate_that_is_none_stops_the_start(tmp_path, authority):
    """The message names the files and what to give."""
    write(tmp_path, authority)
    (tmp_path / "key.pem").write_text("no key")
    with pytest.raises(CertificateRefused, match=r"key\.pem .*give PEM files"):
        Certificates(tmp_path / "cert.pem", tmp_path / "key.pem")
    with pytest.raises(CertificateRefused, match=r"none\.pem cannot be read"):
        Certificates(tmp_path / "none.pem", tmp_path / "key.pem")


@proves(21)
def test_21_tokens_over_http(fresh):
    """None or an unknown one is 401, that of another tenant than is named 403; the right one is taken, for its tenant."""
    with fresh(tenants=TOKENS) as receiver:

        def status(**headers: str) -> int:
            return receiver.post("/v1/traces", body(), **headers).status

        bare = receiver.post("/v1/traces", body())
        assert (bare.status, bare.headers["www-authenticate"], bare.headers["content-type"]) == (
            401,
            "Bearer",
            PROTOBUF,
        )
        assert [status(authorization=text) for text in ("Bearer no", "Basic n-1", "Bearer ")] == [
            401,
            401,
            401,
        ]
        assert status(authorization="Bearer s-1", x_redfirst_tenant="north") == 403
        assert status(authorization="bearer n-2", x_redfirst_tenant="north") == 200
        assert status(authorization="Bearer s-1") == 200
        assert [record.tenant for record in receiver.records()] == ["north", "south"]


@proves(21)
def test_21_tokens_over_grpc(fresh):
    """UNAUTHENTICATED and PERMISSION_DENIED, before the message is read."""
    with fresh(tenants=TOKENS) as receiver, grpc.insecure_channel(receiver.grpc) as channel:

        def code(*metadata: tuple[str, str]) -> grpc.StatusCode:
            try:
                channel.unary_unary(TRACES)(body(), timeout=10, metadata=metadata)
            except grpc.RpcError as problem:
                return problem.code()
            return grpc.StatusCode.OK

        assert code() is grpc.StatusCode.UNAUTHENTICATED
        assert code(("authorization", "Bearer n-3")) is grpc.StatusCode.UNAUTHENTICATED
        other = (("authorization", "Bearer n-1"), ("x-redfirst-tenant", "south"))
        assert code(*other) is grpc.StatusCode.PERMISSION_DENIED
        assert code(("authorization", "Bearer n-1")) is grpc.StatusCode.OK
        assert [record.tenant for record in receiver.records()] == ["north"]


@proves(21)
def test_21_tokens_come_from_the_environment():
    """A missing variable, no token in it, or one token for two tenants stops the start; the message holds no token."""
    north, south = (TokenSettings(tenant=name, token=f"env:{name}") for name in ("north", "south"))
    assert configured_tenants([north], {"north": "t"}).of({"authorization": "Bearer t"}) == "north"
    for environment in ({"north": "t"}, {"north": "t", "south": "two words"}, {"north": "t", "south": "t"}):
        with pytest.raises(ConfigurationError, match="serve: tokens: south") as wrong:
            configured_tenants([north, south], environment)
        assert "two words" not in str(wrong.value)


@proves(22)
def test_22_preflight(fresh):
    """A page of a configured origin may send; the same question from elsewhere is any other OPTIONS: 405."""
    with fresh(http=HttpOptions(origins=Origins(["https://app.test"]))) as receiver:

        def asked(origin: str) -> tuple[int, str | None]:
            found = receiver.say(
                head("OPTIONS", "/v1/traces", {
                    "origin": origin, "access-control-request-method": "POST",
                    "access-control-request-headers": "content-type,authorization",
                })
            )  # fmt: skip
            return found.status, found.headers.get("access-control-allow-headers")

        assert asked("https://app.test") == (204, "content-type,authorization")
        assert asked("https://other.test") == (405, None)
        for path, status in (("/v1/traces", 200), ("/v1/none", 404)):
            found = receiver.post(path, b"{}", content_type=JSON, origin="https://app.test")
            assert (found.status, found.headers["access-control-allow-origin"]) == (
                status,
                "https://app.test",
            )
        plain = receiver.post("/v1/traces", b"{}", content_type=JSON, origin="https://other.test")
        assert (plain.status, "access-control-allow-origin" in plain.headers) == (200, False)


@proves(22)
def test_22_no_origin_unless_configured(receiver):
    """By default no page of any site can send from a browser."""
    found = receiver.say(
        head("OPTIONS", "/v1/traces", {"origin": "https://app.test", "access-control-request-method": "POST"})
    )
    assert (found.status, json.loads(found.body)["code"]) == (405, 12)


@proves(20, 21)
def test_21_a_handshake_that_stalls_holds_nobody_up(tmp_path, fresh, authority):
    """Sockets that connect and say nothing are no hindrance to a sender that does."""
    with secured(tmp_path, fresh, authority) as receiver:
        silent = [receiver.connect() for _ in range(50)]
        with connected(receiver, trusting(authority)) as connection:
            connection.sendall(head("POST", "/v1/traces", {"content-type": PROTOBUF, "content-length": "0"}))
            assert answer(connection).status == 200
        for one in silent:
            one.close()
