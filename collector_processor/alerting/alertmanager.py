"""Alerts in Prometheus' Alertmanager: what fires is sent again and again, what is over is sent as over for a while.

Alertmanager knows an alert by its labels alone and takes one that is not sent again for resolved. So the labels of an
alert never change while it fires, numbers and links are annotations, ``endsAt`` lies a few minutes ahead, and posting
the same twice does no harm: nothing needs to be remembered but what fires (API v2, ``POST /api/v2/alerts``).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import orjson

from redfirst.collector_processor.alerting.policy import ABANDONED, COVERAGE, INFRASTRUCTURE
from redfirst.collector_processor.alerting.webhook import Posted
from redfirst.collector_processor.posting.answers import RETRYABLE, asked_to_wait
from redfirst.collector_processor.posting.poster import (
    NoAnswer,
    Poster,
    checked_headers,
    from_environment,
)
from redfirst.collector_processor.settings import AlertmanagerSettings
from redfirst.evaluators.errors import ConfigurationError

Json = Any
UNRELIABLE = "RedfirstAgentUnreliable"
SILENT = "RedfirstAgentSilent"
UNCOVERED = "RedfirstAgentUncovered"
_ENDINGS = {INFRASTRUCTURE: "RedfirstAgentInfrastructure", ABANDONED: "RedfirstAgentAbandoned"}
_PATH = "/api/v2/alerts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alertmanager:
    """One Alertmanager, with everything read from the environment."""

    name: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float = 5.0
    resend_seconds: float = 60.0
    lasts_seconds: float = 240.0
    """How far ahead ``endsAt`` is: what is not sent again until then is over."""
    resolved_seconds: float = 900.0
    """How long an alert that is over is sent as such."""
    instance: str = ""


def alertmanagers(
    settings: Iterable[AlertmanagerSettings], environment: Mapping[str, str] = os.environ
) -> tuple[Alertmanager, ...]:
    """The configured Alertmanagers.

    Raises:
        ConfigurationError: two have one name, a variable is not set, a URL is none, or an alert would end before it
            is sent again.
    """
    found: dict[str, Alertmanager] = {}
    for entry in settings:
        where = f"serve: alerts: alertmanagers: {entry.name}"
        if entry.name in found:
            raise ConfigurationError(f"{where}: there are two of this name; each needs its own.")
        url = from_environment(entry.url, environment, where).rstrip("/")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ConfigurationError(f"{where}: the url is no http or https URL without credentials.")
        if entry.lasts_seconds <= entry.resend_seconds:
            raise ConfigurationError(
                f"{where}: lasts_seconds is {entry.lasts_seconds:g} and resend_seconds {entry.resend_seconds:g}; "
                "an alert would be over before it is sent again. Make lasts_seconds three times as long."
            )
        found[entry.name] = Alertmanager(
            name=entry.name,
            url=url,
            headers=checked_headers(entry.headers, environment, where),
            timeout=entry.timeout,
            resend_seconds=entry.resend_seconds,
            lasts_seconds=entry.lasts_seconds,
            resolved_seconds=entry.resolved_seconds,
            instance=entry.instance or socket.gethostname(),
        )
    return tuple(found.values())


def alert(body: Mapping[str, Json], to: Alertmanager, *, ends: float) -> dict[str, Json]:
    """One alert in the API's words, from the message that was made when it began to fire. ``ends`` is in Unix
    seconds."""
    labels = {
        "alertname": _name(body),
        "agent": body["agent"] or "",
        "evaluator": body["check"] or "",
        "task": body.get("task") or "",  # a message kept by an earlier version has none
        "severity": body["severity"],
        "tenant": body["tenant"],
        "instance": to.instance,
    }
    links: Sequence[str] = body["links"]
    interval = body["interval"]
    annotations = {
        "summary": body["text"],
        "alert": body["alert"],
        "flagged": f"{body['flagged']} of {body['judged']}",
        "interval": "" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}",
        "since": body["since"],
        "failing_runs": " ".join(body["failing_runs"]),
        "links": " ".join(links),
        "covered_by": " ".join(scenarios(body)),
        "began": "; ".join(beginnings(body)),
        "freeze": body["freeze"] or "",
    }
    found: dict[str, Json] = {
        "labels": {name: value for name, value in labels.items() if value},
        "annotations": {name: value for name, value in annotations.items() if value},
        "startsAt": body["since"],
        "endsAt": datetime.fromtimestamp(ends, UTC).isoformat(),
    }
    if links:
        found["generatorURL"] = links[0]
    return found


def scenarios(body: Mapping[str, Json]) -> list[str]:
    """The scenarios that keep these failures already; a message kept by an earlier version names none."""
    return sorted({one["scenario"] for one in body.get("covered_by", ()) if one})


def beginnings(body: Mapping[str, Json]) -> list[str]:
    """What began near the time of the change, in words."""
    return [f"{one['what']} {one['name']} since {one['at']}" for one in body.get("began", ())]


def _name(body: Mapping[str, Json]) -> str:
    if body["about"] != COVERAGE:
        return _ENDINGS.get(body["about"], UNRELIABLE)
    return UNCOVERED if "coverage" in body["causes"] else SILENT


def post(
    to: Alertmanager,
    firing: Iterable[Mapping[str, Json]],
    over: Iterable[tuple[Mapping[str, Json], float]],
    *,
    now: float,
    poster: Callable[..., Poster] = Poster,
) -> Posted:
    """Send what fires, and with its end (Unix seconds) what is over, in one request."""
    alerts = [alert(body, to, ends=now + to.lasts_seconds) for body in firing]
    alerts += [alert(body, to, ends=ended) for body, ended in over]
    connection = poster(to.url, timeout=to.timeout)
    try:
        answer = connection.post(
            connection.path.rstrip("/") + _PATH,
            orjson.dumps(alerts),
            {**to.headers, "Content-Type": "application/json"},
        )
    except NoAnswer as problem:
        return Posted(delivered=False, reason=problem.reason, again=True)
    finally:
        connection.close()
    if answer.status == 200:
        return Posted(delivered=True, reason="ok")
    again = answer.status in RETRYABLE or answer.status >= 500
    after = asked_to_wait(answer.headers.get("retry-after"), now)
    return Posted(delivered=False, reason=f"status_{answer.status}", again=again, after=after)
