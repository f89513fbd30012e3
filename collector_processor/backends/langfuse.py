"""Langfuse: ``GET /api/public/traces/ID``. Credentials: ``LANGFUSE_PUBLIC_KEY`` and ``LANGFUSE_SECRET_KEY``."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence

from redfirst.collector_processor.backends.backend import spans_of
from redfirst.collector_processor.backends.getting import JsonApi, NotThere
from redfirst.collector_processor.importing.langfuse import Langfuse as Observations
from redfirst.evaluators.errors import ConfigurationError
from redfirst.evaluators.span import Span

_MOST = 100
"""Traces of one page of its list."""


class Langfuse:
    """One project of a Langfuse server: the keys say which."""

    name = "langfuse"

    def __init__(self, base: str, project: str | None, environment: Mapping[str, str]) -> None:  # noqa: ARG002
        public, secret = environment.get("LANGFUSE_PUBLIC_KEY"), environment.get("LANGFUSE_SECRET_KEY")
        if not public or not secret:
            raise ConfigurationError(
                "langfuse: set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY to the keys of the project."
            )
        token = base64.b64encode(f"{public}:{secret}".encode()).decode()
        self._api = JsonApi(base, headers={"Authorization": f"Basic {token}"}, name=self.name)
        self.address = self._api.address

    def trace(self, trace_id: str) -> Sequence[Span]:
        spans = spans_of(Observations(), [self._api.get("api", "public", "traces", trace_id)], trace_id)
        if not spans:
            raise NotThere(f"langfuse: trace {trace_id} at {self.address} holds no observation.")
        return spans

    def newest(self, most: int, like: Sequence[Span] = ()) -> Iterator[str]:  # noqa: ARG002 - the interface's
        answer = self._api.get(
            "api", "public", "traces", limit=min(most, _MOST), orderBy="timestamp.desc", fields="core"
        )
        for item in answer.get("data") or []:
            yield str(item["id"])
