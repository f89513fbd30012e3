"""Langfuse: ``langfuse.observation.*``, values as JSON texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from redfirst.evaluators import semconv
from redfirst.evaluators.dialects.common import Attributes, begins_any, error_of
from redfirst.evaluators.dialects.facts import Kind, SpanFacts, facts_with
from redfirst.evaluators.dialects.messages import messages_of, one_output, spoken
from redfirst.evaluators.dialects.values import (
    arguments_of,
    first_text,
    listed,
    mapping,
    number,
    outcome_of,
    text,
    unpacked,
)
from redfirst.evaluators.span import LogRecord, Span, StatusCode
from redfirst.evaluators.trajectory import MISSING, Message, Tokens

KINDS = {"generation": Kind.MODEL, "tool": Kind.TOOL, "agent": Kind.AGENT}
_OBSERVATION = "langfuse.observation."


class Langfuse:
    """Spans with ``langfuse.observation.*``; without a type it is a generation when it has a model."""

    name = "langfuse"

    def claims(self, span: Span) -> bool:
        return begins_any(span.attributes, _OBSERVATION)

    def read(self, span: Span, logs: Sequence[LogRecord]) -> SpanFacts:  # noqa: ARG002 - it writes no logs
        attributes = span.attributes
        declared = attributes.get(f"{_OBSERVATION}type")
        known = isinstance(declared, str)
        kind = KINDS.get(str(declared), Kind.STRUCTURE) if known else _kind_by_keys(attributes)
        asked, said = attributes.get(f"{_OBSERVATION}input"), attributes.get(f"{_OBSERVATION}output", MISSING)
        failed = span.status is StatusCode.ERROR or attributes.get(f"{_OBSERVATION}level") == "ERROR"
        fields: dict[str, object] = {
            "dialect": self.name,
            "kind": kind,
            "session": first_text(
                attributes.get(semconv.SESSION_ID), _meta(attributes, "langfuse_session_id")
            ),
            "user": first_text(attributes.get(semconv.USER_ID), _meta(attributes, "langfuse_user_id")),
            "agent": _meta(attributes, "lc_agent_name"),
            **_error(span, failed=failed),
        }
        if kind is Kind.TOOL:
            fields |= tool_fields(asked, said)
            fields["name"] = span.name
            fields["call_id"] = first_text(_meta(attributes, "tool_call_id"), fields["call_id"])
        elif kind is Kind.AGENT:
            fields |= {
                "name": fields["agent"] or span.name,
                "request": asked_text(asked),
                "answer": spoken(said, "assistant"),
            }
        elif kind is Kind.MODEL:
            fields |= {
                "input": messages_of(asked),
                "output": _output(said),
                "model": text(attributes.get(f"{_OBSERVATION}model.name")),
                "tokens": _tokens(mapping(attributes.get(f"{_OBSERVATION}usage_details"))),
                "tools": _tools(asked),
            }
        return facts_with(fields)


def _kind_by_keys(attributes: Attributes) -> Kind:
    """What only such an observation carries; the type is left out for a plain span."""
    if f"{_OBSERVATION}usage_details" in attributes or f"{_OBSERVATION}model.name" in attributes:
        return Kind.MODEL
    return Kind.TOOL if f"{_OBSERVATION}metadata.tool_call_id" in attributes else Kind.STRUCTURE


def tool_fields(asked: object, said: object) -> dict[str, object]:
    """Arguments and result out of the JSON texts of a tool's input and output."""
    arguments, outcome = arguments_of(asked), outcome_of(said)
    fields: dict[str, object] = {
        "arguments": arguments.named,
        "bare_arguments": arguments.bare,
        "result": outcome.result,
        "call_id": outcome.call_id,
    }
    return fields | ({"failed": True, "error": outcome.error} if outcome.error is not None else {})


def asked_text(value: object) -> str | None:
    """The user's text in an agent's input: messages, or the one argument of a decorated function."""
    found = unpacked(value)
    if isinstance(found, Mapping) and found and set(found) <= {"args", "kwargs"}:
        given = arguments_of(found)
        values = given.bare or tuple((given.named or {}).values())
        return spoken(values[0], "user") if len(values) == 1 else None
    return spoken(found, "user")


def _error(span: Span, *, failed: bool) -> dict[str, object]:
    found = error_of(span, failed=failed)
    said = text(span.attributes.get(f"{_OBSERVATION}status_message"))
    return found | {"error": said} if found.get("failed") and said else found


def _meta(attributes: Attributes, key: str) -> str | None:
    """A metadata value; each is JSON-encoded on its own."""
    found = unpacked(attributes.get(f"{_OBSERVATION}metadata.{key}"))
    return found if isinstance(found, str) and found else None


def _output(said: object) -> Message | None:
    found = unpacked(said)
    if isinstance(found, str) and found:
        return Message(role="assistant", content=found)
    return None if found is MISSING else one_output(messages_of(found))


def _tools(asked: object) -> tuple[Mapping[str, object], ...] | None:
    found = listed((mapping(asked) or {}).get("tools"))
    return tuple(item for item in found if isinstance(item, Mapping)) or None if found else None


def _anthropic(usage: Mapping[str, object]) -> Tokens:
    """Counts under Anthropic's names, which leave the cached tokens out of the input."""
    plain_in = number(usage.get("input_tokens"))
    cached = number(usage.get("cache_read_input_tokens"))
    rest = (cached or 0) + (number(usage.get("cache_creation_input_tokens")) or 0)
    return Tokens(
        input=None if plain_in is None else plain_in + rest,
        output=number(usage.get("output_tokens")),
        cached=cached,
    )


def _tokens(usage: Mapping[str, object] | None) -> Tokens:
    """Token counts. Under the vendor's names they are whole; under Langfuse's own names each part was
    taken out of its sum and stands beside it, so the sum is put together again."""
    if usage is None:
        return Tokens()
    if "prompt_tokens" in usage or "completion_tokens" in usage:
        into, out = (
            mapping(usage.get("prompt_tokens_details")) or {},
            mapping(usage.get("completion_tokens_details")) or {},
        )
        return Tokens(
            input=number(usage.get("prompt_tokens")),
            output=number(usage.get("completion_tokens")),
            cached=number(into.get("cached_tokens")),
            reasoning=number(out.get("reasoning_tokens")),
        )
    if "input_tokens" in usage or "output_tokens" in usage:
        return _anthropic(usage)
    parts_in = [
        n for key, value in usage.items() if key.startswith("input_") and (n := number(value)) is not None
    ]
    parts_out = [
        n for key, value in usage.items() if key.startswith("output_") and (n := number(value)) is not None
    ]
    plain_in, plain_out, total = (
        number(usage.get("input")),
        number(usage.get("output")),
        number(usage.get("total")),
    )
    whole_in = None if plain_in is None else plain_in + sum(parts_in)
    whole_out = None if plain_out is None else plain_out + sum(parts_out)
    if total is not None and plain_in is not None and plain_out is not None and plain_in + plain_out == total:
        whole_in, whole_out = plain_in, plain_out
    return Tokens(
        input=whole_in,
        output=whole_out,
        cached=number(usage.get("input_cache_read", usage.get("input_cached_tokens"))),
        reasoning=number(usage.get("output_reasoning", usage.get("output_reasoning_tokens"))),
    )
