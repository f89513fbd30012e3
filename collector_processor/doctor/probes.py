"""What only asking tells: whether the endpoint answers, whether a service runs, what the provider in use does."""

from __future__ import annotations

import http.client
import re
import socket
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from redfirst.collector_processor.doctor.findings import ALL, Finding, Level
from redfirst.collector_processor.forwarding.refused import FOLDER
from redfirst.collector_processor.home import Home, OwnApi
from redfirst.collector_processor.posting.poster import NoAnswer, Poster
from redfirst.collector_processor.terminal import counted
from redfirst.instrumentation import faults, span_counts
from redfirst.instrumentation.counts import ExporterCounts, SpanCounts

_UNSEEN = "Spans that cannot be delivered are dropped by the exporter after some seconds; no check sees them."


def target(environment: Mapping[str, str]) -> tuple[str, str]:
    """The endpoint that an OTLP exporter would use here, and its protocol (``grpc`` or ``http``)."""
    named = environment.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environment.get(
        "OTEL_EXPORTER_OTLP_PROTOCOL"
    )
    protocol = "grpc" if (named or "").strip() == "grpc" else "http"
    exact = environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "").strip()
    if exact:
        return exact, protocol
    base = environment.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip()
    if protocol == "grpc":
        return base or "http://localhost:4317", protocol
    return f"{(base or 'http://localhost:4318').rstrip('/')}/v1/traces", protocol


def _place(url: str, protocol: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of an endpoint; None when it is none. OTLP over gRPC needs no scheme."""
    try:
        parts = urlsplit(url if "//" in url or protocol != "grpc" else f"http://{url}")
        port = parts.port or (4317 if protocol == "grpc" else 443 if parts.scheme == "https" else 80)
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    return parts.scheme, parts.hostname, port


def targets(exporters: Iterable[ExporterCounts]) -> list[tuple[str, str]]:
    """The endpoints that these exporters send to, and their protocols; each once."""
    found = [(one.endpoint, one.protocol) for one in exporters if one.endpoint is not None]
    return list(dict.fromkeys(found))


def endpoint(url: str, protocol: str, environment: Mapping[str, str], *, timeout: float) -> list[Finding]:
    """Whether an endpoint takes an export: an empty one, which stores nothing."""
    place = _place(url, protocol)
    if place is None:
        return [
            _unreachable("the endpoint is no URL", "Give OTEL_EXPORTER_OTLP_ENDPOINT as http://HOST:PORT.")
        ]
    scheme, host, port = place
    where = f"{scheme}://{host}:{port}"  # a path or a query may hold a key
    if protocol == "grpc":
        trouble = _connects(host, port, timeout)
        if trouble is not None:
            return [_unreachable(f"{where} (grpc): {trouble}", _START)]
        return [Finding(subject="endpoint", level=Level.OK, found=f"{where} (grpc): connects")]
    return [_answers(url, where, _headers(environment), timeout)]


def _answers(url: str, where: str, headers: Mapping[str, str], timeout: float) -> Finding:
    poster = Poster(url, timeout=timeout)
    try:
        answer = poster.post(poster.path, b"", {"Content-Type": "application/x-protobuf", **headers})
    except NoAnswer as problem:
        return _unreachable(f"{where}: no answer ({problem.reason})", _START)
    finally:
        poster.close()
    if 200 <= answer.status < 300:
        return Finding(subject="endpoint", level=Level.OK, found=f"{where}: takes OTLP over HTTP")
    remedy = {
        401: "Set OTEL_EXPORTER_OTLP_HEADERS to the key it asks for.",
        403: "Set OTEL_EXPORTER_OTLP_HEADERS to a key that may write.",
        404: "It is no OTLP receiver, or its path differs: set OTEL_EXPORTER_OTLP_TRACES_ENDPOINT.",
        405: "It is no OTLP receiver, or its path differs: set OTEL_EXPORTER_OTLP_TRACES_ENDPOINT.",
    }.get(answer.status, "See what listens there: it refuses an empty export.")
    return _unreachable(f"{where}: answers {answer.status} to an empty export", remedy)


_START = "Start redfirst serve, or point OTEL_EXPORTER_OTLP_ENDPOINT to where it listens."


def _unreachable(found: str, remedy: str) -> Finding:
    return Finding(
        subject="endpoint", level=Level.BLIND, found=found, means=_UNSEEN, blinds=ALL, remedy=remedy
    )


def _connects(host: str, port: int, timeout: float) -> str | None:
    try:
        socket.create_connection((host, port), timeout).close()
    except TimeoutError:
        return "no answer (timeout)"
    except OSError as problem:
        return problem.strerror or "does not connect"
    return None


def _headers(environment: Mapping[str, str]) -> dict[str, str]:
    given = environment.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS") or environment.get(
        "OTEL_EXPORTER_OTLP_HEADERS"
    )
    pairs = (pair.partition("=") for pair in (given or "").split(","))
    found = {unquote(name.strip()): unquote(value.strip()) for name, _, value in pairs if name.strip()}
    return {
        name: value
        for name, value in found.items()
        if f"{name}{value}".isascii() and f"{name}{value}".isprintable()
    }


def service(home: Home, environment: Mapping[str, str], *, timeout: float) -> list[Finding]:
    """The service on a home: where it listens, whether it is ready, what it took and refused."""
    said = home.service()
    if said is None:
        return [
            Finding(
                subject="service",
                level=Level.NOTE,
                found=f"no redfirst serve runs on {home.folder}",
                means="Runs are judged only when you ask: redfirst score FILE.",
                remedy="Start redfirst serve.",
            )
        ]
    ports = ", ".join(f"{name} {said[name]}" for name in ("grpc", "http", "page") if name in said)
    found = f"pid {said.get('pid')}: {ports or 'not listening yet'}"
    api = OwnApi.of(said)
    ready = None if api is None else _get(api, "/readyz", timeout)
    if ready is None or ready[0] != 200:
        why = "does not answer" if ready is None else " ".join(ready[1].split())[:200]
        return [
            Finding(
                subject="service",
                level=Level.BLIND,
                found=f"{found}; not ready: {why}",
                means="What is sent now may be refused, and is judged later than usual.",
                blinds=ALL,
                remedy="See its output; it becomes ready by itself when the cause goes.",
            )
        ]
    return [
        Finding(subject="service", level=Level.OK, found=f"{found}; ready"),
        *_aimed_at(said, environment),
        *_took(None if api is None else _get(api, "/metrics", timeout)),
    ]


def dead_letters(home: Home) -> list[Finding]:
    """Requests that forwarding destinations refused and that are still kept."""
    count = Counter(path.parent.name for path in (home.folder / FOLDER).glob("*/*.pb"))
    return [
        Finding(
            subject="forwarding",
            level=Level.NOTE,
            found=f"{counted(kept, 'request')} that {name} refused for good",
            means=f"{name} shows traces without them.",
            remedy="redfirst resend --list says why; redfirst resend gives them again.",
        )
        for name, kept in sorted(count.items())
    ]


def _aimed_at(said: Mapping[str, Any], environment: Mapping[str, str]) -> list[Finding]:
    url, protocol = target(environment)
    theirs = _place(url, protocol)
    own = urlsplit(str(said.get("http", ""))).netloc if protocol == "http" else str(said.get("grpc", ""))
    ours = _place(f"http://{own}", protocol)
    if theirs is None or ours is None or (theirs[2] == ours[2] and _same_host(theirs[1], ours[1])):
        return []
    return [
        Finding(
            subject="service",
            level=Level.NOTE,
            found=f"the exporter here goes to {theirs[1]}:{theirs[2]}, the service listens on {own}",
            means="Unless that forwards to the service, it sees no run of this environment.",
            remedy=f"Set OTEL_EXPORTER_OTLP_ENDPOINT=http://{own}.",
        )
    ]


def _same_host(one: str, other: str) -> bool:
    return one == other or {one, other} <= {"localhost", "127.0.0.1", "::1"}


def _took(answer: tuple[int, str] | None) -> list[Finding]:
    if answer is None or answer[0] != 200:
        return []
    text = answer[1]
    accepted, refused = _sum(text, "redfirst_spans_accepted_total"), _sum(text, "redfirst_rejected_total")
    unscored = _sum(text, "redfirst_unscored_total")
    lost = refused + unscored
    return [
        Finding(
            subject="spans",
            level=Level.NOTE if lost else Level.OK,
            found=f"service: {accepted:.0f} spans accepted, {refused:.0f} requests or records refused, "
            f"{unscored:.0f} runs without a verdict, since it started",
            means="What was refused is in no verdict; /metrics names the reasons." if lost else "",
        )
    ]


def _sum(text: str, name: str) -> float:
    return sum(float(value) for value in re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", text, re.MULTILINE))


def _get(api: OwnApi, path: str, timeout: float) -> tuple[int, str] | None:
    parts = urlsplit(api.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=timeout)
    try:
        connection.request("GET", path, headers=api.headers)
        answer = connection.getresponse()
        return answer.status, answer.read(1 << 20).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def provider(environment: Mapping[str, str]) -> SpanCounts | Finding:
    """The tracer provider in use in this process. Nothing is made and nothing is set."""
    if environment.get("OTEL_PYTHON_TRACER_PROVIDER"):
        # asking for the provider would make the named one, for the whole process
        name = environment["OTEL_PYTHON_TRACER_PROVIDER"]
        return Finding(
            subject="provider", level=Level.NOTE, found=f"OTEL_PYTHON_TRACER_PROVIDER={name} makes it"
        )
    seen = span_counts()
    if seen is None:
        found = "none is set in this process; configure() of redfirst.instrumentation makes one"
        means = "To have a program's spans counted, run it under this: redfirst doctor -- COMMAND."
        return Finding(subject="provider", level=Level.OK, found=found, means=means)
    return seen


def own_faults() -> list[Finding]:
    """What failed of our instrumentation in this process."""
    failed = sum(faults().values())
    if not failed:
        return []
    return [
        Finding(
            subject="instrumentation",
            level=Level.NOTE,
            found=f"{failed} steps of redfirst.instrumentation failed in this process",
            means="Calls whose step failed are not on spans as they should be; faults() names the steps.",
        )
    ]
