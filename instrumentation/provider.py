"""Where spans go. Nothing here runs at import; an existing provider is used, never replaced."""

from __future__ import annotations

import logging
import os
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from opentelemetry import trace

from redfirst.evaluators import semconv
from redfirst.evaluators.errors import ConfigurationError
from redfirst.instrumentation.capture import Content
from redfirst.instrumentation.counts import REPORT_VARIABLE, SpanCounts
from redfirst.instrumentation.guard import guarded

if TYPE_CHECKING:  # the SDK is imported only by configure()
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

    from redfirst.instrumentation.counting import SpanCounter

_log = logging.getLogger("redfirst.instrumentation")


class _Settings:
    __slots__ = ("added", "content", "counters", "isolated", "made", "provider", "tracer")

    def __init__(self) -> None:
        self.provider: trace.TracerProvider | None = None
        self.made: trace.TracerProvider | None = None
        """The provider that ``configure`` made."""
        self.added: list[tuple[object, str, SpanProcessor]] = []
        """Provider, target and processor of every exporter that ``configure`` added."""
        self.counters: list[SpanCounter] = []
        """One for each provider that takes span processors."""
        self.tracer: tuple[trace.TracerProvider, trace.Tracer] | None = None  # one value: threads read it
        self.content = Content.from_environment()
        self.isolated = False


_settings = _Settings()


def configure(
    service_name: str | None = None,
    *,
    file: str | PathLike[str] | None = None,
    endpoint: str | None = None,
    provider: TracerProvider | None = None,
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

    Raises:
        ConfigurationError: the file cannot be written, or the provider in use takes no exporter.
    """
    _settings.content = Content.from_environment()
    current: Any = _in_use() if provider is None else provider
    if _settings.isolated:
        return cast("TracerProvider", current)  # a replay: nothing may leave the process
    if isinstance(current, trace.ProxyTracerProvider):
        current = _settings.made = _new_provider(service_name)
        trace.set_tracer_provider(current)
    elif service_name is not None:
        _log.info("service_name=%r is not used: the provider in use names its service itself", service_name)
    if provider is not None:
        _settings.provider = provider
    _count(current)
    if file is not None:
        path = os.path.realpath(fspath(file))
        _add(current, f"file {path}", lambda: _file_exporter(path))
    if endpoint is not None:
        _add(current, f"endpoint {endpoint}", lambda: _otlp_exporter(endpoint))
    if (
        file is None
        and current is _settings.made
        and not any(owner is current for owner, *_ in _settings.added)
    ):
        for name in _exporters_wanted():
            _add(current, f"exporter {name}", lambda name=name: _named_exporter(name))
    return cast("TracerProvider", current)


def _new_provider(service_name: str | None) -> TracerProvider:
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider

    return TracerProvider(resource=Resource.create({SERVICE_NAME: service_name} if service_name else {}))


def _count(provider: Any) -> None:
    """Count the provider's spans from now on; once, and only where that changes nothing for the host."""
    if _counter(provider) is not None or not hasattr(provider, "add_span_processor"):
        return
    from redfirst.instrumentation.counting import SpanCounter
    from redfirst.instrumentation.span_report import SpanReport

    with guarded("count the spans"):
        folder = os.environ.get(REPORT_VARIABLE)
        counter = SpanCounter(provider, made=provider is _settings.made, whole=folder is not None)
        provider.add_span_processor(counter)
        _settings.counters.append(counter)
        _settings.tracer = None  # made anew, so that it counts what its sampler decides
        if folder is not None:
            SpanReport(counter, Path(folder))


def _counter(provider: object) -> SpanCounter | None:
    return next((one for one in _settings.counters if one.provider is provider), None)


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
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    if any(owner is provider and known == target for owner, known, _ in _settings.added):
        return
    if not hasattr(provider, "add_span_processor"):
        raise ConfigurationError(
            f"The tracer provider in use, {type(provider).__qualname__}, takes no exporter. "
            "Give its own settings the endpoint, or give configure a provider of the OpenTelemetry SDK."
        )
    made: SpanExporter | None = exporter()
    if made is not None:
        processor = BatchSpanProcessor(made)
        provider.add_span_processor(processor)
        _settings.added.append((provider, target, processor))
        counter = _counter(provider)
        if counter is not None:
            with guarded("count the exports"):
                counter.watch(processor, made)


def _file_exporter(path: str) -> SpanExporter:
    from redfirst.instrumentation.otlp_file import OtlpFileExporter

    try:
        return OtlpFileExporter(path)
    except OSError as problem:
        raise ConfigurationError(
            f"Spans cannot be appended to {path}: {problem.strerror}. Give configure another file."
        ) from problem


def _otlp_exporter(endpoint: str | None) -> SpanExporter:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(endpoint=endpoint)


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
    _settings.provider = provider
    _settings.isolated = True
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
    if _settings.isolated:
        force_flush()  # a replay collects the spans that end after this, too
        return
    force_flush()
    added, _settings.added = _settings.added, []
    _settings.provider = None
    for owner, _, processor in added:
        counter = _counter(owner)
        with guarded("shut an exporter down"):
            if counter is not None:
                counter.closing(processor)
            processor.shutdown()


def tracer() -> trace.Tracer:
    """The tracer of our scope on the provider in use; made once per provider."""
    provider = _in_use()
    known = _settings.tracer
    if known is None or known[0] is not provider:
        known = _settings.tracer = (provider, provider.get_tracer(semconv.SCOPE))
        counter = _counter(provider)
        if counter is not None:
            counter.watch_sampling(known[1])
    return known[1]


def content() -> Content:
    """Which content is captured."""
    return _settings.content


def _in_use() -> trace.TracerProvider:
    return trace.get_tracer_provider() if _settings.provider is None else _settings.provider


def reset() -> None:
    """Shut down and forget everything ``configure`` and ``isolate`` did (tests)."""
    _settings.isolated = False
    shutdown()
    _settings.tracer = _settings.made = None
    _settings.counters = []
    _settings.content = Content.from_environment()
