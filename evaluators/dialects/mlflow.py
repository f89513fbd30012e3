"""MLflow: ``mlflow.*``, every value JSON-encoded on its own; or the GenAI conventions with its own kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from redfirst.evaluators import semconv
from redfirst.evaluators.dialects.common import Attributes, error_of, tokens_of
from redfirst.evaluators.dialects.facts import Kind, SpanFacts, facts_with
from redfirst.evaluators.dialects.genai import kind_of, read_genai
from redfirst.evaluators.dialects.langfuse import asked_text, tool_fields
from redfirst.evaluators.dialects.messages import messages_of, one_output, spoken
from redfirst.evaluators.dialects.values import first_text, is_word, listed, mapping, unpacked
from redfirst.evaluators.span import LogRecord, Span
from redfirst.evaluators.trajectory import MISSING, Message

KINDS = {"AGENT": Kind.AGENT, "TOOL": Kind.TOOL, "CHAT_MODEL": Kind.MODEL, "LLM": Kind.MODEL}

TOKEN_NAMES = {
    "input": ("input_tokens",),
    "output": ("output_tokens",),
    "cached": ("cache_read_input_tokens",),
    "reasoning": ("reasoning_output_tokens", "reasoning_tokens"),
}


class MLflow:
    """Spans with ``mlflow.spanType``, or of MLflow's scope."""

    name = "mlflow"

    def claims(self, span: Span) -> bool:
        return "mlflow.spanType" in span.attributes or span.scope.startswith("mlflow.")

    def read(self, span: Span, logs: Sequence[LogRecord]) -> SpanFacts:
        attributes = span.attributes
        if not any(key.startswith("mlflow.") for key in attributes):
            return _by_conventions(span, logs, self.name)
        agent = _agent_name(attributes)
        declared = _coded(attributes, "mlflow.spanType")
        known = declared is not None and is_word(declared)
        kind = KINDS.get(str(declared).upper(), Kind.STRUCTURE) if known else _kind_by_keys(attributes)
        if kind is Kind.STRUCTURE and agent is not None and _is_root(span):
            kind = Kind.AGENT
        asked, said = attributes.get("mlflow.spanInputs"), attributes.get("mlflow.spanOutputs", MISSING)
        fields: dict[str, object] = {
            "dialect": self.name,
            "kind": kind,
            "session": first_text(
                attributes.get(semconv.SESSION_ID), _coded(attributes, "mlflow.trace.session")
            ),
            "user": first_text(attributes.get(semconv.USER_ID), _coded(attributes, "mlflow.trace.user")),
            "agent": agent,
            **error_of(span),
        }
        if kind is Kind.TOOL:
            fields |= tool_fields(asked, said)
            fields["name"] = span.name
            fields["call_id"] = first_text(_coded(attributes, "tool_call_id"), fields["call_id"])
        elif kind is Kind.AGENT:
            fields |= {
                "name": agent or span.name,
                "request": asked_text(asked),
                "answer": spoken(said, "assistant"),
            }
        elif kind is Kind.MODEL:
            fields |= {
                "input": messages_of(asked),
                "output": _output(said),
                "finish": _finish(said),
                "model": _coded(attributes, "mlflow.llm.model"),
                "tokens": tokens_of(mapping(attributes.get("mlflow.chat.tokenUsage")) or {}, **TOKEN_NAMES),
                "tools": _tools(attributes),
            }
        return facts_with(fields)


def _by_conventions(span: Span, logs: Sequence[LogRecord], dialect: str) -> SpanFacts:
    agent = _agent_name(span.attributes)
    kind = kind_of(span)
    if kind is Kind.STRUCTURE and agent is not None and _is_root(span):
        kind = Kind.AGENT
    facts = read_genai(span, logs, dialect=dialect, kind=kind)
    call_id = _coded(span.attributes, "tool_call_id")
    return replace(
        facts,
        name=facts.name or agent if kind is Kind.AGENT else facts.name,
        call_id=facts.call_id or call_id,
    )


def _kind_by_keys(attributes: Attributes) -> Kind:
    """What only such a span carries."""
    if "mlflow.chat.tokenUsage" in attributes:
        return Kind.MODEL
    return Kind.TOOL if "tool_call_id" in attributes else Kind.STRUCTURE


def _is_root(span: Span) -> bool:
    """MLflow calls a graph's root a chain; only its metadata say that it is an agent."""
    return span.parent_id is None


def _agent_name(attributes: Attributes) -> str | None:
    return first_text((mapping(attributes.get("metadata")) or {}).get("lc_agent_name"))


def _coded(attributes: Attributes, key: str) -> str | None:
    found = unpacked(attributes.get(key))
    return found if isinstance(found, str) and found else None


def _output(said: object) -> Message | None:
    found = unpacked(said)
    if isinstance(found, Mapping):
        for key in ("choices", "output", "candidates"):
            inner = found.get(key)
            if isinstance(inner, list) and (message := one_output(messages_of(inner))) is not None:
                return message
    if isinstance(found, str) and found:
        return Message(role="assistant", content=found)
    return None if found is MISSING else one_output(messages_of(found))


def _finish(said: object) -> str | None:
    found = mapping(said) if said is not MISSING else None
    choices = listed((found or {}).get("choices")) or []
    chosen = choices[0].get("finish_reason") if choices and isinstance(choices[0], Mapping) else None
    return first_text(chosen, (found or {}).get("stop_reason"))


def _tools(attributes: Attributes) -> tuple[Mapping[str, object], ...] | None:
    found = listed(attributes.get("mlflow.chat.tools"))
    return tuple(item for item in found if isinstance(item, Mapping)) or None if found else None
