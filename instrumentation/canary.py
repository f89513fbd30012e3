"""A redaction that is tried out before it is relied on: canaries go in, and none may be in the bytes that come out."""

from __future__ import annotations

from typing import Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from redfirst.evaluators.errors import ConfigurationError
from redfirst.instrumentation.redacting import redacted
from redfirst.instrumentation.redaction import Redactor

_CANARY = "canary-9f1c7e"


class _Keep(SpanProcessor):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


def try_out(redactor: Redactor) -> list[str]:
    """Plant a canary for every key, path and pattern on every surface of a span.

    Returns:
        The patterns that have no example, and so could not be tried.

    Raises:
        ConfigurationError: a canary came through.
    """
    redaction = redactor.redaction
    for key in redaction.keys:
        value = f"{_CANARY}-{len(key)}"
        _expect_gone(redactor, f"key {key}", value, {key: value}, {"list": [{key: value}]})
    for path in redaction.paths:
        value = f"{_CANARY}-path"
        _expect_gone(redactor, f"path {'.'.join(path)}", value, _nested(path, value))
    for pattern in redaction.patterns:
        if pattern.example is not None:
            _expect_gone(
                redactor,
                f"pattern {pattern.name}",
                pattern.example,
                pattern.example,
                f"a {pattern.example} b",
            )
    return [pattern.name for pattern in redaction.patterns if pattern.example is None]


def _nested(path: tuple[str, ...], value: str) -> Any:
    made: Any = value
    for step in reversed(path):
        if step.isdecimal():
            made = [None] * int(step) + [made] if int(step) < 1000 else {step: made}
        else:
            made = {("any" if step == "*" else step): made}
    return made


def _expect_gone(redactor: Redactor, rule: str, canary: str, *values: Any) -> None:
    keep = _Keep()
    provider = TracerProvider(sampler=ALWAYS_ON, shutdown_on_exit=False)
    provider.add_span_processor(keep)
    for value in values:
        text = redactor.json(value)[0]
        raw = value if isinstance(value, str) else text
        span = provider.get_tracer("redfirst.canary").start_span(
            f"span {raw}", attributes={"input.value": text, "raw": raw}
        )
        span.add_event(
            "exception", {"exception.message": f"it was {canary}", "exception.stacktrace": f"it was {canary}"}
        )
        span.add_link(span.get_span_context(), {"raw": raw})
        span.set_status(_error(f"failed with {canary}"))
        span.end()
    if canary.encode() in encode_spans(redacted(redactor, keep.spans)).SerializeToString():
        raise ConfigurationError(
            f"The redaction does not hold: a value planted for {rule} was in the exported bytes. "
            "Nothing was configured; check the expression and its literal."
        )


def _error(text: str) -> Any:
    from opentelemetry.trace import Status, StatusCode

    return Status(StatusCode.ERROR, text)
