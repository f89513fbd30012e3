"""Model Context Protocol: ``mcp.method.name``. A ``tools/call`` is a tool call, seen from either end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from redfirst.evaluators import semconv
from redfirst.evaluators.dialects.facts import Kind, SpanFacts
from redfirst.evaluators.dialects.genai import read_genai
from redfirst.evaluators.dialects.values import text
from redfirst.evaluators.span import LogRecord, Span

_CALL = "tools/call"


class MCP:
    """Spans with ``mcp.method.name``."""

    name = "mcp"

    def claims(self, span: Span) -> bool:
        return "mcp.method.name" in span.attributes

    def read(self, span: Span, logs: Sequence[LogRecord]) -> SpanFacts:
        called = span.attributes["mcp.method.name"] == _CALL
        facts = read_genai(span, logs, dialect=self.name, kind=Kind.TOOL if called else Kind.STRUCTURE)
        if not called:
            return facts
        named = text(span.attributes.get(semconv.TOOL_NAME)) or span.name.rpartition(f"{_CALL} ")[2].strip()
        return replace(facts, name=named or None)
