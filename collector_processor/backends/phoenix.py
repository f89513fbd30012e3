"""Arize Phoenix: ``GET /v1/projects/PROJECT/spans?trace_id=…``. Credentials: ``PHOENIX_API_KEY``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from redfirst.collector_processor.backends.backend import spans_of
from redfirst.collector_processor.backends.getting import JsonApi, NotThere
from redfirst.collector_processor.importing.phoenix import Phoenix as PhoenixSpans
from redfirst.evaluators.span import Span

Json = Any

_PAGE = 1000


class Phoenix:
    """One project of a Phoenix server."""

    name = "phoenix"

    def __init__(self, base: str, project: str | None, environment: Mapping[str, str]) -> None:
        key = environment.get("PHOENIX_API_KEY")
        self._api = JsonApi(base, headers={"Authorization": f"Bearer {key}"} if key else None, name=self.name)
        self._project = project or "default"
        self.address = self._api.address

    def trace(self, trace_id: str) -> Sequence[Span]:
        spans = spans_of(PhoenixSpans(), self._pages(trace_id), trace_id)
        if not spans:
            raise NotThere(f"phoenix: project {self._project} at {self.address} holds no trace {trace_id}.")
        return spans

    def _pages(self, trace_id: str) -> Iterator[Json]:
        cursor: dict[str, str | int] = {}
        while True:
            answer = self._api.get(
                "v1", "projects", self._project, "spans", trace_id=trace_id, limit=_PAGE, **cursor
            )
            yield answer
            after = answer.get("next_cursor")
            if not after:
                return
            cursor = {"cursor": str(after)}

    def newest(self, most: int, like: Sequence[Span] = ()) -> Iterator[str]:  # noqa: ARG002 - the interface's
        answer = self._api.get(
            "v1", "projects", self._project, "traces", limit=most, sort="start_time", order="desc"
        )
        for item in answer.get("data") or []:
            yield str(item["trace_id"])
