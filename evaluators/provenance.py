"""Which attribute gave which fact of a run.

Found by leaving attributes out: those without which a span no longer says the fact. Where several say it alike, the
smallest set that still does. Not part of reading; it costs about as many readings of spans as the run has attributes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from redfirst.evaluators.dialects.facts import Kind, SpanFacts
from redfirst.evaluators.dialects.registry import facts_of
from redfirst.evaluators.span import LogRecord, Span
from redfirst.evaluators.trajectory import MISSING, Source, ToolCall, Trajectory

_Fact = Callable[[SpanFacts], object]
_EVENT, _LOG = "event ", "log "
_TELLS_KIND = re.compile(r"operation|kind|type", re.IGNORECASE)
"""Keys that say what a span is. Of several sets that say a fact, the one with these is the one to name."""

_TOOL: Mapping[str, _Fact] = {
    "name": lambda facts: facts.name,
    "arguments": lambda facts: facts.arguments if facts.arguments is not None else facts.bare_arguments,
    "result": lambda facts: facts.result,
    "error": lambda facts: facts.error,
    "call_id": lambda facts: facts.call_id,
}
_MODEL: Mapping[str, _Fact] = {
    "output": lambda facts: facts.output,
    "input_messages": lambda facts: facts.input,
    "model": lambda facts: facts.model,
    "finish_reason": lambda facts: facts.finish,
    "tokens.input": lambda facts: facts.tokens.input,
    "tokens.output": lambda facts: facts.tokens.output,
    "tokens.cached": lambda facts: facts.tokens.cached,
    "tokens.reasoning": lambda facts: facts.tokens.reasoning,
}
_RUN: Mapping[str, _Fact] = {
    "session_id": lambda facts: facts.session,
    "user_id": lambda facts: facts.user,
    "request": lambda facts: facts.request,
}


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """An attribute by its key, or a span event or log record by its name, of one span."""

    span_id: str
    key: str


def provenance(
    run: Trajectory, spans: Iterable[Span], logs: Iterable[LogRecord] = ()
) -> dict[str, tuple[Origin, ...]]:
    """The origins of each fact of the run, under the names that its coverage uses: ``tool_calls[0].arguments``.

    A fact that is missing, or that stands on no attribute such as a span's time or status, is not there.
    """
    desk = _Desk(run, spans, logs)
    found: dict[str, tuple[Origin, ...]] = {}
    for name, fact in _RUN.items():
        found[name] = desk.first(fact, getattr(run, name))
    for model in run.model_calls:
        for name, fact in _MODEL.items():
            found[f"model_calls[{model.index}].{name}"] = desk.at(model.span_id, Kind.MODEL, fact)
    for call in run.tool_calls:
        for name, fact in _TOOL.items():
            found[f"tool_calls[{call.index}].{name}"] = desk.of_call(call, fact)
    return {name: origins for name, origins in found.items() if origins}


class _Desk:
    """The spans of a run with what each says."""

    def __init__(self, run: Trajectory, spans: Iterable[Span], logs: Iterable[LogRecord]) -> None:
        self.spans = {span.span_id: span for span in spans if span.span_id in run.span_ids}
        self.logs: dict[str, list[LogRecord]] = {}
        for record in logs:
            self.logs.setdefault(record.span_id, []).append(record)
        self.turns = {model.index: model.span_id for model in run.model_calls}
        self.inner: dict[str, list[str]] = {}
        self.ends = {model.span_id: model.end_ns for model in run.model_calls}
        self._known: dict[str, SpanFacts] = {}
        self._less: dict[str, dict[str, SpanFacts]] = {}
        for span in self.spans.values():
            self.inner.setdefault(span.parent_id or "", []).append(span.span_id)

    def first(self, fact: _Fact, value: object) -> tuple[Origin, ...]:
        """The origins in the first span that says this value."""
        for span in sorted(self.spans.values(), key=lambda span: (span.start_ns, span.span_id)):
            if value is not None and fact(self._facts(span)) == value:
                return self._origins(span, fact)
        return ()

    def at(self, span_id: str, kind: Kind, fact: _Fact) -> tuple[Origin, ...]:
        """The origins in this span, or in the spans inside it that are about the same call."""
        for span in self._about(span_id, kind):
            if origins := self._origins(span, fact):
                return origins
        return ()

    def of_call(self, call: ToolCall, fact: _Fact) -> tuple[Origin, ...]:
        """The origins in the call's own span, else in the model's request for it."""
        own = self.at(call.span_id, Kind.TOOL, fact) if call.source is Source.SPAN else ()
        asked = self.turns.get(call.turn) if call.turn is not None else None
        told = fact is _TOOL["name"] or fact is _TOOL["arguments"] or fact is _TOOL["call_id"]
        return own or (self.at(asked, Kind.MODEL, _MODEL["output"]) if asked and told else ())

    def _about(self, span_id: str, kind: Kind) -> Iterator[Span]:
        if span_id in self.spans:
            yield self.spans[span_id]
        for inside in self.inner.get(span_id, ()):
            if self._facts(self.spans[inside]).kind is kind:
                yield from self._about(inside, kind)
        for late in self.spans.values() if span_id in self.ends else ():
            if late.end_ns == self.ends[span_id] and self._facts(late).late:  # a stream's end is its call's
                yield late

    def _facts(self, span: Span) -> SpanFacts:
        if span.span_id not in self._known:
            self._known[span.span_id] = facts_of(span, self.logs.get(span.span_id, ()))
        return self._known[span.span_id]

    def _without(self, span: Span) -> Mapping[str, SpanFacts]:
        """For each part of the span what it says without it."""
        if span.span_id not in self._less:
            parts = _parts(span, self.logs.get(span.span_id, ()))
            self._less[span.span_id] = {part: self._only(span, set(parts) - {part}) for part in parts}
        return self._less[span.span_id]

    def _only(self, span: Span, parts: set[str]) -> SpanFacts:
        return _only(span, self.logs.get(span.span_id, ()), parts)

    def _origins(self, span: Span, fact: _Fact) -> tuple[Origin, ...]:
        said = fact(self._facts(span))
        if said is None or said is MISSING or said == ():
            return ()
        less = self._without(span)
        left = [part for part, facts in less.items() if fact(facts) != said]
        if not left:
            kept = set(less)
            for part in sorted(less, key=lambda part: (bool(_TELLS_KIND.search(part)), part)):
                if fact(self._only(span, kept - {part})) == said:
                    kept.remove(part)
            left = list(kept)
        return tuple(sorted(Origin(span.span_id, part) for part in left))


def _parts(span: Span, logs: Sequence[LogRecord]) -> list[str]:
    events = dict.fromkeys(f"{_EVENT}{event.name}" for event in span.events)
    records = dict.fromkeys(f"{_LOG}{record.event_name}" for record in logs)
    return [*sorted(span.attributes), *events, *records]


def _only(span: Span, logs: Sequence[LogRecord], parts: set[str]) -> SpanFacts:
    """What the span would say if it carried nothing but these parts."""
    less = replace(
        span,
        attributes={key: value for key, value in span.attributes.items() if key in parts},
        events=tuple(event for event in span.events if f"{_EVENT}{event.name}" in parts),
    )
    return facts_of(less, [record for record in logs if f"{_LOG}{record.event_name}" in parts])
