"""JSON out of somebody else's API: bounded in time and size, without redirects, silent about credentials."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import urllib3
from urllib3 import exceptions

from redfirst.collector_processor.posting.answers import excerpt
from redfirst.collector_processor.posting.poster import USER_AGENT
from redfirst.evaluators.errors import ConfigurationError, RedfirstError

Json = Any

LONGEST_ANSWER = 256 << 20
TIMEOUT_SECONDS = 60.0
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class BackendUnreadable(RedfirstError):
    """A backend that could not be reached, or that did not answer with what its API promises."""

    exit_code = 3


class NotThere(BackendUnreadable):
    """What was asked for is not in the backend."""

    exit_code = 2


class JsonApi:
    """One server. For one thread."""

    def __init__(self, base: str, *, headers: Mapping[str, str] | None = None, name: str) -> None:
        """
        Args:
            base: ``http://host:port/path``.
            headers: what is sent with every request, credentials among them.
            name: the backend's, for messages.

        Raises:
            ConfigurationError: the address is none, holds a password, or credentials would travel in the clear.
        """
        parts = urlsplit(base)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(f"{name}: {base!r} is no address; give it as http://host:port.")
        if "@" in parts.netloc:
            raise ConfigurationError(
                f"{name}: the address holds a password; put credentials into the environment."
            )
        if headers and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            raise ConfigurationError(
                f"{name}: credentials are set and {parts.netloc} is spoken to without TLS; use https."
            )
        self.address = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._name = name
        self._headers = {"User-Agent": USER_AGENT, "Accept": "application/json", **(headers or {})}
        self._pool = urllib3.PoolManager(num_pools=1, retries=False, timeout=TIMEOUT_SECONDS)

    def get(self, *path: str, **query: str | int) -> Mapping[str, Json]:
        """The answer to a GET; the parts of the path are escaped.

        Raises:
            NotThere: the server answers 404.
            BackendUnreadable: it cannot be reached, refuses, or answers something else than a JSON object.
        """
        return self._ask("GET", path, query, None)

    def post(self, *path: str, body: Json) -> Mapping[str, Json]:
        """The answer to a POST of JSON. Raises as ``get`` does."""
        return self._ask("POST", path, {}, json.dumps(body).encode())

    def _ask(
        self, method: str, path: tuple[str, ...], query: Mapping[str, object], body: bytes | None
    ) -> Mapping[str, Json]:
        where = f"{self.address}/{'/'.join(quote(part, safe='') for part in path)}"
        headers = self._headers | ({"Content-Type": "application/json"} if body is not None else {})
        try:
            response = self._pool.request(
                method,
                f"{where}?{urlencode(query)}" if query else where,
                body=body,
                headers=headers,
                redirect=False,
                preload_content=False,
            )
            with response:
                said = response.read(LONGEST_ANSWER + 1)
        except exceptions.NewConnectionError as problem:
            raise self._silent("nothing listens there") from problem
        except exceptions.TimeoutError as problem:
            raise self._silent(f"no answer within {TIMEOUT_SECONDS:g} s") from problem
        except exceptions.SSLError as problem:
            raise self._silent("TLS failed") from problem
        except (exceptions.HTTPError, OSError) as problem:
            raise self._silent("the connection broke off") from problem
        return self._read(where, response.status, said)

    def _silent(self, why: str) -> BackendUnreadable:
        return BackendUnreadable(f"{self._name} at {self.address}: {why}; check the address and the server.")

    def _read(self, where: str, status: int, said: bytes) -> Mapping[str, Json]:
        secrets = [value for key, value in self._headers.items() if key not in ("User-Agent", "Accept")]
        if status == 404:
            raise NotThere(
                f"{self._name}: {where} is not there (404): {excerpt(said, secrets) or 'no reason'}."
            )
        if status in (401, 403):
            raise BackendUnreadable(
                f"{self._name} at {self.address}: not allowed ({status}); set its credentials in the environment."
            )
        if status != 200:
            raise BackendUnreadable(
                f"{self._name}: {where} answered {status}: {excerpt(said, secrets) or 'nothing'}."
            )
        if len(said) > LONGEST_ANSWER:
            raise BackendUnreadable(f"{self._name}: {where} answered more than {LONGEST_ANSWER >> 20} MiB.")
        try:
            answer: Mapping[str, Json] = json.loads(said)
        except (ValueError, RecursionError) as problem:
            raise BackendUnreadable(
                f"{self._name}: {where} answered no JSON; is that the address of its API?"
            ) from problem
        if not isinstance(answer, Mapping):
            raise BackendUnreadable(
                f"{self._name}: {where} answered no JSON object; is that the address of its API?"
            )
        return answer
