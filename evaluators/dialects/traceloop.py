"""Traceloop / OpenLLMetry: the GenAI conventions, plus ``traceloop.*`` around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from redfirst.evaluators import semconv
from redfirst.evaluators.dialects.common import Attributes, begins_any
from redfirst.evaluators.dialects.facts import Kind, SpanFacts
from redfirst.evaluators.dialects.genai import kind_of, read_genai
from redfirst.evaluators.dialects.messages import spoken
from redfirst.evaluators.dialects.values import arguments_of, first_text, mapping, outcome_of, text, unpacked
from redfirst.evaluators.span import LogRecord, Span
from redfirst.evaluators.trajectory import MISSING

_PROPERTY = "traceloop.association.properties."
_ENTITY_KINDS = {"agent": Kind.AGENT, "tool": Kind.TOOL, "handoff": Kind.HANDOFF}
_TYPES = {"chat": Kind.MODEL, "completion": Kind.MODEL}


class Traceloop:
    """Spans with ``traceloop.*`` or the oldest ``llm.request.type``."""

    name = "traceloop"

    def claims(self, span: Span) -> bool:
        return begins_any(span.attributes, "traceloop.") or "llm.request.type" in span.attributes

    def read(self, span: Span, logs: Sequence[LogRecord]) -> SpanFacts:
        attributes = span.attributes
        kind = _kind(span)
        facts = read_genai(span, logs, dialect=self.name, kind=kind)
        facts = replace(
            facts,
            session=_property(attributes, "session_id", "thread_id", "conversation_id") or facts.session,
            user=_property(attributes, "user_id") or facts.user,
            agent=facts.agent or _property(attributes, "lc_agent_name"),
        )
        entity = text(attributes.get("traceloop.entity.name"))
        if kind is Kind.TOOL:
            return _tool(facts, attributes, entity)
        if kind is Kind.AGENT:
            asked = unpacked(attributes.get("traceloop.entity.input"))
            said = _outer(unpacked(attributes.get("traceloop.entity.output")), "outputs")
            return replace(
                facts,
                name=first_text(facts.name, _property(attributes, "lc_agent_name"), entity),
                request=facts.request or _asked(asked),
                answer=facts.answer or spoken(said, "assistant"),
            )
        return facts


def _kind(span: Span) -> Kind:
    attributes = span.attributes
    if semconv.OPERATION in attributes:
        return kind_of(span)
    kind = _ENTITY_KINDS.get(str(attributes.get("traceloop.span.kind")))
    return kind or _TYPES.get(str(attributes.get("llm.request.type"))) or kind_of(span)


def _tool(facts: SpanFacts, attributes: Attributes, entity: str | None) -> SpanFacts:
    arguments = arguments_of(attributes.get("traceloop.entity.input"))
    recorded = attributes.get("traceloop.entity.output", MISSING)
    outcome = outcome_of(recorded if recorded is MISSING else unpacked(recorded))
    envelope = (
        mapping(attributes.get("traceloop.entity.input"))
        or mapping(attributes.get(semconv.TOOL_CALL_ARGUMENTS))
        or {}
    )
    inner = mapping(envelope.get("kwargs")) or {}
    fields = replace(
        facts,
        name=facts.name or entity,
        arguments=facts.arguments if facts.arguments is not None else arguments.named,
        bare_arguments=facts.bare_arguments or arguments.bare,
        result=outcome.result if facts.result is MISSING else facts.result,
        call_id=first_text(
            facts.call_id, outcome.call_id, inner.get("tool_call_id") if "input_str" in envelope else None
        ),
    )
    return replace(fields, failed=True, error=outcome.error) if outcome.error is not None else fields


def _asked(value: object) -> str | None:
    found = _outer(value, "inputs")
    if isinstance(found, Mapping) and set(found) <= {"args", "kwargs"}:
        given = arguments_of(found)
        values = given.bare or tuple((given.named or {}).values())
        return spoken(values[0], "user") if len(values) == 1 else None
    return spoken(found, "user")


def _outer(value: object, key: str) -> object:
    return value[key] if isinstance(value, Mapping) and key in value else value


def _property(attributes: Attributes, *names: str) -> str | None:
    return first_text(*(attributes.get(f"{_PROPERTY}{name}") for name in names))
