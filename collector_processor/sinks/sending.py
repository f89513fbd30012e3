"""One request to a backend, and what its answer means for a score."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import orjson

from redfirst.collector_processor.posting.answers import asked_to_wait, excerpt
from redfirst.collector_processor.posting.poster import Answer, NoAnswer, Poster
from redfirst.collector_processor.sinks.sink import NotTaken

Json = Any

_AGAIN = frozenset({408, 409, 425})
_WHOLE = frozenset({401, 403, 429, 502, 503, 504})
"""These say nothing of the run: the key is wrong, or the backend is busy or away."""


class Sending:
    """A ``Send`` over one kept connection. For one thread."""

    def __init__(self, url: str, headers: Mapping[str, str], *, timeout: float) -> None:
        self._poster = Poster(url, timeout=timeout)
        self._headers = dict(headers)
        self._secrets = tuple(headers.values())

    def __call__(self, method: str, path: str, body: Json | bytes | None = None) -> Json:
        """The answer's JSON; None where it has none.

        Raises:
            NotTaken: it is no success.
        """
        kind = "application/x-protobuf" if isinstance(body, bytes) else "application/json"
        data = body if body is None or isinstance(body, bytes) else orjson.dumps(body)
        headers = {**self._headers, **({} if data is None else {"Content-Type": kind})}
        try:
            answer = self._poster.send(method, self._poster.path + path, data, headers)
        except NoAnswer as problem:
            raise NotTaken(problem.reason, again=True, whole=True) from problem
        if not 200 <= answer.status < 300:
            raise self._refusal(answer)
        if isinstance(body, bytes):
            return None
        try:
            return orjson.loads(answer.body) if answer.body.strip() else None
        except orjson.JSONDecodeError:
            # taken by its status; who needs the content finds that there is none
            return None

    def close(self) -> None:
        """Close the connection."""
        self._poster.close()

    def _refusal(self, answer: Answer) -> NotTaken:
        status, said = answer.status, excerpt(answer.body, self._secrets)
        if status == 404:
            return NotTaken("not_there", again=True, said=said)
        if 300 <= status < 400:
            return NotTaken("redirect", again=True, whole=True)
        whole = status in _WHOLE
        again = whole or status in _AGAIN or status >= 500
        after = asked_to_wait(answer.headers.get("retry-after"), time.time())
        return NotTaken(f"status_{status}", again=again, whole=whole, after=after, said=said)
