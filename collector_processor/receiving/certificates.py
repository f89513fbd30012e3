"""The certificate of the OTLP ports, read again when its files change."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redfirst.evaluators.errors import RedfirstError

_Stamp = tuple[tuple[int, int, int], ...]


class CertificateRefused(RedfirstError):
    """The files of a certificate are missing, or are not one."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with its key as both protocols take it; with ``client_ca``, senders must show one of theirs."""

    context: ssl.SSLContext
    chain: bytes
    key: bytes
    client_ca: bytes | None


class Certificates:
    """The certificate in force. New connections get the one that the files hold; a bad one changes nothing."""

    def __init__(
        self,
        certificate: Path,
        key: Path,
        client_ca: Path | None = None,
        *,
        changed: Callable[[str | None], None] = lambda _problem: None,
    ) -> None:
        """``changed`` is told of every change of the files: what was wrong with it, or None.

        Raises:
            CertificateRefused: there is no good one to begin with.
        """
        self._files = (certificate, key) if client_ca is None else (certificate, key, client_ca)
        self._changed = changed
        self._stamp = self._stamped()
        self._current = self._read()

    def current(self) -> Certificate:
        """What the files hold, or held when they were last good."""
        stamp = self._stamped()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._current = self._read()
            except CertificateRefused as problem:
                self._changed(str(problem))
            else:
                self._changed(None)
        return self._current

    def context(self) -> ssl.SSLContext:
        """A context that takes the certificate in force at each handshake."""

        def renew(
            connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _given: ssl.SSLContext
        ) -> None:
            connection.context = self.current().context

        outer = _made(self._files)
        outer.sni_callback = renew
        return outer

    def credentials(self) -> Any:
        """The same for gRPC."""
        import grpc  # type: ignore[import-untyped]

        def configuration(found: Certificate) -> Any:
            return grpc.ssl_server_certificate_configuration([(found.key, found.chain)], found.client_ca)

        given = self._current

        def renewed() -> Any:
            nonlocal given
            found = self.current()
            if found is given:
                return None
            given = found
            return configuration(found)

        return grpc.dynamic_ssl_server_credentials(
            configuration(given), renewed, require_client_authentication=given.client_ca is not None
        )

    def _read(self) -> Certificate:
        try:
            content = [path.read_bytes() for path in self._files]
        except OSError as problem:
            raise CertificateRefused(
                f"tls: {problem.filename} cannot be read ({problem.strerror}); give PEM files."
            ) from problem
        return Certificate(_made(self._files), content[0], content[1], content[2] if content[2:] else None)

    def _stamped(self) -> _Stamp:
        found = []
        for path in self._files:
            try:
                about = path.stat()
            except OSError:
                found.append((0, 0, 0))  # said when it is read
            else:
                found.append((about.st_mtime_ns, about.st_size, about.st_ino))
        return tuple(found)


def _made(files: tuple[Path, ...]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(files[0], files[1])
        if files[2:]:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(files[2])
    except (ssl.SSLError, OSError) as problem:
        names = ", ".join(str(path) for path in files)
        raise CertificateRefused(
            f"tls: no certificate with its key in {names} ({problem}); give PEM files that belong together."
        ) from problem
    return context
