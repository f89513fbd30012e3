"""What happens in the service, as lines on standard error: for people, or one JSON object a line."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

import orjson

LOGGER = "redfirst"
_FIELDS = "fields"


def log_to(stream: TextIO | None = None, *, form: Literal["text", "json"]) -> None:
    """Write what is logged to a stream (standard error). In text, only what somebody should look at."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_JsonLines() if form == "json" else _TextLines())
    logger = logging.getLogger(LOGGER)
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(logging.INFO if form == "json" else logging.WARNING)


def fields(**named: Any) -> Mapping[str, Any]:
    """Named values of a line, as the ``extra`` of a logging call."""
    return {_FIELDS: named}


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, _FIELDS, {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


class _TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        named = ", ".join(f"{name} {value}" for name, value in getattr(record, _FIELDS, {}).items())
        line = f"{record.levelname.lower()}: {record.getMessage()}{f' ({named})' if named else ''}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line
