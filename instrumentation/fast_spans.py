"""Spans of the OpenTelemetry SDK, made with a fraction of its work. Imported only where the SDK is in use.

``FastSpan`` is a subclass of the SDK's own span: processors, exporters and user code meet an ordinary one, and all
that a user may do to it is the SDK's code. Ours is how it is made (a plain dict holds the attributes until somebody
touches them), how the sampler is asked (the verdicts of the SDK's own samplers are known beforehand), and how it ends
(processors are given the span itself, which is immutable by then, not a copy).

It relies on names that the SDK keeps to itself, so it is tried out first, and where anything differs the tracer's own
``start_span`` is used instead.
"""

from __future__ import annotations

import copy
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from time import time_ns
from types import MappingProxyType
from typing import Any, NamedTuple

from opentelemetry import trace
from opentelemetry.attributes import BoundedAttributes
from opentelemetry.context import Context
from opentelemetry.sdk import trace as sdk
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    ParentBased,
    Sampler,
    StaticSampler,
    TraceIdRatioBased,
)
from opentelemetry.sdk.trace.sampling import Decision as Sampling
from opentelemetry.sdk.util import BoundedList
from opentelemetry.trace import SpanContext, TraceFlags

from redfirst.instrumentation.counting import CountedSampler, SpanCounter
from redfirst.instrumentation.exporting import BoundedProcessor
from redfirst.instrumentation.redaction import Redactor
from redfirst.instrumentation.tracing import Decision, Tracing

_new, _new_context, _Lock = object.__new__, tuple.__new__, threading.Lock
_ALL = 1 << 64
_LOW = _ALL - 1
_SAMPLED, _RANDOM = 1, 2
_UNSET = trace.Status(trace.StatusCode.UNSET)
_ERROR = trace.StatusCode.ERROR
_STATE = trace.TraceState()
_FLAGS = [TraceFlags(value) for value in range(4)]
_SPAN_KEY = trace.propagation._SPAN_KEY
_ENOUGH_ATTRIBUTES = 64
"""A lower limit is left to the SDK's own containers."""
_PLAIN = frozenset({str, bool, int, float})
"""Types of values that the SDK takes as they are."""
_SILENT = (sdk.SpanProcessor, BatchSpanProcessor, SimpleSpanProcessor, BoundedProcessor)
"""Their ``on_start`` does nothing."""


class _Lazy:
    """An empty bounded list, made when somebody asks for it."""

    def __init__(self, name: str, limit: str) -> None:
        self._name, self._limit = name, limit

    def __get__(self, span: Any, owner: type | None = None) -> Any:
        if span is None:
            return self
        made: BoundedList[Any] = BoundedList(getattr(span._limits, self._limit))
        return span.__dict__.setdefault(self._name, made)


class PlainSpan(NamedTuple):
    """An internal span that has ended, without events, links, a trace state or anything dropped."""

    context: SpanContext
    parent: SpanContext | None
    name: str
    start: int
    end: int
    status: trace.StatusCode
    attributes: Mapping[str, Any]


class FastSpan(sdk._Span):
    """An SDK span whose containers are made when they are needed."""

    _kind = trace.SpanKind.INTERNAL
    _status = _UNSET
    _end_time: int | None = None
    _trace_config = None
    _record_exception = _set_status_on_exception = True
    _record_end_metrics = None
    _bounded: BoundedAttributes | None = None
    _events = _Lazy("_events", "max_events")
    _links = _Lazy("_links", "max_links")
    redacted_by: Redactor | None = None
    """What took the secrets out of all that we wrote on it."""
    foreign: tuple[str, ...] | None = ()
    """The attributes that are not ours; ``None``: that is not known."""
    _data: dict[str, Any]
    _ends: tuple[Callable[[Any], None], ...]

    @property
    def _attributes(self) -> Any:
        """What the inherited methods write to: the same dict in the SDK's clothes."""
        made = self._bounded
        if made is None:
            limits = self._limits
            made = BoundedAttributes(
                limits.max_span_attributes,
                None,
                immutable=False,
                max_value_len=limits.max_span_attribute_length,
            )
            made._dict = self._data  # shared: it is filled once
            made._immutable = self._end_time is not None
            self._bounded, self.foreign = made, None
        return made

    @_attributes.setter
    def _attributes(self, value: Any) -> None:
        self._bounded, self.foreign = value, None  # processors of others assign it

    def set_attribute(self, key: str, value: Any) -> None:
        """What the SDK does; a plain value needs neither its cleaning nor its container."""
        if type(value) in _PLAIN and type(key) is str and key:
            with self._lock:
                data = self._data
                if self._bounded is None and self._end_time is None and len(data) < _ENOUGH_ATTRIBUTES:
                    if key in data:
                        del data[key]  # the SDK puts it last
                    data[key] = value
                    if self.foreign is not None:
                        self.foreign = (*self.foreign, key)
                    return
        super().set_attribute(key, value)

    def update_name(self, name: str) -> None:
        """What the SDK does."""
        self.foreign = None
        super().update_name(name)

    @property
    def attributes(self) -> Any:
        return MappingProxyType(self._data if self._bounded is None else self._bounded)

    def end(self, end_time: int | None = None) -> None:
        """End it, as user code may."""
        with self._lock:
            if self._end_time is not None:
                return
            self._end_time = time_ns() if end_time is None else end_time
            if isinstance(self._bounded, BoundedAttributes):  # a processor may have assigned a dict
                self._bounded._immutable = True
        for told in self._ends:
            told(self)

    def plain(self) -> PlainSpan | None:
        """All that an encoder needs of it; ``None`` where there is more."""
        made, data, own = self._bounded, self._data, vars(self)
        if made is not None and (
            type(made) is not BoundedAttributes or made._dict is not data or made.dropped
        ):
            return None
        for name in ("_events", "_links"):
            if name in own and (len(own[name]) or own[name].dropped):
                return None
        context, status, end = self._context, self._status.status_code, self._end_time
        if context is None or context.trace_state or end is None or self._start_time is None:
            return None
        if status is _ERROR or self._kind is not trace.SpanKind.INTERNAL:
            return None
        return PlainSpan(context, self._parent, self._name, self._start_time, end, status, data)

    def __deepcopy__(self, memory: Any) -> Any:
        return self._readable_span()


class FastTracing(Tracing):
    """A provider of the SDK whose parts are all known."""

    def __init__(self, provider: Any, tracer: Any) -> None:
        super().__init__(provider, tracer)
        self._class = type(
            "_Span",
            (FastSpan,),
            {
                "_sampler": tracer.sampler,
                "_limits": tracer._span_limits,
                "_instrumentation_scope": tracer._instrumentation_scope,
                "_instrumentation_info": tracer.instrumentation_info,
                "_span_processor": tracer.span_processor,
                "_resource": tracer.resource,
            },
        )
        self._sampler = tracer.sampler
        self._resource = tracer.resource
        self._counter = _counter_of(tracer.sampler)
        self._bounds = _bounds(_uncounted(tracer.sampler))
        ids = tracer.id_generator
        self._trace_id, self._span_id = ids.generate_trace_id, ids.generate_span_id
        self._bits = random.getrandbits if type(ids) is RandomIdGenerator else None
        """What the SDK's own generator draws its ids from."""
        says_random = getattr(ids, "is_trace_id_random", None)
        self._random = _RANDOM if says_random is not None and says_random() else 0
        limits = tracer._span_limits
        self._most = limits.max_span_attributes or _ALL
        self._switch = getattr(tracer, "_tracer_config", None)  # since SDK 1.40
        multi = tracer.span_processor
        self._multi: Any = multi if hasattr(multi, "_span_processors") else None
        self._processors: Sequence[Any] = ()
        self._counters: tuple[SpanCounter, ...] = ()
        self._starts: tuple[Callable[..., None], ...] = ()
        self._refresh()

    def current(self) -> bool:
        tracer: Any = self.tracer
        return tracer.sampler is self._sampler and tracer.resource is self._resource

    def _refresh(self) -> None:
        processor: Any = self.tracer.span_processor  # type: ignore[attr-defined] # the SDK's tracer
        found = getattr(processor, "_span_processors", None)
        alone = type(processor) is not sdk.SynchronousMultiSpanProcessor
        self._processors = () if found is None else found
        all_ = (processor,) if alone else tuple(self._processors)
        # ours, when nobody examines the process: two numbers to raise
        self._counters = tuple(one for one in all_ if type(one) is SpanCounter and one.told is None)
        all_ = tuple(one for one in all_ if one not in self._counters)
        self._starts = tuple(one.on_start for one in all_ if not _says_nothing(one, "on_start"))
        ending = [getattr(one, "_on_ending", None) for one in all_ if not _says_nothing(one, "_on_ending")]
        ends = [
            one.on_end
            for one in all_
            if type(one).on_end is not sdk.SpanProcessor.on_end or "on_end" in vars(one)
        ]
        setattr(self._class, "_ends", (*(one for one in ending if one is not None), *ends))  # noqa: B010 - mypy knows it not

    def decide(self, context: Context) -> Decision:
        span: Any = context.get(_SPAN_KEY)
        parent: Any = None
        if type(span) is self._class:
            parent = span._context  # type: ignore[attr-defined]
        elif span is not None and isinstance(span, trace.Span):
            parent = span.get_span_context()
        if parent is not None and not parent[5]:  # is_valid
            parent = None
        if parent is None:
            bound = self._bounds[0]
            return None, bound, bound != 0
        bound = self._bounds[1 + (parent[3] & _SAMPLED) + 2 * parent[2]]
        return parent, bound, bound is None or (parent[0] & _LOW) < bound

    def inside(self, context: Context, span: trace.Span) -> Context:
        made = context.copy()  # a plain dict
        made[_SPAN_KEY] = span
        return Context(made)

    def start(
        self,
        name: str,
        attributes: dict[str, Any],
        context: Context,
        decision: Decision,
        redactor: Redactor | None = None,
    ) -> trace.Span:
        tracer: Any = self.tracer
        switch = self._switch
        if switch is not None and (tracer._tracer_config is not switch or not switch.is_enabled):
            return super().start(name, attributes, context, decision)
        parent, bound, _ = decision
        if parent is None:
            trace_id = (self._bits(128) if self._bits is not None else 0) or self._trace_id()
            state, flags = _STATE, self._random
        else:
            trace_id, state, flags = parent[0], parent[4], parent[3] & _RANDOM
        if bound is None:
            sampled = tracer.sampler.should_sample(
                context, trace_id, name, trace.SpanKind.INTERNAL, attributes, ()
            )
            state = _STATE if sampled.trace_state is None else sampled.trace_state
            if not sampled.decision.is_recording():
                return self._unrecorded(trace_id, flags, state)
            if sampled.decision.is_sampled():
                flags |= _SAMPLED
            given = sampled.attributes
            if given != attributes:
                redactor = None  # the sampler's own were not looked through
            attributes = dict(BoundedAttributes(None, given, immutable=False)) if given else {}
        elif bound != _ALL and (trace_id & _LOW) >= bound:
            if self._counter is not None:
                self._counter.not_sampled.add()
                if self._counter.told is not None:
                    self._counter.told()
            return self._unrecorded(trace_id, flags, state)
        else:
            flags |= _SAMPLED
        span_id = (self._bits(64) if self._bits is not None else 0) or self._span_id()
        span: Any = _new(self._class)
        span._context = _new_context(SpanContext, (trace_id, span_id, False, _FLAGS[flags], state, True))
        span._lock = _Lock()
        span._name, span._parent, span._data, span.redacted_by = name, parent, attributes, redactor
        if self._multi is not None and self._multi._span_processors is not self._processors:
            self._refresh()
        span._start_time = time_ns()
        for counter in self._counters:
            counter.started.add()
        for told in self._starts:
            told(span, context)
        return span  # type: ignore[no-any-return]

    def _unrecorded(self, trace_id: int, flags: int, state: trace.TraceState) -> trace.Span:
        context = _new_context(SpanContext, (trace_id, self._span_id(), False, _FLAGS[flags], state, True))
        return trace.NonRecordingSpan(context)

    def finish(self, span: trace.Span, attributes: Mapping[str, Any], status: trace.Status) -> None:
        if type(span) is not self._class:
            super().finish(span, attributes, status)
            return
        fast: Any = span
        end = time_ns()
        with fast._lock:
            if fast._end_time is not None:
                return
            made = fast._bounded
            if len(fast._data) + len(attributes) <= self._most and (
                made is None or (type(made) is BoundedAttributes and made._dict is fast._data)
            ):
                fast._data.update(attributes)  # ours are clean, and the same dict is in the SDK's clothes
            else:
                for key, value in attributes.items():
                    fast._attributes[key] = value
                made = fast._bounded
            if made is not None and isinstance(made, BoundedAttributes):
                made._immutable = True
            if fast._status is _UNSET or fast._status.status_code is not trace.StatusCode.OK:
                fast._status = status
            fast._end_time = end
        for counter in self._counters:
            counter.ended.add()
            if fast._context[3] & _SAMPLED:
                counter.sampled.add()
        for told in fast._ends:
            told(fast)


def _says_nothing(processor: Any, method: str) -> bool:
    own = getattr(type(processor), method, None)
    return method not in vars(processor) and any(own is getattr(known, method, None) for known in _SILENT)


def _uncounted(sampler: Sampler) -> Sampler:
    return sampler._sampler if type(sampler) is CountedSampler else sampler


def _counter_of(sampler: Sampler) -> SpanCounter | None:
    return sampler._counter if type(sampler) is CountedSampler else None


def _bounds(sampler: Sampler) -> list[int | None]:
    """Of a root and of spans with a local or remote parent, sampled or not: below which id they are sampled.

    ``None`` where the sampler must be asked.
    """
    if not isinstance(sampler, ParentBased) or type(sampler).should_sample is not ParentBased.should_sample:
        return [_bound_of(sampler)] * 5
    parts: Any = sampler
    return [
        _bound_of(parts._root),
        _bound_of(parts._local_parent_not_sampled),
        _bound_of(parts._local_parent_sampled),
        _bound_of(parts._remote_parent_not_sampled),
        _bound_of(parts._remote_parent_sampled),
    ]


def _bound_of(sampler: Any) -> int | None:
    if sampler is ALWAYS_ON or (
        type(sampler) is StaticSampler and sampler._decision is Sampling.RECORD_AND_SAMPLE
    ):
        return _ALL
    if sampler is ALWAYS_OFF or (type(sampler) is StaticSampler and sampler._decision is Sampling.DROP):
        return 0
    return int(sampler.bound) if type(sampler) is TraceIdRatioBased else None


def usable(provider: Any, tracer: Any) -> bool:
    """Whether all that is relied on here is there, and a span made so is what the SDK makes."""
    limits = getattr(tracer, "_span_limits", None)
    if limits is None or limits.max_span_attribute_length is not None:
        return False  # every value is cut: the SDK's own containers do that
    if (limits.max_span_attributes or _ENOUGH_ATTRIBUTES) < _ENOUGH_ATTRIBUTES:
        return False
    if type(tracer) is not sdk.Tracer or not isinstance(provider, sdk.TracerProvider):
        return False
    if type(tracer.span_processor) not in (
        sdk.SynchronousMultiSpanProcessor,
        sdk.ConcurrentMultiSpanProcessor,
    ):
        return False
    metrics = getattr(tracer, "_tracer_metrics", None)
    if metrics is not None and type(metrics).__name__ != "NoOpTracerMetrics":
        return False  # the SDK counts its spans itself
    return _same_as_the_sdks(tracer)


_tried: list[bool] = []


class _Fixed(IdGenerator):
    """Draws nothing: a replay's numbers are the agent's."""

    def generate_span_id(self) -> int:
        return 2

    def generate_trace_id(self) -> int:
        return 1


def _same_as_the_sdks(given: Any) -> bool:
    """Make one span each way on a copy of the tracer that nothing leaves, and compare what a reader sees; done once."""
    if not _tried:
        ended: list[Any] = []

        class Keep(sdk.SpanProcessor):
            def on_end(self, span: Any) -> None:
                ended.append(span)

        tracer: Any = copy.copy(given)
        tracer.sampler, tracer.id_generator = ALWAYS_ON, _Fixed()
        tracer.span_processor = sdk.SynchronousMultiSpanProcessor()  # type: ignore[no-untyped-call]
        tracer.span_processor.add_span_processor(Keep())
        provider: Any = None
        for way in (FastTracing(provider, tracer), Tracing(provider, tracer)):
            span = way.start("probe", {"a": "1"}, Context(), way.decide(Context()))
            span.set_attribute("b", 2)
            span.add_event("e", {"c": "3"})
            way.finish(span, {"d": "4"}, trace.Status(trace.StatusCode.OK))
        ours, theirs = ended
        valid = SpanContext(1, 2, is_remote=False)
        _tried.append(
            [_seen(ours)] == [_seen(theirs)]
            and tuple(valid) == (1, 2, False, _FLAGS[0], valid.trace_state, True)
            and vars(theirs).keys() <= {*dir(ours)}
            and ours.context.is_valid
        )
    return _tried[0]


def _seen(span: Any) -> tuple[Any, ...]:
    return (
        *(span.name, dict(span.attributes), span.kind, span.parent, span.status.status_code, span.resource),
        *(
            [(event.name, dict(event.attributes)) for event in span.events],
            span.links,
            span.instrumentation_scope,
        ),
        *(span.dropped_attributes, span.dropped_events, span.dropped_links, span.context.trace_flags),
    )
