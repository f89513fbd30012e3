"""Posting to a webhook: only where the configuration allows, signed, without following redirects."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import orjson

from redfirst.collector_processor.posting.answers import RETRYABLE, asked_to_wait
from redfirst.collector_processor.posting.poster import (
    NoAnswer,
    Poster,
    checked_headers,
    from_environment,
)
from redfirst.collector_processor.settings import WebhookSettings
from redfirst.evaluators.errors import ConfigurationError

SIGNATURE = "Redfirst-Signature"
"""``t=UNIX_SECONDS,v1=HEX``: HMAC-SHA256, with the secret, of the seconds, a full stop and the body."""
EVENT = "Redfirst-Event-Id"
"""The message's id; a receiver that sees it twice has seen one event."""

Json = Any
Lookup = Callable[[str, int], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A receiver, with everything read from the environment."""

    name: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret: str | None = field(default=None, repr=False)
    timeout: float = 5.0
    allow_private: bool = False
    allow_loopback: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """What became of one post."""

    delivered: bool
    reason: str
    again: bool = False
    """Whether it is worth trying again."""
    after: float | None = None
    """Seconds that the receiver asked to wait."""


def webhooks(
    settings: Iterable[WebhookSettings], environment: Mapping[str, str] = os.environ
) -> tuple[Webhook, ...]:
    """The configured receivers.

    Raises:
        ConfigurationError: two have one name, a variable is not set, or a URL is none.
    """
    found: dict[str, Webhook] = {}
    for entry in settings:
        where = f"serve: alerts: webhooks: {entry.name}"
        if entry.name in found:
            raise ConfigurationError(f"{where}: there are two of this name; each needs its own.")
        url = from_environment(entry.url, environment, where)
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ConfigurationError(f"{where}: the url is no http or https URL without credentials.")
        found[entry.name] = Webhook(
            name=entry.name,
            url=url,
            headers=checked_headers(entry.headers, environment, where),
            secret=None if entry.secret is None else from_environment(entry.secret, environment, where),
            timeout=entry.timeout,
            allow_private=entry.allow_private,
            allow_loopback=entry.allow_loopback,
        )
    return tuple(found.values())


def allowed(address: str, webhook: Webhook) -> bool:
    """Whether a webhook may be at this IP address."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if found.is_loopback:
        return webhook.allow_loopback
    if found.is_multicast or found.is_unspecified:
        return False
    return found.is_global or webhook.allow_private


def signature(secret: str, body: bytes, seconds: int) -> str:
    """The value of the signature's header."""
    mac = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={seconds},v1={mac}"


def lookup(host: str, port: int) -> Sequence[str]:
    """The addresses of a host.

    Raises:
        OSError: it has none, or they cannot be found out.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def post(
    webhook: Webhook, body: Mapping[str, Json], *, event: str, now: float, look: Lookup = lookup
) -> Posted:
    """Post once, at this time (Unix seconds). The connection goes to the very address that was checked."""
    parts = urlsplit(webhook.url)
    try:
        addresses = look(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
    except (OSError, UnicodeError):
        return Posted(delivered=False, reason="name_not_found", again=True)
    if not addresses or not all(allowed(address, webhook) for address in addresses):
        return Posted(delivered=False, reason="address_not_allowed")
    data = orjson.dumps(body)
    headers = {**webhook.headers, "Content-Type": "application/json", EVENT: event}
    if webhook.secret is not None:
        headers[SIGNATURE] = signature(webhook.secret, data, int(now))
    poster = Poster(webhook.url, timeout=webhook.timeout, address=addresses[0])
    try:
        answer = poster.post(poster.path, data, headers)
    except NoAnswer as problem:
        return Posted(delivered=False, reason=problem.reason, again=True)
    finally:
        poster.close()
    if 200 <= answer.status < 300:
        return Posted(delivered=True, reason="ok")
    if 300 <= answer.status < 400:
        return Posted(delivered=False, reason="redirect")
    again = answer.status in RETRYABLE or answer.status >= 500 or answer.status in (408, 425)
    after = asked_to_wait(answer.headers.get("retry-after"), now)
    return Posted(delivered=False, reason=f"status_{answer.status}", again=again, after=after)
