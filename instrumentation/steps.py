"""Agents, and the steps of their work that are neither tools nor models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context

from redfirst.evaluators import semconv
from redfirst.instrumentation import memory
from redfirst.instrumentation.capture import plain
from redfirst.instrumentation.kinds import Kind
from redfirst.instrumentation.opened import Opened, text_of
from redfirst.instrumentation.provider import settings
from redfirst.instrumentation.run import Run, with_run

_MOST_DOCUMENTS = 12
"""So many documents are flattened, in up to four attributes each of a span's 128; the JSON has them all."""


class Chain(Kind):
    """A step that other steps are part of. What the others here add to is what it was given and what it gave."""

    oi_kind = "CHAIN"

    def on_call(self, opened: Opened, arguments: Mapping[str, Any]) -> None:
        if settings.content.inputs and arguments:
            value = next(iter(arguments.values())) if len(arguments) == 1 else arguments
            opened.say_value(value, semconv.INPUT_VALUE, semconv.INPUT_MIME_TYPE)

    def on_result(self, opened: Opened, result: object) -> None:
        if settings.content.outputs and result is not None:
            opened.say_value(result, semconv.OUTPUT_VALUE, semconv.OUTPUT_MIME_TYPE)


class Guardrail(Chain):
    """A check of what goes in or comes out."""

    oi_kind = "GUARDRAIL"


class Handoff(Chain):
    """Control is passed to another agent."""

    operation = "handoff"

    def __init__(self, function: Callable[..., Any], name: str | None, *, to: str | None = None) -> None:
        super().__init__(function, name)
        target = self.name if to is None else to
        self.declare(AGENT_NAME=target, OI_AGENT_NAME=target)


class Retriever(Chain):
    """A search for documents."""

    oi_kind = "RETRIEVER"
    operation = "retrieval"

    def on_result(self, opened: Opened, result: object) -> None:
        super().on_result(opened, result)
        if not settings.content.outputs:
            return
        found = opened.revealed(result, semconv.OUTPUT_VALUE)
        if isinstance(found, Mapping) and isinstance(found.get("documents"), list):
            found = found["documents"]
        if not isinstance(found, list):
            return
        for place, document in enumerate(found[:_MOST_DOCUMENTS]):
            opened.say_all(_document(f"{semconv.OI_DOCUMENTS}.{place}.document", document))
            score = document.get("score") if isinstance(document, Mapping) else None
            if isinstance(score, int | float) and not isinstance(score, bool):
                opened.data[f"{semconv.OI_DOCUMENTS}.{place}.document.score"] = float(score)


def _document(at: str, document: Any) -> list[tuple[str, str]]:
    if isinstance(document, str):
        return [(f"{at}.content", document)]
    if not isinstance(document, Mapping):
        return []
    said: list[tuple[str, str]] = []
    text = next(
        (document[key] for key in ("content", "page_content", "text") if document.get(key) is not None), None
    )
    if text is not None:
        said.append((f"{at}.content", text_of(text)))
    if document.get("id") is not None:
        said.append((f"{at}.id", text_of(document["id"])))
    if document.get("metadata"):
        said.append((f"{at}.metadata", text_of(plain(document["metadata"]))))
    return said


class Agent(Chain):
    """One run of an agent."""

    is_run = True
    oi_kind = "AGENT"
    operation = "invoke_agent"

    def __init__(
        self,
        function: Callable[..., Any],
        name: str | None,
        *,
        step_cap: int | None = None,
        version: str | None = None,
    ) -> None:
        super().__init__(function, name)
        self.declare(AGENT_NAME=self.name, OI_AGENT_NAME=self.name, STEP_CAP=step_cap, AGENT_VERSION=version)

    def inside(self, context: Context, span: trace.Span) -> Context:
        return with_run(Run(span), super().inside(context, span))

    def remember(self, opened: Opened, arguments: Mapping[str, Any] | None) -> None:
        value = next(iter(arguments.values())) if arguments and len(arguments) == 1 else arguments
        asked = None if value is None else text_of(value)
        opened.context = memory.enter(opened.context, self.name, asked)
