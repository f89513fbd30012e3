"""Which pages of which sites a browser lets send here (CORS)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Headers = list[tuple[bytes, bytes]]

ANY = "*"
_KEPT_SECONDS = b"7200"


class Origins:
    """The origins that may send; none, unless configured."""

    def __init__(self, allowed: Sequence[str] = ()) -> None:
        self._allowed = frozenset(allowed)

    def headers(self, request: Mapping[bytes, str]) -> Headers:
        """What every answer to a request of an allowed origin carries; nothing for others."""
        origin = request.get(b"origin")
        if origin is None or not self._allowed & {origin, ANY}:
            return []
        return [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"origin")]

    def preflight(self, method: str, request: Mapping[bytes, str]) -> Headers | None:
        """The answer's headers when a browser asks whether it may send, and it may; None otherwise."""
        allowed = self.headers(request)
        if method != "OPTIONS" or not allowed or b"access-control-request-method" not in request:
            return None
        wanted = request.get(b"access-control-request-headers", "content-type")
        return [
            *allowed,
            (b"access-control-allow-methods", b"POST"),
            (b"access-control-allow-headers", wanted.encode("latin-1")),
            (b"access-control-max-age", _KEPT_SECONDS),
        ]
