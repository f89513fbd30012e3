"""The settings of the service: what stands under ``serve:``, and what the environment overrides."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from redfirst.evaluators.errors import ConfigurationError
from redfirst.replay.project import Project

ENVIRONMENT = "env:"
"""``env:NAME`` stands for the variable's value, so that no secret need be in a file."""


TRACE_URL = r"^https?://[^\s{}]*(\{(trace_id|run_id)\}[^\s{}]*)+$"
"""A template of the link to a run."""


def _address(text: str) -> str:
    """A URL that carries no credentials, or the name of a variable that holds one."""
    if text.startswith(ENVIRONMENT):
        return text
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("give it as http://HOST or https://HOST, or as env:NAME")
    if parts.username is not None or parts.password is not None:
        raise ValueError("take the credentials out of the URL; give a header with env:NAME")
    return text


def _variable(text: str) -> str:
    """``env:NAME`` and nothing else."""
    if not text.removeprefix(ENVIRONMENT) or not text.startswith(ENVIRONMENT):
        raise ValueError("give it as env:NAME, so that no secret stands in a file")
    return text


def _from_json(given: object) -> object:
    """A value as the environment gives it, as JSON text."""
    if not isinstance(given, str):
        return given
    try:
        return orjson.loads(given)
    except orjson.JSONDecodeError as problem:
        raise ValueError(f"give it as JSON: {problem}") from problem


Address = Annotated[str, AfterValidator(_address)]
DEFAULT_TENANT = "default"
"""The tenant of everything while no tokens are configured."""
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")]


class ForwardSettings(BaseModel):
    """One OTLP/HTTP destination under ``serve: forward:``."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: Name
    """Names its cursor, its metrics and its folder of refused requests; a new name begins anew."""
    endpoint: Address
    """Base URL; ``/v1/traces`` and ``/v1/logs`` are added. ``env:NAME`` reads it from the environment."""
    headers: dict[str, str] = {}
    """Sent with every request; a value ``env:NAME`` is read from the environment."""
    compression: Literal["none", "gzip", "zstd"] = "none"
    """How bodies are compressed on the way."""
    ca: str | None = None
    """File of the certificates to trust, in place of the system's."""
    certificate: str | None = None
    """File of the certificate to show (mTLS)."""
    key: str | None = None
    """File of the certificate's key, where that is not in the same file."""
    signals: list[Literal["traces", "logs"]] = Field(default=["traces", "logs"], min_length=1)
    """What it takes; a backend without ``/v1/logs`` would refuse every request of log records."""
    timeout: float = Field(default=10.0, gt=0, le=300)
    """Seconds that one request may take."""
    backlog: bool = False
    """Whether a new destination gets all that the journal holds, and not only the runs that are still open."""
    tenants: list[Name] | None = Field(default=None, min_length=1)
    """Whose requests it gets; by default everyone's."""
    hold_days: float = Field(default=3.0, gt=0)
    """How long requests that it does not take are kept for it; then they are counted as dropped."""


class MetricsExportSettings(BaseModel):
    """Where the service's own metrics are sent, under ``serve: metrics_export:``."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    endpoint: Address
    """Base URL of OTLP/HTTP; ``/v1/metrics`` is added. ``env:NAME`` reads it from the environment."""
    headers: dict[str, str] = {}
    """Sent with every request; a value ``env:NAME`` is read from the environment."""
    interval_seconds: float = Field(default=60.0, gt=0)
    """How often."""
    timeout: float = Field(default=10.0, gt=0, le=300)
    """Seconds that one request may take, tries included."""


class SinkSettings(BaseModel):
    """One backend that is told verdicts, under ``serve: sinks:``."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: Name
    """Names its rows in the outbox and its metrics."""
    kind: Literal["otlp", "phoenix", "mlflow", "langfuse", "langsmith", "opik", "braintrust", "datadog"]
    """Whose API it speaks; ``otlp`` sends one span a verdict, the others native scores."""
    endpoint: Address
    """Base URL, to which the API's paths are added; ``env:NAME`` reads it from the environment."""
    headers: dict[str, str] = {}
    """Sent with every request; a value ``env:NAME`` is read from the environment."""
    project: str = ""
    """The backend's own: Phoenix' and Opik's project name, Braintrust's project id, MLflow's experiment id, ``ml_app``."""
    events: bool = False
    """``otlp``: whether each check is a ``gen_ai.evaluation.result`` log event, too."""
    mark_error: bool = False
    """``otlp``: whether the verdict of a flagged run has status ERROR; backends count it as an error of the agent."""
    tenants: list[Name] | None = Field(default=None, min_length=1)
    """Whose runs it is told of; by default everyone's."""
    link: str | None = Field(default=None, pattern=TRACE_URL)
    """Where a person looks at a run in it, with ``{trace_id}`` or ``{run_id}``; some kinds know it."""
    timeout: float = Field(default=10.0, gt=0, le=300)
    """Seconds that one request may take."""
    longest_wait_seconds: float = Field(default=30.0, gt=0)
    """The longest pause between two tries, when it asks for no longer one."""
    hold_days: float = Field(default=3.0, gt=0)
    """How long a run that it does not take is tried; then it is counted as given up."""


class WebhookSettings(BaseModel):
    """One receiver of alerts under ``serve: alerts: webhooks:``."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: Name
    url: Address
    """Where alerts are posted; ``env:NAME`` reads it from the environment."""
    headers: dict[str, str] = {}
    """Sent with every post; a value ``env:NAME`` is read from the environment."""
    secret: str | None = Field(default=None, pattern=f"^{ENVIRONMENT}.+")
    """``env:NAME``: signs every post with this key."""
    timeout: float = Field(default=5.0, gt=0, le=60)
    """Seconds that one post may take."""
    allow_private: bool = False
    """Whether the address may be of a private or link-local network."""
    allow_loopback: bool = False
    """Whether the address may be this machine."""


class AlertmanagerSettings(BaseModel):
    """One Alertmanager under ``serve: alerts: alertmanagers:``."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: Name
    url: Address
    """Its address, without ``/api/v2``; ``env:NAME`` reads it from the environment."""
    headers: dict[str, str] = {}
    """Sent with every post; a value ``env:NAME`` is read from the environment."""
    timeout: float = Field(default=5.0, gt=0, le=60)
    """Seconds that one post may take."""
    resend_seconds: float = Field(default=60.0, gt=0)
    """How often what fires is sent again."""
    lasts_seconds: float = Field(default=240.0, gt=0)
    """For how long it fires without being sent again."""
    resolved_seconds: float = Field(default=900.0, gt=0, le=3600)
    """How long what is over is sent as over."""
    instance: str = ""
    """The label ``instance``; by default the name of this machine."""


class NotifySettings(BaseModel):
    """One receiver of short texts under ``serve: alerts: notify:``, through apprise."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: Name
    url: Address
    """An apprise URL (``slack://…``, ``mailto://…``, ``pagerduty://…``); ``env:NAME`` reads it from the environment."""


class AlertSettings(BaseModel):
    """When an agent's flagged runs raise an alert, under ``serve: alerts:``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    window_seconds: float = Field(default=3600.0, gt=0)
    """Runs judged for the first time within this time are counted against the objective."""
    short_window_seconds: float | None = Field(default=None, gt=0)
    """The newest part of the window, in which the share must be above the threshold too; by default a twelfth."""
    min_runs: int = Field(default=20, ge=1)
    """Judged runs below which nothing is said: the state is ``no_data``."""
    threshold: float | None = Field(default=0.2, gt=0, lt=1)
    """The objective: share of flagged runs that is tolerated. ``null`` has none."""
    z: float = Field(default=3.0, gt=0)
    """Fires when the lower Wilson bound at this quantile is above the threshold; by chance alone 3 is one look in 700."""
    resolve_z: float = Field(default=1.0, gt=0)
    """Resolves when the upper Wilson bound at this quantile is below the threshold."""
    stale_seconds: float = Field(default=86400.0, gt=0)
    """How long an alert stays without enough runs before it is given up as ``no_data``."""
    false_alarms_a_week: float | None = Field(default=0.05, gt=0)
    """How often one agent may be reported falsely for a drop below its own past; ``null``: the past is not compared."""
    reference_seconds: float = Field(default=7 * 86400.0, gt=0)
    """How far back the past goes; it needs 300 runs, and from 100 on a drop is a warning."""
    reference_settle_seconds: float = Field(default=3600.0, ge=0)
    """The newest part of the past, which is no reference yet."""
    hold_seconds: float = Field(default=900.0, ge=0)
    """How long a drop is reported at least before it can be over."""
    revision_seconds: float = Field(default=86400.0, gt=0)
    """How long after a run was judged first its later versions change what was counted."""
    per: Literal["agent", "check"] = "agent"
    """One alert for all flagged runs of an agent, or one for each of its checks."""
    webhooks: Annotated[list[WebhookSettings], BeforeValidator(_from_json)] = []
    """Who is told, by JSON over HTTP."""
    alertmanagers: Annotated[list[AlertmanagerSettings], BeforeValidator(_from_json)] = []
    """Prometheus Alertmanagers that are told."""
    notify: Annotated[list[NotifySettings], BeforeValidator(_from_json)] = []
    """Who is told by chat, pager or mail; needs ``redfirst[notify]``."""
    tick_seconds: float = Field(default=1.0, gt=0)
    """How often streams are judged."""
    give_up_seconds: float = Field(default=86400.0, gt=0)
    """After which a message that a receiver did not take is given up."""


class TokenSettings(BaseModel):
    """One bearer token under ``serve: tokens:``."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    tenant: Name
    """Whose it is: stands with every run that is sent with it. A tenant may have several, to change from one to another."""
    token: Annotated[str, AfterValidator(_variable)]
    """``env:NAME`` reads it from the environment."""


class TlsSettings(BaseModel):
    """The certificate of all three ports, under ``serve: tls:``. Its files are read again when they change."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    certificate: Path
    """PEM, with the intermediate certificates after it."""
    key: Path
    """PEM, without a password."""
    client_ca: Path | None = None
    """PEM; whoever connects must show a certificate of one of these authorities."""


_Told = list[ForwardSettings] | list[SinkSettings]


class ServeSettings(BaseModel):
    """The keys under ``serve:``. Each is overridden by ``REDFIRST_`` and its name in capitals."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = "127.0.0.1"
    """Address that all three ports listen on; anything but loopback lets others in."""
    grpc_port: int = Field(default=4317, ge=0, le=65535)
    """OTLP over gRPC; 0 takes a free port and prints it, as for the other two."""
    http_port: int = Field(default=4318, ge=0, le=65535)
    """OTLP over HTTP."""
    page_port: int = Field(default=4320, ge=0, le=65535)
    """JSON API, metrics and health."""
    settle_seconds: float = Field(default=10.0, gt=0)
    """Quiet time after which a run whose root has ended is judged; twice the exporters' usual delay."""
    idle_seconds: float = Field(default=180.0, gt=0)
    """Quiet time after which a run without a root, or with parents that never came, is judged."""
    age_seconds: float = Field(default=86400.0, gt=0)
    """Age at which a run that does not end is judged as it is; what comes later makes another version."""
    abandon_seconds: float = Field(default=3600.0, gt=0)
    """Quiet time, after a run without a root was judged, until it is told to be abandoned."""
    park_seconds: float = Field(default=86400.0, ge=0)
    """How long a run that waits for a person may go on as if it had not been judged."""
    seal_days: float = Field(default=7.0, gt=0)
    """After a run was judged last: when late spans are kept and make no further version."""
    grace_seconds: float = Field(default=30.0, ge=0)
    """After a start, before a run that was open is said to have gone quiet: senders try again meanwhile."""
    max_body_bytes: int = Field(default=64 << 20, gt=0)
    """Largest request, before and after decompression."""
    receive_bytes: int | None = Field(default=None, gt=0)
    """Bytes of requests in flight over all connections; by default 256 MiB, or four of the largest request."""
    tokens: Annotated[list[TokenSettings], BeforeValidator(_from_json)] = []
    """Who may send, read and erase; without any, all who reach the ports. JSON when given by the environment."""
    tls: Annotated[TlsSettings | None, BeforeValidator(_from_json)] = None
    """The certificate of all three ports; without one they speak in the clear. JSON when given by the environment."""
    cors_origins: Annotated[list[str], BeforeValidator(_from_json)] = []
    """Sites whose pages may send from a browser, as ``https://HOST``; ``*`` is all. JSON when given by the environment."""
    http_prefix: str = Field(default="", pattern=r"^(/[A-Za-z0-9._~-]+)*$")
    """What comes before ``/v1/traces`` on the OTLP/HTTP port, as ``/otlp``."""
    metrics_endpoint: Literal["refuse", "absent"] = "refuse"
    """Metrics are not kept: every data point is refused with 200, or the path answers 404 (gRPC: UNIMPLEMENTED)."""
    traceless_logs: Literal["keep", "refuse"] = "keep"
    """Whether log records without a trace id are kept and passed on, though no run will show them."""
    log: Literal["text", "json"] = "text"
    """How what happens is written on standard error: for people, or one JSON object a line."""
    scorers: int = Field(default=1, ge=1, le=64)
    """Processes that judge runs; one more judges those of 2,000 spans and more while there are any."""
    score_seconds: float = Field(default=30.0, gt=0)
    """What judging one run may take before the scorer is ended and started again."""
    check_seconds: float = Field(default=10.0, gt=0)
    """What one check may take for one run; its verdict is inconclusive when it takes longer."""
    score_memory_bytes: int = Field(default=4 << 30, ge=256 << 20)
    """Address space of a scorer process."""
    retain_days: float = Field(default=30.0, gt=0)
    """Age at which spans are removed from the journal, except those of flagged runs."""
    keep_days: float = Field(default=365.0, gt=0)
    """After a run was judged last: when its verdict goes too, and a tombstone stays."""
    retain_bytes: int = Field(default=8 << 30, gt=0)
    """Size of the journal beyond which its oldest segments are removed before their age."""
    min_free_bytes: int = Field(default=256 << 20, ge=0)
    """Free disk space below which senders are asked to wait."""
    max_journal_bytes: int | None = Field(default=None, ge=1 << 20)
    """Size of the journal at which senders are asked to wait, because none of it can be removed yet."""
    forward: Annotated[list[ForwardSettings], BeforeValidator(_from_json)] = []
    """OTLP/HTTP destinations that get every accepted request; JSON when given by the environment."""
    sinks: Annotated[list[SinkSettings], BeforeValidator(_from_json)] = []
    """Backends that are told every verdict; JSON when given by the environment."""
    trace_url: str | None = Field(default=None, pattern=TRACE_URL)
    """Where a person looks at a run, with ``{trace_id}`` or ``{run_id}`` in it: every run that is posted gets its link."""
    alerts: Annotated[AlertSettings, BeforeValidator(_from_json)] = AlertSettings()
    """When flagged runs raise an alert and who is told; JSON when given by the environment."""
    metrics_export: Annotated[MetricsExportSettings | None, BeforeValidator(_from_json)] = None
    """An OTLP endpoint that gets the metrics of ``/metrics``; JSON when given by the environment."""

    @field_validator("receive_bytes")
    @classmethod
    def _holds_the_largest(cls, given: int | None, about: ValidationInfo) -> int | None:
        largest = about.data.get("max_body_bytes", 0)
        if given is not None and given < largest:
            raise ValueError(
                f"give at least max_body_bytes ({largest}), or no request of that size is ever taken"
            )
        return given

    @field_validator("forward", "sinks")
    @classmethod
    def _of_tenants_that_there_are(cls, given: _Told, about: ValidationInfo) -> _Told:
        senders = {one.tenant for one in about.data.get("tokens", ())}
        known = senders or {DEFAULT_TENANT}
        for entry in given:
            unknown = sorted({*(entry.tenants or ())} - known)
            if unknown:
                why = f"tokens are of {', '.join(sorted(senders))}" if senders else "there are no tokens"
                raise ValueError(f"{entry.name}: tenants: nobody sends as {unknown[0]}; {why}")
        return given


_WITH_SECRETS = frozenset({"forward", "alerts", "metrics_export", "tokens", "sinks"})
"""Settings whose values may hold headers: never printed."""


def configured(project: Project) -> ServeSettings:
    """The settings of the project's file.

    Raises:
        ConfigurationError: a key or a value is wrong; the message names the file and the line.
    """
    return project.section("serve", ServeSettings)


def in_force(given_in_file: ServeSettings, environment: Mapping[str, str] = os.environ) -> ServeSettings:
    """The settings with ``REDFIRST_*`` applied.

    Raises:
        ConfigurationError: a variable has no such value; the message names it.
    """
    names = {name: f"REDFIRST_{name.upper()}" for name in ServeSettings.model_fields}
    given = {name: environment[variable] for name, variable in names.items() if environment.get(variable)}
    try:
        return ServeSettings.model_validate({**given_in_file.model_dump(), **given})
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        name = str(first["loc"][0])
        shown = "" if name in _WITH_SECRETS else f"={given.get(name)}"
        place = "".join(f" {step}:" for step in first["loc"][1:])
        raise ConfigurationError(f"{names[name]}{shown}:{place} {first['msg']}.") from None
