"""Logfire's spans of the OpenAI Agents SDK: the message template is the kind, the SDK's own fields are the attributes.

Calls of the Responses API are written by the GenAI conventions and read as such.
"""

from __future__ import annotations

from collections.abc import Sequence

from redfirst.evaluators.dialects.common import Attributes
from redfirst.evaluators.dialects.facts import Kind, SpanFacts, facts_with
from redfirst.evaluators.dialects.genai import genai_fields
from redfirst.evaluators.dialects.messages import last_text, messages_of, one_output
from redfirst.evaluators.dialects.values import (
    REDACTED,
    arguments_of,
    first_text,
    mapping,
    outcome_of,
    text,
)
from redfirst.evaluators.span import LogRecord, Span
from redfirst.evaluators.trajectory import MISSING

_TEMPLATE = "logfire.msg_template"
_KINDS = {
    "Agent run: {": Kind.AGENT,
    "Function: {": Kind.TOOL,
    "Chat completion with {": Kind.MODEL,
    "Handoff: {": Kind.HANDOFF,
    "OpenAI Agents trace: {": Kind.STRUCTURE,
}
_OURS = frozenset({"gen_ai.system", "agent_trace_id", "logfire.span_type"})
_NOTHING = frozenset({"null", *REDACTED})


class Logfire:
    """Spans that carry one of its templates and the fields of the SDK."""

    name = "logfire"

    def claims(self, span: Span) -> bool:
        return _kind(span) is not None

    def read(self, span: Span, logs: Sequence[LogRecord]) -> SpanFacts:
        kind, attributes = _kind(span), span.attributes
        fields = genai_fields(span, logs, dialect=self.name, kind=kind)
        if kind is Kind.AGENT:
            fields["name"] = text(attributes.get("name"))
        elif kind is Kind.TOOL:
            fields |= _tool(attributes)
        elif kind is Kind.MODEL:
            asked, said = messages_of(attributes.get("input")), messages_of(attributes.get("output"))
            fields |= {"input": asked, "output": one_output(said), "request": last_text(asked, "user")}
        elif kind is Kind.HANDOFF:
            fields |= {"name": _said(attributes, "to_agent"), "agent": _said(attributes, "from_agent")}
        else:
            fields["session"] = first_text(fields.get("session"), _said(attributes, "group_id"))
        return facts_with({**fields, **_error(attributes)})


def _kind(span: Span) -> Kind | None:
    template = span.name if "{" in span.name else span.attributes.get(_TEMPLATE)
    if not isinstance(template, str) or _OURS.isdisjoint(span.attributes):
        return None
    kind = next((kind for lead, kind in _KINDS.items() if template.startswith(lead)), None)
    # The client's instrumentation has the same template, and request_data instead of the SDK's fields.
    return None if kind is Kind.MODEL and "output" not in span.attributes else kind


def _tool(attributes: Attributes) -> dict[str, object]:
    given = arguments_of(attributes.get("input"))
    recorded = attributes.get("output", MISSING)
    outcome = outcome_of(MISSING if recorded in (None, "null") else recorded)
    return {
        "name": _said(attributes, "name"),
        "arguments": given.named,
        "bare_arguments": given.bare,
        "result": outcome.result,
        **({"failed": True, "error": outcome.error} if outcome.error is not None else {}),
    }


def _error(attributes: Attributes) -> dict[str, object]:
    """What the SDK set on its span: a message, and what was caught beside it."""
    found = mapping(attributes.get("error"))
    if not found:
        return {}
    caught = mapping(found.get("data")) or {}
    told = first_text(caught.get("error"), found.get("message")) or "error"
    return {"failed": True, "error": told, "result": MISSING}


def _said(attributes: Attributes, key: str) -> str | None:
    value = text(attributes.get(key))
    return None if value in _NOTHING else value
