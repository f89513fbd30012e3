"""Pydantic AI: span names first, the GenAI conventions later, ``logfire.*`` around both."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from redfirst.evaluators import semconv
from redfirst.evaluators.dialects.common import Attributes, tokens_of
from redfirst.evaluators.dialects.facts import Kind, SpanFacts
from redfirst.evaluators.dialects.genai import TOKEN_NAMES, definitions, kind_of, read_genai
from redfirst.evaluators.dialects.genai_content import from_entries
from redfirst.evaluators.dialects.messages import last_text, messages_of
from redfirst.evaluators.dialects.values import first_text, listed, repeated, text
from redfirst.evaluators.span import LogRecord, Span
from redfirst.evaluators.trajectory import Message, Tokens

_PARAMETERS = "model_request_parameters"
_AGENT_SPAN = re.compile(r"(.+ )?agent run|.+ run")
_TOOL_SPAN = re.compile(r"running tool(: .+)?")
_AGGREGATED = {
    field: tuple(name.replace("gen_ai.usage.", "gen_ai.aggregated_usage.") for name in names)
    for field, names in TOKEN_NAMES.items()
}


class PydanticAI:
    """Spans of scope ``pydantic-ai``, whichever version of its format they are in."""

    name = "pydantic_ai"

    def claims(self, span: Span) -> bool:
        return span.scope == "pydantic-ai" or "pydantic_ai.all_messages" in span.attributes

    def read(self, span: Span, logs: Sequence[LogRecord]) -> SpanFacts:
        attributes = span.attributes
        kind = _kind(span)
        facts = read_genai(span, logs, dialect=self.name, kind=kind)
        if kind is Kind.MODEL and _PARAMETERS in attributes and semconv.TOOL_DEFINITIONS not in attributes:
            return replace(facts, tools=_tools(attributes))
        if kind is not Kind.AGENT:
            return facts
        told = _history(attributes)
        tokens = tokens_of(attributes, **_AGGREGATED)
        return replace(
            facts,
            name=first_text(attributes.get(semconv.AGENT_NAME), attributes.get("agent_name")),
            request=facts.request or last_text(told, "user"),
            answer=facts.answer or text(attributes.get("final_result")),
            tokens=tokens if tokens != Tokens() else facts.tokens,
        )


def _tools(attributes: Attributes) -> tuple[Mapping[str, object], ...] | None:
    """Before the conventions had a name for them."""
    parameters = repeated(attributes[_PARAMETERS])
    return definitions(parameters.get("function_tools")) if isinstance(parameters, dict) else None


def _kind(span: Span) -> Kind:
    attributes = span.attributes
    if isinstance(attributes.get(semconv.OPERATION), str):
        return kind_of(span)
    if "pydantic_ai.all_messages" in attributes:
        return Kind.AGENT
    if _TOOL_SPAN.fullmatch(span.name):
        return Kind.TOOL
    if _AGENT_SPAN.fullmatch(span.name) and (
        "agent_name" in attributes or "all_messages_events" in attributes
    ):
        return Kind.AGENT
    return kind_of(span)


def _history(attributes: Attributes) -> tuple[Message, ...] | None:
    messages = messages_of(attributes.get("pydantic_ai.all_messages"))
    if messages is None and (entries := listed(attributes.get("all_messages_events"))):
        named = [(str(entry.get("event.name", "")), entry) for entry in entries if isinstance(entry, Mapping)]
        messages, _, _ = from_entries(named)
    return messages
