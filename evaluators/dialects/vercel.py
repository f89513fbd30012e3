"""The Vercel AI SDK: ``ai.operationId`` and ``ai.*``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from redfirst.evaluators import semconv
from redfirst.evaluators.dialects.common import Attributes, error_of, tokens_of
from redfirst.evaluators.dialects.facts import Kind, SpanFacts, facts_with
from redfirst.evaluators.dialects.messages import last_text, message_of, messages_of
from redfirst.evaluators.dialects.values import (
    arguments_of,
    first_text,
    is_word,
    listed,
    mapping,
    outcome_of,
    text,
    unpacked,
)
from redfirst.evaluators.span import LogRecord, Span
from redfirst.evaluators.trajectory import MISSING, Message

_OUTER = frozenset({"ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject"})

TOKEN_NAMES = {
    "input": ("ai.usage.inputTokens", "ai.usage.promptTokens", "gen_ai.usage.input_tokens"),
    "output": ("ai.usage.outputTokens", "ai.usage.completionTokens", "gen_ai.usage.output_tokens"),
    "cached": ("ai.usage.cachedInputTokens", "ai.usage.inputTokenDetails.cacheReadTokens"),
    "reasoning": ("ai.usage.reasoningTokens", "ai.usage.outputTokenDetails.reasoningTokens"),
}


class Vercel:
    """Spans with ``ai.operationId``: the outer call is the agent's loop, each ``do…`` a model call."""

    name = "vercel"

    def claims(self, span: Span) -> bool:
        if "ai.operationId" in span.attributes:
            return True
        other = "operation.name" in span.attributes or span.scope == "ai"
        return other and _said_otherwise(span) is not None

    def read(self, span: Span, logs: Sequence[LogRecord]) -> SpanFacts:  # noqa: ARG002 - it writes no logs
        attributes = span.attributes
        declared = text(attributes.get("ai.operationId"))
        operation = (declared if declared and is_word(declared) else _said_otherwise(span)) or ""
        operation = operation if operation.startswith("ai.") else f"ai.{operation}"
        fields: dict[str, object] = {
            "dialect": self.name,
            "session": first_text(
                attributes.get(semconv.SESSION_ID),
                attributes.get("ai.telemetry.metadata.sessionId"),
                attributes.get("ai.telemetry.metadata.session_id"),
            ),
            "user": first_text(
                attributes.get(semconv.USER_ID), attributes.get("ai.telemetry.metadata.userId")
            ),
            **error_of(span),
        }
        if operation == "ai.toolCall":
            fields |= _tool(attributes)
        elif operation in _OUTER:
            fields |= _loop(attributes)
        elif operation.rpartition(".")[2] in ("doGenerate", "doStream"):
            fields |= _model(attributes)
        return facts_with(fields)


def _said_otherwise(span: Span) -> str | None:
    """The operation by the older attribute, followed there by the function's name, or by the span's name."""
    named = text(span.attributes.get("operation.name")) or (span.name if span.scope == "ai" else "")
    return named.partition(" ")[0] if named.startswith("ai.") else None


def _tool(attributes: Attributes) -> dict[str, object]:
    arguments = arguments_of(attributes.get("ai.toolCall.args"))
    recorded = attributes.get("ai.toolCall.result", MISSING)
    outcome = outcome_of(MISSING if recorded is MISSING else unpacked(recorded))
    return {
        "kind": Kind.TOOL,
        "name": text(attributes.get("ai.toolCall.name")),
        "arguments": arguments.named,
        "bare_arguments": arguments.bare,
        "result": outcome.result,
        "call_id": text(attributes.get("ai.toolCall.id")),
    }


def _loop(attributes: Attributes) -> dict[str, object]:
    prompt = mapping(attributes.get("ai.prompt")) or {}
    messages = messages_of(prompt.get("messages"))
    return {
        "kind": Kind.AGENT,
        "name": text(attributes.get("ai.telemetry.functionId")),
        "request": last_text(messages, "user") or text(prompt.get("prompt")),
        "answer": text(attributes.get("ai.response.text")),
        "tokens": tokens_of(attributes, **TOKEN_NAMES),
    }


def _model(attributes: Attributes) -> dict[str, object]:
    prompt = mapping(attributes.get("ai.prompt")) or {}
    tools = [
        tool
        for item in listed(attributes.get("ai.prompt.tools")) or []
        if (tool := mapping(item)) is not None
    ]
    return {
        "kind": Kind.MODEL,
        "input": messages_of(attributes.get("ai.prompt.messages")) or messages_of(prompt.get("messages")),
        "output": _output(attributes),
        "finish": text(attributes.get("ai.response.finishReason")),
        "model": first_text(
            attributes.get("ai.response.model"),
            attributes.get("ai.model.id"),
            attributes.get(semconv.REQUEST_MODEL),
        ),
        "response_id": text(attributes.get("ai.response.id")),
        "tokens": tokens_of(attributes, **TOKEN_NAMES),
        "tools": tuple(tools) or None,
    }


def _output(attributes: Attributes) -> Message | None:
    said = attributes.get("ai.response.text")
    calls = []
    for item in listed(attributes.get("ai.response.toolCalls")) or []:
        if isinstance(item, Mapping):
            arguments = item.get("args", item.get("input"))
            calls.append({"id": item.get("toolCallId"), "name": item.get("toolName"), "arguments": arguments})
    if said is None and not calls:
        return None
    return next(iter(message_of({"role": "assistant", "content": said, "tool_calls": calls})), None)
