"""Where spans go. Nothing here runs at import; an existing provider is used, never replaced."""

from __future__ import annotations

import os
from os import PathLike
from typing import TYPE_CHECKING

from opentelemetry import trace

from redfirst.evaluators import semconv
from redfirst.instrumentation.capture import Content

if TYPE_CHECKING:  # the SDK is imported only by configure()
    from opentelemetry.sdk.trace import TracerProvider


class _Settings:
    __slots__ = ("content", "isolated", "provider", "tracer", "tracer_of")

    def __init__(self) -> None:
        self.provider: trace.TracerProvider | None = None
        self.tracer: trace.Tracer | None = None
        self.tracer_of: trace.TracerProvider | None = None
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
    to it. Otherwise one is made and set, honouring the ``OTEL_*`` variables. Without ``file`` and
    ``endpoint`` a new provider exports to ``OTEL_EXPORTER_OTLP_ENDPOINT`` (default
    ``http://localhost:4318``) unless ``OTEL_TRACES_EXPORTER=none``.

    Args:
        service_name: the resource's ``service.name``; ``OTEL_SERVICE_NAME`` wins when unset.
        file: path of a file that lines are appended to.
        endpoint: full URL of an OTLP/HTTP traces endpoint (``…/v1/traces``).
        provider: the provider to use for our spans instead of the global one.
    """
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    _settings.content = Content.from_environment()
    current = provider or trace.get_tracer_provider()
    if _settings.isolated and isinstance(current, TracerProvider):
        return current  # a replay: nothing may leave the process
    made = not isinstance(current, TracerProvider)
    if not isinstance(current, TracerProvider):
        attributes = {SERVICE_NAME: service_name} if service_name else {}
        current = TracerProvider(resource=Resource.create(attributes))
        trace.set_tracer_provider(current)
    if provider is not None:
        _settings.provider = provider
    if file is not None:
        from redfirst.instrumentation.otlp_file import OtlpFileExporter

        current.add_span_processor(BatchSpanProcessor(OtlpFileExporter(file)))
    by_default = made and file is None and os.environ.get("OTEL_TRACES_EXPORTER", "otlp") != "none"
    if endpoint is not None or by_default:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        current.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return current


def isolate(provider: TracerProvider) -> None:
    """Use this provider for everything and let no later ``configure`` add an exporter (replay)."""
    _settings.provider = provider
    _settings.isolated = True
    trace.set_tracer_provider(provider)


def force_flush(timeout_millis: int = 30000) -> bool:
    """Hand every finished span to the exporters; ``False`` when the time ran out."""
    flush = getattr(_settings.provider or trace.get_tracer_provider(), "force_flush", None)
    return bool(flush(timeout_millis)) if flush is not None else True


def shutdown() -> None:
    """Flush and close the exporters of the provider in use."""
    stop = getattr(_settings.provider or trace.get_tracer_provider(), "shutdown", None)
    if stop is not None:
        stop()
    _settings.provider = None


def tracer() -> trace.Tracer:
    """The tracer of our scope on the provider in use; made once per provider."""
    provider = _settings.provider or trace.get_tracer_provider()
    if _settings.tracer is None or _settings.tracer_of is not provider:
        _settings.tracer = provider.get_tracer(semconv.SCOPE)
        _settings.tracer_of = provider
    return _settings.tracer


def content() -> Content:
    """Which content is captured."""
    return _settings.content
