"""Which facts are read from other projects' span fixtures: ``python benchmarks/fixture_facts.py FOLDER``.

FOLDER holds ``<source>.jsonl.gz``, one fixture a line: OTLP/JSON, Logfire's exported span dicts, JavaScript spans, or
Jaeger query JSON. Prints a table of source by fact, in fixtures; ``--json FILE`` writes every fixture's facts, and
``--unread`` lists the fixtures whose payload speaks of a fact that was not read, for a person to look at.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from redfirst.evaluators.dialects.facts import Kind, SpanFacts
from redfirst.evaluators.dialects.registry import facts_of
from redfirst.evaluators.errors import UnreadableInput
from redfirst.evaluators.otlp import decode
from redfirst.evaluators.reading import read
from redfirst.evaluators.span import LogRecord, Span, SpanEvent, StatusCode
from redfirst.evaluators.trajectory import MISSING

SPEAKS = {
    "model": r"model[_.]?name|\bmodel\b|request\.model|response\.model|llm\.model",
    "tokens": r"(prompt|input|completion|output)_?[tT]okens|token_count|usage",
    "input": r"input_messages|input\.messages|gen_ai\.prompt|ai\.prompt|\"messages\"|input\.value|observation\.input",
    "output": r"output_messages|output\.messages|gen_ai\.completion|response\.text|output\.value|observation\.output",
    "tool": r"tool\.name|tool_name|toolCall|tool\.call|execute_tool",
    "arguments": r"tool\.call\.arguments|toolCall\.(args|input)|tool_arguments|tool_call_args",
    "result": r"tool\.call\.result|toolCall\.(result|output)|tool_response",
    "agent": r"agent\.name|agent_name|invoke_agent",
    "session": r"session[._]?[iI]d|conversation\.id|thread_id",
    "user": r"user[._]?[iI]d\b",
    "error": r"\"exception\"|error\.type|STATUS_CODE_ERROR|\"ERROR\"",
}


def main() -> None:
    """Read them all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--unread", action="store_true")
    options = parser.parse_args()
    found = [one for path in sorted(options.folder.glob("*.jsonl.gz")) for one in fixtures(path)]
    print(table(found))
    if options.unread:
        for one in found:
            if one["unread"]:
                print(f"{one['source']:14} {one['fixture']}: {', '.join(one['unread'])}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


def fixtures(path: Path) -> Iterator[dict[str, Any]]:
    """What each fixture of a source gave."""
    with gzip.open(path, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            try:
                spans, logs = spans_of(row)
                refused = ""
            except UnreadableInput as problem:
                spans, logs, refused = [], [], str(problem)
            facts = facts_in(spans, logs)
            text = json.dumps(row.get("otlp_json") or row["payload_raw"])
            yield {
                "source": path.name.partition(".")[0],
                "fixture": row["fixture_id"],
                "refused": refused,
                "spans": len(spans),
                "runs": len(read(spans, logs).runs),
                "dialects": sorted({facts_of(span, ()).dialect for span in spans} - {""}),
                "facts": sorted(facts),
                "unread": sorted(
                    n for n, p in SPEAKS.items() if spans and n not in facts and re.search(p, text)
                ),
            }


def facts_in(spans: list[Span], logs: list[LogRecord]) -> set[str]:
    """The names of the facts that some span of a fixture gives."""
    found: set[str] = set()
    for span in spans:
        mine = [record for record in logs if record.span_id == span.span_id]
        found |= set(named(facts_of(span, mine)))
    return found


def named(facts: SpanFacts) -> Iterator[str]:
    """The facts of one span by the names of the table."""
    tool = facts.kind is Kind.TOOL
    told = {
        "model": facts.model,
        "tokens": facts.tokens.input is not None or facts.tokens.output is not None,
        "input": facts.input or facts.request,
        "output": facts.output is not None or facts.answer,
        "finish": facts.finish,
        "tool": tool and facts.name,
        "arguments": tool and (facts.arguments is not None or facts.bare_arguments is not None),
        "result": tool and facts.result is not MISSING,
        "agent": facts.agent or (facts.kind is Kind.AGENT and facts.name),
        "session": facts.session,
        "user": facts.user,
        "error": facts.failed,
    }
    return (name for name, value in told.items() if value)


def spans_of(row: Mapping[str, Any]) -> tuple[list[Span], list[LogRecord]]:
    """The spans and log records of a fixture, whatever it was written in."""
    body = row.get("otlp_json") or row["payload_raw"]
    if isinstance(body, list) and body and "scopeSpans" in body[0]:
        body = {"resourceSpans": body}
    if isinstance(body, list):
        return [_logfire(one, place) for place, one in enumerate(body) if isinstance(one, dict)], []
    if "resourceSpans" in body or "resourceLogs" in body:
        got = decode(json.dumps(body).encode())
        return list(got.spans), list(got.logs)
    if isinstance(body.get("data"), list):
        return [_jaeger(span, one["processes"]) for one in body["data"] for span in one["spans"]], []
    if "attributes" in body:
        return [_logfire(body, 0)], []
    return ([_made(0, "", body)] if any("." in key for key in body) else []), []


def _made(place: int, name: str, attributes: Mapping[str, Any], **more: Any) -> Span:
    made = {"trace_id": "1" * 32, "span_id": f"{place + 1:016x}", "start_ns": 1, "end_ns": 2, **more}
    return Span(name=name, attributes=dict(attributes), **made)


def _logfire(span: Mapping[str, Any], place: int) -> Span:
    events = [
        SpanEvent(name=str(event.get("name")), time_ns=1, attributes=event.get("attributes") or {})
        for event in span.get("events") or []
        if isinstance(event, dict)
    ]
    scope = span.get("instrumentation_scope") or span.get("instrumentationScope") or {}
    failed = span.get("status") == {"code": 2} or any(event.name == "exception" for event in events)
    return _made(place, str(span.get("name", "")), span.get("attributes") or {}, events=tuple(events), **_place(span),
                 scope=scope.get("name", "") if isinstance(scope, dict) else str(scope),
                 status=StatusCode.ERROR if failed else StatusCode.UNSET)  # fmt: skip


def _place(span: Mapping[str, Any]) -> dict[str, Any]:
    """Ids and times, where a fixture has them as numbers."""
    own, parent = span.get("context"), span.get("parent")
    begin, end = span.get("start_time"), span.get("end_time")
    if not (isinstance(own, dict) and isinstance(begin, int) and isinstance(end, int)):
        return {}
    above = f"{parent['span_id']:016x}" if isinstance(parent, dict) else None
    found = {"trace_id": f"{own['trace_id']:032x}", "span_id": f"{own['span_id']:016x}"}
    return {**found, "parent_id": above, "start_ns": begin, "end_ns": end}


def _jaeger(span: Mapping[str, Any], processes: Mapping[str, Any]) -> Span:
    tags = {tag["key"]: tag["value"] for tag in span.get("tags", [])}
    parent = next((r["spanID"] for r in span.get("references", []) if r.get("refType") == "CHILD_OF"), None)
    begin = int(span["startTime"]) * 1000
    return Span(
        trace_id=span["traceID"], span_id=span["spanID"], parent_id=parent, name=span["operationName"],
        scope=str(tags.get("otel.scope.name", "")), attributes=tags, start_ns=begin,
        end_ns=begin + int(span["duration"]) * 1000,
        status=StatusCode.ERROR if tags.get("error") is True else StatusCode.UNSET,
        resource={"service.name": processes[span["processID"]]["serviceName"]},
    )  # fmt: skip


def table(found: list[dict[str, Any]]) -> str:
    """Fixtures by source and fact."""
    names = ["refused", *SPEAKS, "finish"]
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for one in found:
        counts[one["source"]].update(["fixtures", *one["facts"], *(["refused"] if one["refused"] else [])])
    lines = [" ".join([f"{'source':14}", f"{'all':>4}", *(f"{name:>9}" for name in names)])]
    for source, count in sorted(counts.items()):
        numbers = (f"{count[name]:>9}" for name in names)
        lines.append(" ".join([f"{source:14}", f"{count['fixtures']:>4}", *numbers]))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
