"""Google's Agent Development Kit: ``gcp.vertex.agent.*`` beside the GenAI conventions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from redfirst.evaluators import semconv
from redfirst.evaluators.dialects.common import Attributes, begins_any
from redfirst.evaluators.dialects.facts import Kind, SpanFacts
from redfirst.evaluators.dialects.genai import definitions, kind_of, read_genai
from redfirst.evaluators.dialects.messages import as_text, last_text, message_of, messages_of, one_output
from redfirst.evaluators.dialects.values import (
    arguments_of,
    container,
    first_text,
    listed,
    mapping,
    outcome_of,
    text,
)
from redfirst.evaluators.span import LogRecord, Span
from redfirst.evaluators.trajectory import MISSING, Message

_KEY = "gcp.vertex.agent."
_MERGED = "(merged"


class GoogleADK:
    """Spans of ADK's own tracer."""

    name = "google_adk"

    def claims(self, span: Span) -> bool:
        return span.scope == "gcp.vertex.agent" or begins_any(span.attributes, _KEY)

    def read(self, span: Span, logs: Sequence[LogRecord]) -> SpanFacts:
        attributes = span.attributes
        kind = _kind(span)
        facts = read_genai(span, logs, dialect=self.name, kind=kind)
        facts = replace(facts, session=facts.session or text(attributes.get(f"{_KEY}session_id")))
        if kind is Kind.TOOL:
            return _tool(facts, attributes)
        if kind is Kind.MODEL:
            return _model(facts, attributes)
        return facts


def _kind(span: Span) -> Kind:
    """A model span of older versions names no operation; a merged one only repeats parallel tool calls."""
    if _MERGED in span.name or str(span.attributes.get(semconv.TOOL_NAME, "")).startswith(_MERGED):
        return Kind.STRUCTURE
    kind = kind_of(span)
    asked = mapping(span.attributes.get(f"{_KEY}llm_request")) or mapping(
        span.attributes.get(f"{_KEY}llm_response")
    )
    if kind is Kind.STRUCTURE and semconv.OPERATION not in span.attributes and asked:
        return Kind.MODEL
    return kind


def _tool(facts: SpanFacts, attributes: Attributes) -> SpanFacts:
    asked, given = (mapping(attributes.get(f"{_KEY}{key}")) for key in ("tool_call_args", "tool_response"))
    if not asked and not given:
        asked = given = (
            None  # an empty object is what ADK writes for both when it was told to keep content to itself
        )
    arguments = arguments_of(asked)
    outcome = outcome_of(MISSING if given is None else _inside(given))
    whole = replace(
        facts,
        arguments=facts.arguments if facts.arguments is not None else arguments.named,
        bare_arguments=facts.bare_arguments or arguments.bare,
        result=outcome.result if facts.result is MISSING else outcome_of(_inside(facts.result)).result,
    )
    return replace(whole, failed=True, error=outcome.error) if outcome.error is not None else whole


def _inside(result: object) -> object:
    """ADK puts a result that is no object into one with the single key ``result``."""
    return result["result"] if isinstance(result, Mapping) and set(result) == {"result"} else result


def _model(facts: SpanFacts, attributes: Attributes) -> SpanFacts:
    request = mapping(attributes.get(f"{_KEY}llm_request")) or {}
    response = mapping(attributes.get(f"{_KEY}llm_response")) or {}
    config = mapping(request.get("config")) or {}
    said = mapping(response.get("content"))
    finish = text(response.get("finish_reason"))
    labels = mapping(config.get("labels")) or {}
    return replace(
        facts,
        agent=facts.agent or text(labels.get("adk_agent_name")),
        input=_unwrapped(facts.input or _asked(request, config)),
        output=facts.output or (one_output(message_of({"role": "model", **said})) if said else None),
        finish=facts.finish or (finish.lower() if finish else None),
        model=first_text(facts.model, response.get("model_version"), request.get("model")),
        tools=facts.tools or _declared(config),
    )


def _unwrapped(messages: tuple[Message, ...] | None) -> tuple[Message, ...] | None:
    return messages and tuple(
        replace(message, content=as_text(_inside(container(message.content))))
        if message.role == "tool" and message.content
        else message
        for message in messages
    )


def _asked(request: Mapping[str, object], config: Mapping[str, object]) -> tuple[Message, ...] | None:
    messages = messages_of(request.get("contents"))
    system = config.get("system_instruction")
    if messages is None or not isinstance(system, str) or last_text(messages, "system") is not None:
        return messages
    return (Message(role="system", content=system), *messages)


def _declared(config: Mapping[str, object]) -> tuple[Mapping[str, object], ...] | None:
    found = [
        declaration
        for tool in listed(config.get("tools")) or []
        for declaration in listed((mapping(tool) or {}).get("function_declarations")) or []
    ]
    return definitions(found)
