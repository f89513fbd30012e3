"""One request over HTTP to somebody else's server: bounded in time and size, without redirects, silent about secrets."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

import urllib3
from urllib3 import exceptions

from redfirst.collector_processor.settings import ENVIRONMENT
from redfirst.evaluators.errors import ConfigurationError

VERSION = version("redfirst")
USER_AGENT = f"redfirst/{VERSION}"
_LONGEST_ANSWER = 64 << 10
_STEP = 16 << 10


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered; header names are in lower case, and a long body is cut."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class NoAnswer(Exception):
    """The server could not be reached, or did not answer in time. It names no address and no header."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        """``connection``, ``timeout`` or ``tls``."""


def from_environment(value: str, environment: Mapping[str, str], where: str) -> str:
    """A configured value, or that of the variable which ``env:NAME`` names.

    Raises:
        ConfigurationError: the variable is not set; the message says where it is asked for.
    """
    if not value.startswith(ENVIRONMENT):
        return value
    name = value.removeprefix(ENVIRONMENT)
    found = environment.get(name)
    if not found:
        raise ConfigurationError(f"{where}: the environment variable {name} is not set.")
    return found


def checked_headers(headers: Mapping[str, str], environment: Mapping[str, str], where: str) -> dict[str, str]:
    """Headers with the values that stand in the environment.

    Raises:
        ConfigurationError: a variable is not set, or a header could not be sent as it is.
    """
    found = {}
    for name, value in headers.items():
        text = from_environment(value, environment, f"{where}: header {name}").strip()
        if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            raise ConfigurationError(f"{where}: {name!r} is no name of a header.")
        if not text.isascii() or not text.isprintable():
            raise ConfigurationError(
                f"{where}: the value of header {name} has characters no header may have."
            )
        found[name] = text
    return found


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM for an ``https`` URL; what is None is the system's, or not shown."""

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None


class Poster:
    """Posts to one origin over a connection that is kept. For one thread."""

    def __init__(
        self, url: str, *, timeout: float, address: str | None = None, tls: Tls | None = None
    ) -> None:
        """``address`` is the IP address to connect to where the name must not be looked up again."""
        parts = urlsplit(url)
        host, secure = parts.hostname or "", parts.scheme == "https"
        self.path = parts.path + (f"?{parts.query}" if parts.query else "")
        self._host = parts.netloc.rpartition("@")[2]
        self._timeout = timeout
        options: dict[str, Any] = {"maxsize": 1, "block": False, "retries": False}
        port = parts.port or (443 if secure else 80)
        if secure:
            if address is not None:
                options |= {"server_hostname": host, "assert_hostname": host}
            if tls is not None:
                options |= {"ca_certs": tls.ca, "cert_file": tls.certificate, "key_file": tls.key}
            self._pool: urllib3.HTTPConnectionPool = urllib3.HTTPSConnectionPool(
                address or host, port, **options
            )
        else:
            self._pool = urllib3.HTTPConnectionPool(address or host, port, **options)

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Post once. Any status is an answer, a redirect too.

        Raises:
            NoAnswer: there is none.
        """
        return self.send("POST", path, body, headers)

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """Make a request once, as ``post`` does.

        Raises:
            NoAnswer: there is no answer.
        """
        deadline = time.monotonic() + self._timeout
        sent = {"User-Agent": USER_AGENT, **headers, "Host": self._host}
        try:
            response = self._pool.urlopen(
                method,
                path or "/",
                body=body,
                headers=sent,
                redirect=False,
                retries=False,
                assert_same_host=False,
                preload_content=False,
                timeout=urllib3.Timeout(total=self._timeout),
            )
        except exceptions.NewConnectionError as problem:  # urllib3 counts it among the time-outs
            raise NoAnswer("connection") from problem
        except exceptions.TimeoutError as problem:
            raise NoAnswer("timeout") from problem
        except exceptions.SSLError as problem:
            raise NoAnswer("tls") from problem
        except (exceptions.HTTPError, OSError) as problem:
            raise NoAnswer("connection") from problem
        named = {name.lower(): value for name, value in response.headers.items()}
        return Answer(response.status, named, _body(response, deadline))

    def close(self) -> None:
        """Close the connection; a later post opens another."""
        self._pool.close()


def _body(response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    """What came of the body: the status has decided already, so one that breaks off is no failure."""
    parts: list[bytes] = []
    size = 0
    whole = False
    try:
        while size < _LONGEST_ANSWER and time.monotonic() < deadline:
            data = response.read1(_STEP)
            if not data:
                whole = True
                break
            parts.append(data)
            size += len(data)
    except (exceptions.HTTPError, OSError):
        whole = False
    finally:
        if whole:
            response.release_conn()
        else:
            response.close()
    return b"".join(parts)[:_LONGEST_ANSWER]
