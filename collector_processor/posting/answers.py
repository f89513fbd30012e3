"""What a destination's answer means for the request it was given: delivered, again later, or refused for good."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from redfirst.collector_processor.journal.format import Signal
from redfirst.collector_processor.posting.poster import Answer
from redfirst.collector_processor.terminal import clean

RETRYABLE = frozenset({429, 502, 503, 504})
DIVISIBLE = frozenset({400, 413, 422})
"""Refusals of what a request holds, where a part of it may be taken."""
SOME_TRIES = 5
"""Tries before another 5xx is taken for final: the specification says it is, many servers mean a passing fault."""

FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0
LONGEST_ASKED = 3600.0
"""A ``Retry-After`` beyond this is cut to it: no answer may stop a destination for good."""
_EXCERPT = 300


class Fate(StrEnum):
    """What became of one request."""

    DELIVERED = "delivered"
    AGAIN = "again"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """An answer, understood."""

    fate: Fate
    reason: str
    """A short name for counters: ``ok``, ``partial``, ``timeout``, ``status_429``, ``redirect`` …"""
    tries: int | None = None
    """How often it is worth trying again; None without end."""
    after: float | None = None
    """Seconds that the destination asked to wait."""
    rejected: int = 0
    """Records that it did not take of a request it accepted."""
    divisible: bool = False
    """Whether a part of the request may be taken."""
    said: str = ""
    """The beginning of what it said, without control characters and configured secrets."""


def unreachable(reason: str) -> Reading:
    """No answer came."""
    return Reading(fate=Fate.AGAIN, reason=reason)


def understood(answer: Answer, signal: Signal, now: float, *, secrets: Collection[str] = ()) -> Reading:
    """What an answer means at this time (Unix seconds)."""
    status = answer.status
    if 200 <= status < 300:
        return _success(answer, signal, secrets)
    reason = "redirect" if 300 <= status < 400 else f"status_{status}"
    said = excerpt(answer.body, secrets)
    if status in RETRYABLE or status >= 500:
        tries = None if status in RETRYABLE else SOME_TRIES
        after = asked_to_wait(answer.headers.get("retry-after"), now)
        return Reading(fate=Fate.AGAIN, reason=reason, tries=tries, after=after, said=said)
    return Reading(fate=Fate.REFUSED, reason=reason, divisible=status in DIVISIBLE, said=said)


def _success(answer: Answer, signal: Signal, secrets: Collection[str]) -> Reading:
    kind: Any = ExportTraceServiceResponse if signal == "traces" else ExportLogsServiceResponse
    try:
        partial = kind.FromString(answer.body).partial_success
    except DecodeError:
        # accepted by its status; a server that answers JSON or text to protobuf says nothing we could count
        return Reading(fate=Fate.DELIVERED, reason="answer_unreadable")
    rejected = partial.rejected_spans if signal == "traces" else partial.rejected_log_records
    said = excerpt(partial.error_message.encode(), secrets)
    return Reading(
        fate=Fate.DELIVERED, reason="partial" if rejected else "ok", rejected=max(0, rejected), said=said
    )


def asked_to_wait(value: str | None, now: float) -> float | None:
    """Seconds of a ``Retry-After`` header, given as seconds or as a date; None when it says nothing."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), LONGEST_ASKED)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now
    return max(0.0, min(seconds, LONGEST_ASKED))


def wait_before(attempt: int, after: float | None, *, chance: float | None = None) -> float:
    """Seconds before the next try: twice as long each time, scattered over the upper half, never less than asked.

    ``attempt`` counts from 1; ``chance`` (0 to 1) stands for the random number.
    """
    longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(attempt - 1, 16))
    share = random.random() if chance is None else chance  # noqa: S311 - scatters senders, keeps no secret
    own = longest * (0.5 + share / 2)
    return own if after is None else max(own, after)


def excerpt(body: bytes, secrets: Collection[str]) -> str:
    """The beginning of a body as one line, without the values of configured headers."""
    text = body[: 4 * _EXCERPT].decode("utf-8", "replace")
    for secret in sorted(secrets, key=len, reverse=True):
        for part in {secret, secret.rpartition(" ")[2]}:
            if part:
                text = text.replace(part, "…")
    return " ".join(clean(text).split())[:_EXCERPT]
