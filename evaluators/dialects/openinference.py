"""OpenInference: ``openinference.span.kind`` and flattened messages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from redfirst.evaluators import semconv
from redfirst.evaluators.dialects.common import Attributes, begins_any, error_of
from redfirst.evaluators.dialects.facts import Kind, SpanFacts, facts_with
from redfirst.evaluators.dialects.messages import spoken
from redfirst.evaluators.dialects.openinference_model import read_model
from redfirst.evaluators.dialects.values import (
    Arguments,
    arguments_of,
    first_text,
    is_word,
    mapping,
    named_by_schema,
    number,
    outcome_of,
    text,
)
from redfirst.evaluators.span import LogRecord, Span
from redfirst.evaluators.trajectory import MISSING

KINDS = {"LLM": Kind.MODEL, "TOOL": Kind.TOOL, "AGENT": Kind.AGENT}
_METHOD = re.compile(r"(.+)\.(?:run|run_async|run_stream|arun|invoke|ainvoke|kickoff|_execute_core)")
"""Agents' spans that are named after the agent and the method that was called."""
_HANDOFF_SPAN = re.compile(r"hand-?off to (.+)", re.IGNORECASE)


class OpenInference:
    """Spans with ``openinference.span.kind``, and those of its scopes that lost it."""

    name = "openinference"

    def claims(self, span: Span) -> bool:
        return semconv.OI_KIND in span.attributes or span.scope.startswith("openinference.")

    def read(self, span: Span, logs: Sequence[LogRecord]) -> SpanFacts:  # noqa: ARG002 - it writes no logs
        attributes = span.attributes
        kind = _kind(attributes)
        if kind is Kind.TOOL and is_handoff(span):
            kind = Kind.HANDOFF
        fields: dict[str, object] = {
            "dialect": self.name,
            "kind": kind,
            "session": text(attributes.get(semconv.SESSION_ID)),
            "user": text(attributes.get(semconv.USER_ID)),
            **error_of(span),
        }
        if kind is Kind.TOOL:
            fields |= _tool(span)
        elif kind is Kind.MODEL:
            fields |= read_model(attributes)
        elif kind is Kind.AGENT:
            fields |= _agent(span)
        elif kind is Kind.HANDOFF:
            fields |= _handoff(span)
        if kind in (Kind.MODEL, Kind.TOOL):
            fields["agent"] = _agent_in(attributes.get("metadata"))
        return facts_with(fields)


class OpenInferenceByKeys(OpenInference):
    """Spans that lost both kind and scope on their way, and still carry messages or token counts."""

    def claims(self, span: Span) -> bool:
        return begins_any(span.attributes, "llm.")


def _kind(attributes: Attributes) -> Kind:
    """The declared kind; without a declaration, what only such a span carries."""
    declared = attributes.get(semconv.OI_KIND)
    if isinstance(declared, str) and is_word(declared):
        return KINDS.get(declared.upper(), Kind.STRUCTURE)
    if semconv.OI_TOOL_NAME in attributes:
        return Kind.TOOL
    if any(
        key.startswith((f"{semconv.OI_OUTPUT_MESSAGES}.", "llm.token_count.p")) for key in attributes
    ) and (
        "llm.model_name" in attributes or f"{semconv.OI_OUTPUT_MESSAGES}.0.message.role" in attributes
    ):  # agents of some frameworks carry the sum of their calls' tokens
        return Kind.MODEL
    agent = semconv.OI_AGENT_NAME in attributes or step_cap_in(attributes) is not None
    return Kind.AGENT if agent else Kind.STRUCTURE


def is_handoff(span: Span) -> bool:
    """A tool span without a tool's name whose span name speaks of a hand-off."""
    return semconv.OI_TOOL_NAME not in span.attributes and bool(_HANDOFF_SPAN.fullmatch(span.name))


def _handoff(span: Span) -> dict[str, object]:
    found = _HANDOFF_SPAN.fullmatch(span.name)
    target = text(span.attributes.get(semconv.OUTPUT_VALUE)) or (found.group(1) if found else None)
    return {"name": target, "agent": text(span.attributes.get(semconv.INPUT_VALUE))}


def _tool(span: Span) -> dict[str, object]:
    attributes = span.attributes
    schema = _schema(attributes.get(semconv.OI_TOOL_PARAMETERS))
    arguments = arguments_of(attributes.get(semconv.INPUT_VALUE))
    if arguments.named is None and schema is not None:
        arguments = Arguments(named=named_by_schema(arguments.bare, schema), bare=arguments.bare)
    recorded = attributes.get(semconv.OUTPUT_VALUE, MISSING)
    outcome = outcome_of(recorded)
    fields: dict[str, object] = {
        "name": first_text(attributes.get(semconv.OI_TOOL_NAME), attributes.get(semconv.TOOL_NAME)),
        "arguments": arguments.named,
        "bare_arguments": arguments.bare,
        "result": outcome.result,
        "call_id": first_text(
            attributes.get("tool.id"),
            attributes.get("tool_call.id"),
            attributes.get(semconv.TOOL_CALL_ID),
            outcome.call_id,
        ),
        "schema": schema,
    }
    return fields | ({"failed": True, "error": outcome.error} if outcome.error is not None else {})


def _schema(value: object) -> Mapping[str, object] | None:
    """The JSON Schema of the arguments; older writers put the arguments there."""
    found = mapping(value)
    if not found or "properties" in found or found.get("type") == "object":
        return found or None
    described = all(
        isinstance(item, Mapping) and ({"type", "description"} & set(item)) for item in found.values()
    )
    return {"type": "object", "properties": found} if described else None


def _agent(span: Span) -> dict[str, object]:
    attributes = span.attributes
    name = first_text(
        attributes.get(semconv.OI_AGENT_NAME),
        attributes.get("graph.node.id"),
        _agent_in(attributes.get("metadata")),
        # the OpenAI Agents SDK's root is named after the workflow, and its agents say their names
        None if span.scope.endswith(".openai_agents") else _before_method(span.name),
    )
    asked = attributes.get(semconv.INPUT_VALUE)
    said = attributes.get(semconv.OUTPUT_VALUE)
    return {
        "name": name,
        "request": spoken(asked, "user"),
        "answer": spoken(said, "assistant"),
        "step_cap": step_cap_in(attributes),
    }


def _agent_in(metadata: object) -> str | None:
    """The agent that LangChain says a call belongs to."""
    told = "lc_agent_name" in metadata if isinstance(metadata, str | Mapping) else False
    return text((mapping(metadata) or {}).get("lc_agent_name")) if told else None


def _before_method(name: str) -> str:
    found = _METHOD.fullmatch(name)
    return found.group(1) if found else name


def step_cap_in(attributes: Attributes) -> int | None:
    """The step limit an agent was run with, where its framework writes it down."""
    for key, value in attributes.items():
        if key.endswith((".max_steps", ".max_turns", ".max_iterations", ".max_agent_steps")):
            return number(value)
    return None
