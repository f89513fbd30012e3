"""The destinations of the configuration, with what they take from the environment."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from ssl import SSLError, create_default_context
from urllib.parse import urlsplit

from redfirst.collector_processor.journal.format import Record, Signal
from redfirst.collector_processor.posting.poster import Tls, checked_headers, from_environment
from redfirst.collector_processor.settings import ForwardSettings
from redfirst.evaluators.errors import ConfigurationError

CURSOR = "forward:"
"""Every forwarder's cursor is called this and the destination's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where requests go, with everything read from the environment."""

    name: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    compression: str = "none"
    tls: Tls | None = None
    signals: Collection[Signal] = ("traces", "logs")
    tenants: Collection[str] | None = None
    """Whose requests it gets; None for everyone's."""
    timeout: float = 10.0
    backlog: bool = False
    hold: float = 3 * 86_400.0
    """Seconds that what it does not take is kept for it."""

    @property
    def cursor(self) -> str:
        """Name of its cursor in the store."""
        return CURSOR + self.name

    def takes(self, record: Record) -> bool:
        """Whether it is sent such a request."""
        return record.signal in self.signals and (self.tenants is None or record.tenant in self.tenants)


def destinations(
    settings: Iterable[ForwardSettings], environment: Mapping[str, str] = os.environ
) -> tuple[Destination, ...]:
    """The configured destinations.

    Raises:
        ConfigurationError: two have one name, a variable is not set, or a certificate cannot be used.
    """
    found: dict[str, Destination] = {}
    for entry in settings:
        where = f"serve: forward: {entry.name}"
        if entry.name in found:
            raise ConfigurationError(f"{where}: there are two of this name; each needs its own.")
        url = from_environment(entry.endpoint, environment, where).rstrip("/")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ConfigurationError(f"{where}: the endpoint is no http or https URL without credentials.")
        if parts.query or parts.fragment or parts.path.endswith(("/v1/traces", "/v1/logs")):
            raise ConfigurationError(
                f"{where}: give the base URL as endpoint; /v1/traces and /v1/logs are added to it."
            )
        found[entry.name] = Destination(
            name=entry.name,
            url=url,
            headers=checked_headers(entry.headers, environment, where),
            compression=entry.compression,
            tls=_tls(entry, where),
            signals=frozenset(entry.signals),
            tenants=entry.tenants,
            timeout=entry.timeout,
            backlog=entry.backlog,
            hold=entry.hold_days * 86_400,
        )
    return tuple(found.values())


def _tls(entry: ForwardSettings, where: str) -> Tls | None:
    files = {
        name: path for name in ("ca", "certificate", "key") if (path := getattr(entry, name)) is not None
    }
    if not files:
        return None
    for name, path in files.items():
        if not os.access(path, os.R_OK):
            raise ConfigurationError(f"{where}: {name}: the file {path} cannot be read.")
    if "key" in files and "certificate" not in files:
        raise ConfigurationError(f"{where}: key: a key needs its certificate.")
    try:
        context = create_default_context(cafile=files.get("ca"))
        if "certificate" in files:
            context.load_cert_chain(files["certificate"], files.get("key"))
    except (SSLError, OSError) as problem:
        raise ConfigurationError(
            f"{where}: the certificates cannot be used: {problem}; give files in PEM, the key beside its certificate."
        ) from problem
    return Tls(**files)
