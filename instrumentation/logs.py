"""Trace and span ids on log records, under the names that OpenTelemetry gives them outside its own data model."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

from opentelemetry import trace


def _ids() -> dict[str, str]:
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return {"trace_id": "", "span_id": "", "trace_flags": ""}
    return {
        "trace_id": trace.format_trace_id(context.trace_id),
        "span_id": trace.format_span_id(context.span_id),
        "trace_flags": f"{context.trace_flags:02x}",
    }


class TraceIds(logging.Filter):
    """Puts ``trace_id``, ``span_id`` and ``trace_flags`` on each record; empty texts outside of a trace.

    Add it to a handler: a filter of a logger does not see the records of the loggers below it.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record through."""
        for name, value in _ids().items():
            setattr(record, name, value)
        return True


def trace_ids(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor: the same three keys in the event, where it happens in a trace."""
    event.update({name: value for name, value in _ids().items() if value})
    return event
