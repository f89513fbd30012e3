"""Which dialect a span is written in. Decided per span: one trace may mix several."""

from __future__ import annotations

from collections.abc import Sequence

from redfirst.evaluators.dialects.facts import Dialect, SpanFacts
from redfirst.evaluators.dialects.genai import GenAI
from redfirst.evaluators.dialects.google_adk import GoogleADK
from redfirst.evaluators.dialects.langfuse import Langfuse
from redfirst.evaluators.dialects.logfire import Logfire
from redfirst.evaluators.dialects.mcp import MCP
from redfirst.evaluators.dialects.mlflow import MLflow
from redfirst.evaluators.dialects.openinference import OpenInference, OpenInferenceByKeys
from redfirst.evaluators.dialects.own import Own
from redfirst.evaluators.dialects.pydantic_ai import PydanticAI
from redfirst.evaluators.dialects.traceloop import Traceloop
from redfirst.evaluators.dialects.vercel import Vercel
from redfirst.evaluators.span import LogRecord, Span

DIALECTS: tuple[Dialect, ...] = (
    Own(),
    Langfuse(),
    MLflow(),
    OpenInference(),
    MCP(),
    GoogleADK(),
    Vercel(),
    PydanticAI(),
    Logfire(),
    Traceloop(),
    GenAI(),
    OpenInferenceByKeys(),
)
"""From the most particular to the most general; the first that claims a span reads it."""

PLAIN = SpanFacts(dialect="")
"""A span of no dialect: it only holds others together."""


def facts_of(span: Span, logs: Sequence[LogRecord]) -> SpanFacts:
    """The facts of a span and of the log records that belong to it."""
    for dialect in DIALECTS:
        if dialect.claims(span):
            return dialect.read(span, logs)
    return PLAIN
