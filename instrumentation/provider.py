"""Where spans go. Nothing here runs at import; an existing provider is used, never replaced."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from opentelemetry import trace
from opentelemetry.context import Context

from redfirst.evaluators import semconv
from redfirst.evaluators.errors import ConfigurationError
from redfirst.instrumentation.capture import Content
from redfirst.instrumentation.counts import REPORT_VARIABLE, SpanCounts
from redfirst.instrumentation.exit import watch_exit
from redfirst.instrumentation.guard import guarded
from redfirst.instrumentation.propagation import parent_in_environment
from redfirst.instrumentation.redaction import Redaction, Redactor
from redfirst.instrumentation.tracing import Tracing, tracing_of

if TYPE_CHECKING:  # the SDK is imported only by configure()
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

    from redfirst.instrumentation.counting import SpanCounter

_log = logging.getLogger("redfirst.instrumentation")


class _Settings:
    __slots__ = (
        *(
            "added",
            "content",
            "counters",
            "declared",
            "instrumentors",
            "isolated",
            "made",
            "parent",
            "provider",
        ),
        *("redaction", "redactor", "silent", "tracing"),
    )

    def __init__(self) -> None:
        self.provider: trace.TracerProvider | None = None
        self.made: trace.TracerProvider | None = None
        """The provider that ``configure`` made."""
        self.added: list[tuple[object, str, SpanProcessor]] = []
        """Provider, target and processor of every exporter that ``configure`` added."""
        self.counters: list[SpanCounter] = []
        """One for each provider that takes span processors."""
        self.tracing: Tracing | None = None  # one value: threads read it
        self.silent: object = self
        """The global provider (``None``: there is none) of which no span will come; something else otherwise."""
        self.redaction: Redaction | None = None
        self.declared: tuple[str, ...] = ()
        """Keys and paths that tools want redacted."""
        self.redactor: Redactor | None = None
        self.parent: Context | None = None
        """The trace that the process was started in."""
        self.instrumentors: list[str] = []
        self.content = Content.from_environment()
        self.isolated = False


settings = _Settings()
"""What ``configure`` was told; read in every call."""


def configure(
    service_name: str | None = None,
    *,
    file: str | PathLike[str] | None = None,
    endpoint: str | None = None,
    provider: TracerProvider | None = None,
    isolated: bool = False,
    redact: Redaction | None = None,
    sample: float | None = None,
    instrument: str | Iterable[str] = (),
) -> TracerProvider:
    """Send spans to an OTLP endpoint, to a file of OTLP/JSON lines, or both.

    An SDK provider that is already set is joined: with ``file`` or ``endpoint`` a processor is added
    to it, once for each target. Otherwise one is made and set, honouring the ``OTEL_*`` variables.
    Without ``file`` and ``endpoint`` a new provider exports as ``OTEL_TRACES_EXPORTER`` says: ``otlp``
    (the default, to ``OTEL_EXPORTER_OTLP_ENDPOINT`` or ``http://localhost:4318``), ``console``,
    ``none``, or another exporter that is installed under that name.

    Args:
        service_name: the resource's ``service.name`` of a new provider; ``OTEL_SERVICE_NAME`` when unset.
        file: path of a file that lines are appended to.
        endpoint: full URL of an OTLP/HTTP traces endpoint (``…/v1/traces``).
        provider: the provider to use for our spans instead of the global one.
        isolated: make a provider for our spans alone, and leave the global one to others.
        redact: what must not leave the process. It is tried out here, and holds until another is given.
        sample: the share of traces that are recorded, for a provider that is made here; a trace that was begun
            elsewhere is recorded as its caller decided. ``OTEL_TRACES_SAMPLER`` when unset.
        instrument: ``auto`` switches on every OpenInference instrumentor that is installed, a name that one.

    Raises:
        ConfigurationError: the file cannot be written, the provider in use takes no exporter, the redaction does not
            hold, ``sample`` is no share, or an instrumentor that was named is not installed.
    """
    if sample is not None and not 0 <= sample <= 1:
        raise ConfigurationError(f"sample={sample!r} is no share of traces: give a number from 0 to 1.")
    settings.content = Content.from_environment()
    current: Any = _in_use() if provider is None else provider
    if settings.isolated:
        return cast("TracerProvider", current)  # a replay: nothing may leave the process
    if redact is not None:
        _redact(redact)
    if isinstance(current, trace.ProxyTracerProvider) or (isolated and current is not settings.made):
        current = settings.made = _new_provider(service_name, sample)
        if isolated:
            settings.provider = current
        else:
            trace.set_tracer_provider(current)
    else:
        for name, value in (("service_name", service_name), ("sample", sample)):
            if value is not None:
                _log.info("%s=%r is not used: the provider in use has its own", name, value)
    if provider is not None:
        settings.provider = provider
    watch_exit()
    if settings.parent is None:
        with guarded("read TRACEPARENT"):
            settings.parent = parent_in_environment()
            settings.tracing = None
    _count(current)
    if file is not None:
        path = os.path.realpath(fspath(file))
        _add(current, f"file {path}", lambda: _file_exporter(path))
    if endpoint is not None:
        _add(current, f"endpoint {endpoint}", lambda: _otlp_exporter(endpoint))
    if (
        file is None
        and current is settings.made
        and not any(owner is current for owner, *_ in settings.added)
    ):
        for name in _exporters_wanted():
            _add(current, f"exporter {name}", lambda name=name: _named_exporter(name))
    if instrument:
        from redfirst.instrumentation.instrumentors import switch_on

        settings.instrumentors = switch_on(instrument, current)
    return cast("TracerProvider", current)


def _new_provider(service_name: str | None, sample: float | None) -> TracerProvider:
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio

    return TracerProvider(
        sampler=None if sample is None else ParentBasedTraceIdRatio(sample),
        resource=Resource.create({SERVICE_NAME: service_name} if service_name else {}),
    )


def _redact(redaction: Redaction) -> None:
    from redfirst.instrumentation.canary import try_out

    try_out(Redactor(redaction))
    settings.redaction = redaction
    _set_redactor()


def _count(provider: Any) -> None:
    """Count the provider's spans from now on; once, and only where that changes nothing for the host."""
    if _counter(provider) is not None or not hasattr(provider, "add_span_processor"):
        return
    from redfirst.instrumentation.counting import SpanCounter
    from redfirst.instrumentation.span_report import SpanReport

    with guarded("count the spans"):
        folder = os.environ.get(REPORT_VARIABLE)
        counter = SpanCounter(provider, made=provider is settings.made, whole=folder is not None)
        provider.add_span_processor(counter)
        settings.counters.append(counter)
        settings.tracing = None  # made anew, so that it counts what its sampler decides
        if folder is not None:
            SpanReport(counter, Path(folder))


def _counter(provider: object) -> SpanCounter | None:
    return next((one for one in settings.counters if one.provider is provider), None)


def span_counts() -> SpanCounts | None:
    """What became of the spans of the provider in use; ``None`` where there is none of the OpenTelemetry SDK."""
    provider = _in_use()
    counter = _counter(provider)
    if counter is not None:
        return counter.counts()
    if isinstance(provider, trace.ProxyTracerProvider):
        return None
    from redfirst.instrumentation.counting import looked_at

    return looked_at(provider)


def _add(provider: Any, target: str, exporter: Any) -> None:
    """Add an exporter to the provider, unless it has that one from us already."""
    from redfirst.instrumentation.exporting import BoundedProcessor

    if any(owner is provider and known == target for owner, known, _ in settings.added):
        return
    if not hasattr(provider, "add_span_processor"):
        raise ConfigurationError(
            f"The tracer provider in use, {type(provider).__qualname__}, takes no exporter. "
            "Give its own settings the endpoint, or give configure a provider of the OpenTelemetry SDK."
        )
    made: SpanExporter | None = exporter()
    if made is not None:
        processor = BoundedProcessor(made, reveal=_revealed)
        provider.add_span_processor(processor)
        settings.added.append((provider, target, processor))
        counter = _counter(provider)
        if counter is not None:
            with guarded("count the exports"):
                counter.watch(processor, made)


def _revealed(spans: Sequence[ReadableSpan]) -> Sequence[ReadableSpan]:
    """What of the spans may go to an exporter that ``configure`` added."""
    hidden = settings.redactor
    if hidden is None:
        return spans
    from redfirst.instrumentation.redacting import redacted

    return redacted(hidden, spans)


def _file_exporter(path: str) -> SpanExporter:
    from redfirst.instrumentation.otlp_file import OtlpFileExporter

    try:
        return OtlpFileExporter(path)
    except OSError as problem:
        raise ConfigurationError(
            f"Spans cannot be appended to {path}: {problem.strerror}. Give configure another file."
        ) from problem


def _otlp_exporter(endpoint: str | None) -> SpanExporter:
    from redfirst.instrumentation import otlp_sending

    return otlp_sending.exporter(endpoint)


def _exporters_wanted() -> list[str]:
    names = [name.strip() for name in os.environ.get("OTEL_TRACES_EXPORTER", "").split(",")]
    wanted = [name for name in dict.fromkeys(names) if name] or ["otlp"]
    return [] if "none" in wanted else wanted


def _named_exporter(name: str) -> SpanExporter | None:
    if name == "otlp":
        return _otlp_exporter(None)
    from importlib.metadata import entry_points

    found = next(iter(entry_points(group="opentelemetry_traces_exporter", name=name)), None)
    if found is None:
        _log.warning("OTEL_TRACES_EXPORTER names %s, which is not installed; no span goes there", name)
        return None
    return cast("SpanExporter", found.load()())


def isolate(provider: TracerProvider) -> None:
    """Use this provider for everything and let no later ``configure`` add an exporter (replay)."""
    settings.provider = provider
    settings.isolated = True
    trace.set_tracer_provider(provider)


def force_flush(timeout_millis: int = 30000) -> bool:
    """Hand every finished span to the exporters; ``False`` when the time ran out."""
    flush = getattr(_in_use(), "force_flush", None)
    if flush is None:
        return True
    with guarded("flush the spans"):
        return bool(flush(timeout_millis))
    return False


def shutdown() -> None:
    """Flush every span and close the exporters ``configure`` added. The provider itself stays at work."""
    if settings.isolated:
        force_flush()  # a replay collects the spans that end after this, too
        return
    force_flush()
    added, settings.added = settings.added, []
    settings.provider = None
    for owner, _, processor in added:
        counter = _counter(owner)
        with guarded("shut an exporter down"):
            if counter is not None:
                counter.closing(processor)
            processor.shutdown()


def tracing() -> Tracing:
    """How spans of our scope begin on the provider in use; made once per provider."""
    known = settings.tracing
    provider = settings.provider
    if provider is None:
        provider = trace._TRACER_PROVIDER  # noqa: SLF001 - get_tracer_provider() without its look at the environment
        if provider is None:
            provider = trace.get_tracer_provider()
    if known is None or known.provider is not provider or not known.current():
        tracer = provider.get_tracer(semconv.SCOPE)
        counter = _counter(provider)
        if counter is not None:
            counter.watch_sampling(tracer)
        known = tracing_of(provider, tracer)
        known.parent = settings.parent
        settings.tracing = known
        if not known.active and settings.provider is None:
            settings.silent = None if isinstance(provider, trace.ProxyTracerProvider) else provider
    return known


def redactor() -> Redactor | None:
    """What takes secrets out of values; ``None`` where nothing must be."""
    return settings.redactor


def redact_places(places: Iterable[str]) -> None:
    """Redact the values of these keys and paths from now on: a tool declared them."""
    given = (places,) if isinstance(places, str) else tuple(places)
    Redaction().with_places(given)  # a wrong path is refused where it is written
    settings.declared = tuple(dict.fromkeys((*settings.declared, *given)))
    _set_redactor()


def _set_redactor() -> None:
    if settings.redaction is None and not settings.declared:
        settings.redactor = None
        return
    before = settings.redactor
    wanted = (settings.redaction or Redaction()).with_places(settings.declared)
    settings.redactor = Redactor(wanted, key=None if before is None else before.key)


def _in_use() -> trace.TracerProvider:
    return trace.get_tracer_provider() if settings.provider is None else settings.provider


def reset() -> None:
    """Shut down and forget everything ``configure`` and ``isolate`` did (tests)."""
    settings.isolated = False
    shutdown()
    settings.tracing = settings.made = None
    settings.redaction = settings.redactor = settings.parent = None
    settings.instrumentors = []
    settings.declared = ()
    settings.counters = []
    settings.content = Content.from_environment()
