"""The kinds of backends, and those of the configuration with what they take from the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from redfirst.collector_processor.posting.poster import checked_headers, from_environment
from redfirst.collector_processor.settings import SinkSettings
from redfirst.collector_processor.sinks.braintrust import BraintrustSink
from redfirst.collector_processor.sinks.datadog import DatadogSink
from redfirst.collector_processor.sinks.langfuse import LangfuseSink
from redfirst.collector_processor.sinks.langsmith import LangSmithSink
from redfirst.collector_processor.sinks.mlflow import MlflowSink
from redfirst.collector_processor.sinks.opik import OpikSink
from redfirst.collector_processor.sinks.otlp import OtlpSink
from redfirst.collector_processor.sinks.phoenix import PhoenixSink
from redfirst.collector_processor.sinks.sink import Sink
from redfirst.evaluators.errors import ConfigurationError

_DESTINATION = "sink:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What is true of every backend of one kind."""

    make: Callable[[SinkSettings], Sink]
    read_back: str = ""
    """The version of the server that scores were read back from; empty when none ever was."""
    withdraws: bool = True
    """Whether what was sent can be taken back."""
    needs_project: str = ""
    """What ``project`` is there, where it cannot be left out."""


KINDS: Mapping[str, Kind] = {
    "otlp": Kind(
        make=lambda entry: OtlpSink(events=entry.events, mark_error=entry.mark_error),
        read_back="Jaeger 1.76, Phoenix 20.26 and MLflow 3.17",
        withdraws=False,
    ),
    "phoenix": Kind(
        make=lambda entry: PhoenixSink(project=entry.project or "default"), read_back="Phoenix 20.26"
    ),
    "mlflow": Kind(make=lambda _: MlflowSink(), read_back="MLflow 3.17"),
    "langfuse": Kind(make=lambda _: LangfuseSink()),
    "langsmith": Kind(make=lambda _: LangSmithSink()),
    "opik": Kind(make=lambda entry: OpikSink(project=entry.project or "Default Project")),
    "braintrust": Kind(
        make=lambda entry: BraintrustSink(project=entry.project), needs_project="the project's id"
    ),
    "datadog": Kind(
        make=lambda entry: DatadogSink(project=entry.project),
        withdraws=False,
        needs_project="the ml_app of the spans",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """Where scores go, with everything read from the environment."""

    name: str
    kind: str
    sink: Sink
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tenants: Collection[str] | None = None
    """Whose runs it is told of; None for everyone's."""
    timeout: float = 10.0
    hold: float = 3 * 86_400.0
    """Seconds that a run it does not take is tried."""
    longest_wait: float = 30.0
    """Seconds between two tries at most, when the backend asks for no more."""

    @property
    def destination(self) -> str:
        """Its name in the store's outbox."""
        return _DESTINATION + self.name


def backends(
    settings: Iterable[SinkSettings], environment: Mapping[str, str] = os.environ
) -> tuple[Backend, ...]:
    """The configured backends.

    Raises:
        ConfigurationError: two have one name, a variable is not set, or a key that the kind needs is missing.
    """
    found: dict[str, Backend] = {}
    for entry in settings:
        where = f"serve: sinks: {entry.name}"
        if entry.name in found:
            raise ConfigurationError(f"{where}: there are two of this name; each needs its own.")
        kind = KINDS[entry.kind]
        if kind.needs_project and not entry.project:
            raise ConfigurationError(f"{where}: {entry.kind} needs project: {kind.needs_project}.")
        url = from_environment(entry.endpoint, environment, where).rstrip("/")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ConfigurationError(f"{where}: the endpoint is no http or https URL without credentials.")
        if parts.query or parts.fragment or parts.path.endswith(("/v1/traces", "/v1/logs")):
            raise ConfigurationError(f"{where}: give the base URL as endpoint; paths are added to it.")
        found[entry.name] = Backend(
            name=entry.name,
            kind=entry.kind,
            sink=kind.make(entry),
            url=url,
            headers=checked_headers(entry.headers, environment, where),
            tenants=entry.tenants,
            timeout=entry.timeout,
            hold=entry.hold_days * 86_400,
            longest_wait=entry.longest_wait_seconds,
        )
    return tuple(found.values())
