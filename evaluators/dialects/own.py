"""Our own spans: both vocabularies at once, and what only we write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from redfirst.evaluators import semconv
from redfirst.evaluators.dialects import openinference, openinference_model
from redfirst.evaluators.dialects.common import Attributes, tokens_of
from redfirst.evaluators.dialects.facts import Kind, SpanFacts, facts_with
from redfirst.evaluators.dialects.genai import genai_fields
from redfirst.evaluators.dialects.messages import last_text, messages_of
from redfirst.evaluators.dialects.values import (
    arguments_of,
    first_text,
    listed,
    mapping,
    number,
    plain,
    text,
    unpacked,
)
from redfirst.evaluators.later import Later
from redfirst.evaluators.span import LogRecord, Span
from redfirst.evaluators.trajectory import MISSING, Effect, Gap, RunEvent, StateSnapshot, Tokens

_EFFECTS: Mapping[str, Effect] = {effect.value: effect for effect in Effect}
_TIMELESS = Gap(fact="times", because="the record holds none; those of the spans only keep the order")


class Own:
    """Spans of scope ``redfirst.instrumentation``."""

    name = "redfirst"

    def claims(self, span: Span) -> bool:
        return span.scope == semconv.SCOPE

    def read(self, span: Span, logs: Sequence[LogRecord]) -> SpanFacts:
        attributes = span.attributes
        kind = _kind(attributes)
        fields = genai_fields(span, logs, dialect=self.name, kind=kind)
        if span.events:
            fields |= {"states": _states(span), "events": _events(span), "gaps": _gaps(span)}
        if semconv.TIMES in attributes:
            fields["gaps"] = (*_gaps(span), _TIMELESS)
        cut = _cut(attributes)
        if cut:
            fields["notes"] = tuple(f"{key} was cut when it was recorded" for key in sorted(cut))
            attributes = {key: value for key, value in attributes.items() if key not in cut}
        if kind is Kind.TOOL:
            fields |= _tool(attributes)
        elif kind is Kind.MODEL:
            fields |= _model(fields, attributes)
        elif kind is Kind.AGENT:
            fields |= _agent(fields, attributes)
        elif kind is Kind.HANDOFF:
            fields["name"] = fields["name"] or text(attributes.get(semconv.OUTPUT_VALUE))
        return facts_with(fields)


def _kind(attributes: Attributes) -> Kind:
    operation = attributes.get(semconv.OPERATION)
    if operation == "handoff":
        return Kind.HANDOFF
    found = openinference.KINDS.get(str(attributes.get(semconv.OI_KIND)).upper())
    if found is not None:
        return found
    return {"chat": Kind.MODEL, "execute_tool": Kind.TOOL, "invoke_agent": Kind.AGENT}.get(
        str(operation), Kind.STRUCTURE
    )


def _tool(attributes: Attributes) -> dict[str, object]:
    said = attributes.get(semconv.TOOL_CALL_ARGUMENTS, attributes.get(semconv.INPUT_VALUE))
    given = mapping(said)
    bare = None if given is not None else arguments_of(said).bare
    recorded = attributes.get(semconv.TOOL_CALL_RESULT, attributes.get(semconv.OUTPUT_VALUE, MISSING))
    effect = attributes.get(semconv.TOOL_EFFECT)
    idempotent = attributes.get(semconv.TOOL_IDEMPOTENT)
    return {
        "name": first_text(attributes.get(semconv.TOOL_NAME), attributes.get(semconv.OI_TOOL_NAME)),
        "arguments": given,
        "bare_arguments": bare,
        "result": MISSING if recorded is MISSING else unpacked(recorded),
        "effect": _EFFECTS.get(effect) if isinstance(effect, str) else None,
        "idempotent": idempotent if isinstance(idempotent, bool) else None,
        "refused": _refusal(attributes),
        "poll": attributes.get(semconv.TOOL_POLL) is True,
        "schema": mapping(attributes.get(semconv.OI_TOOL_PARAMETERS)),
    }


def _refusal(attributes: Attributes) -> str | None:
    rule = text(attributes.get(semconv.TOOL_REFUSED_BY))
    because = text(attributes.get(semconv.TOOL_REFUSED_BECAUSE)) or "no reason was recorded"
    return None if rule is None else f"refused by rule {rule}: {because}"


def _model(fields: Mapping[str, object], attributes: Attributes) -> dict[str, object]:
    given = dict(fields)
    twin = Later(partial(openinference_model.read_model, attributes))

    def known(key: str) -> object:
        said = _worked_out(given[key])
        return _worked_out(twin.get()[key]) if said is None else said

    tokens = fields["tokens"]
    if tokens == Tokens():
        tokens = tokens_of(attributes, **openinference_model.TOKEN_NAMES)
    recorded = attributes.get(semconv.OUTPUT_VALUE, MISSING)
    return {
        **{key: known(key) for key in ("output", "finish", "model")},
        **{key: Later(partial(known, key)) for key in ("input", "tools")},
        "tokens": tokens,
        "raw_output": MISSING if recorded is MISSING else Later(partial(unpacked, recorded)),
    }


def _worked_out(value: object) -> object:
    return value.get() if isinstance(value, Later) else value


def _agent(fields: Mapping[str, object], attributes: Attributes) -> dict[str, object]:
    asked = _spoken(attributes, semconv.INPUT_VALUE, semconv.INPUT_MIME_TYPE, "user")
    said = _spoken(attributes, semconv.OUTPUT_VALUE, semconv.OUTPUT_MIME_TYPE, "assistant")
    return {
        "name": first_text(attributes.get(semconv.AGENT_NAME), attributes.get(semconv.OI_AGENT_NAME)),
        "request": fields["request"] or asked,
        "answer": fields["answer"] or said,
        "says_why": True,
        "step_cap": number(attributes.get(semconv.STEP_CAP)),
        "stop_reason": text(attributes.get(semconv.STOP_REASON)),
        "stop_cap": number(attributes.get(semconv.STOP_CAP)),
    }


def _spoken(attributes: Attributes, key: str, mime_key: str, role: str) -> str | None:
    """What was asked of the agent or what it returned; a value that is neither text nor messages stays JSON."""
    value = text(attributes.get(key))
    if value is None or attributes.get(mime_key) == semconv.TEXT_MIME:
        return value
    messages = messages_of(value)
    if messages is not None and any(message.role == role for message in messages):
        return last_text(messages, role)
    found = unpacked(value)
    return found if isinstance(found, str) else None if found is None else value


def _cut(attributes: Attributes) -> frozenset[str]:
    """The attributes whose values were cut: what is left of them is not what was said."""
    if semconv.TRUNCATED not in attributes:
        return frozenset()
    notes = listed(attributes[semconv.TRUNCATED]) or []
    return frozenset(str(note.get("attribute")) for note in notes if isinstance(note, Mapping))


def _states(span: Span) -> tuple[StateSnapshot, ...]:
    return tuple(
        StateSnapshot(time_ns=event.time_ns, state=state, span_id=span.span_id)
        for event in span.events
        if event.name == semconv.STATE_EVENT
        and (state := mapping(event.attributes.get(semconv.STATE_VALUE))) is not None
    )


def _events(span: Span) -> tuple[RunEvent, ...]:
    return tuple(
        RunEvent(
            name=str(event.attributes.get(semconv.RUN_EVENT_NAME, "")),
            time_ns=event.time_ns,
            attributes=mapping(plain(unpacked(event.attributes.get(semconv.RUN_EVENT_ATTRIBUTES)))) or {},
            span_id=span.span_id,
        )
        for event in span.events
        if event.name == semconv.RUN_EVENT
    )


_SAID: Mapping[str, tuple[str, str, str]] = {
    semconv.STATE_EVENT: ("states", semconv.STATE_VALUE, "a snapshot was"),
    semconv.RUN_EVENT: ("events", semconv.RUN_EVENT_ATTRIBUTES, "an event's attributes were"),
}
"""Of each event of a span: the fact of the run, the attribute that says it, and how a gap begins."""


def _gaps(span: Span) -> tuple[Gap, ...]:
    """Snapshots and events that were reported and cannot be read: what they said is not known."""
    found: list[Gap] = []
    for event in span.events:
        fact, key, what = _SAID.get(event.name, ("", "", ""))
        if not fact or mapping(event.attributes.get(key)) is not None:
            continue
        cut = key in _cut(event.attributes)
        if cut or fact == "states":
            because = f"{what} cut when it was recorded" if cut else "a snapshot cannot be read"
            found.append(Gap(fact=fact, because=because, span_id=span.span_id))
    return tuple(dict.fromkeys(found))
