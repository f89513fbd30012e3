"""Instrumentors that others wrote for libraries, switched on together: OpenInference's, by their entry points."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from redfirst.evaluators.errors import ConfigurationError

_log = logging.getLogger("redfirst.instrumentation")
GROUP = "openinference_instrumentor"


def switch_on(wanted: str | Iterable[str], provider: object) -> list[str]:
    """Switch on all that are installed (``auto``), or these by name; the names of those that are on now.

    One that its library is missing for, or that is on already, is left alone.

    Raises:
        ConfigurationError: one that was named is not installed.
    """
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    names = sorted(found) if wanted == "auto" else [wanted] if isinstance(wanted, str) else list(wanted)
    unknown = [name for name in names if name not in found]
    if unknown:
        raise ConfigurationError(
            f"instrument={unknown[0]!r}: no such OpenInference instrumentor is installed; "
            f"there are {', '.join(sorted(found)) or 'none'}. Install openinference-instrumentation-{unknown[0]}."
        )
    return [name for name in names if _on(found[name], provider)]


def _on(entry: EntryPoint, provider: Any) -> bool:
    try:
        instrumentor = entry.load()()
        if not instrumentor.is_instrumented_by_opentelemetry:
            instrumentor.instrument(tracer_provider=provider)
        return bool(instrumentor.is_instrumented_by_opentelemetry)
    except Exception as problem:  # noqa: BLE001 - somebody else's code, at the start of the host
        _log.warning("The instrumentor %s could not be switched on: %s", entry.name, problem)
        return False
