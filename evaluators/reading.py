"""Spans and log records into runs. The one place that decides what a run is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from redfirst.evaluators import semconv
from redfirst.evaluators.assembly import assemble
from redfirst.evaluators.canonical import canonical_text, digest
from redfirst.evaluators.dialects.facts import Kind
from redfirst.evaluators.dialects.messages import last_text
from redfirst.evaluators.dialects.registry import facts_of
from redfirst.evaluators.errors import UnreadableInput
from redfirst.evaluators.span import LogRecord, Span
from redfirst.evaluators.streaming import with_late_answers
from redfirst.evaluators.structure import Key, Node, Tree, model_nodes
from redfirst.evaluators.trajectory import Message, Tokens, Trajectory

_RUN_KINDS = frozenset({Kind.AGENT, Kind.MODEL, Kind.TOOL})


@dataclass(frozen=True, slots=True)
class Reading:
    """The runs in a set of spans, and how many traces were none."""

    runs: tuple[Trajectory, ...]
    not_a_run: int = 0
    meetings: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By trace id, of a trace that may be part of a larger run, what it meets the others by: traces that have none in
    common, directly or over others, are never one run, however many of them are read together."""


def read_runs(spans: Iterable[Span], logs: Iterable[LogRecord] = ()) -> list[Trajectory]:
    """The runs, by earliest span start. Any order and any split of the spans gives the same."""
    return list(read(spans, logs).runs)


def read_trajectory(spans: Iterable[Span], logs: Iterable[LogRecord] = ()) -> Trajectory:
    """The one run in these spans.

    Raises:
        UnreadableInput: there is none, or there are several.
    """
    found = read(spans, logs)
    if len(found.runs) != 1:
        raise UnreadableInput(
            f"Expected the spans of one run, found {len(found.runs)} runs and {found.not_a_run} traces that are none."
        )
    return found.runs[0]


def read(spans: Iterable[Span], logs: Iterable[LogRecord] = ()) -> Reading:
    """The runs and the number of traces without an agent, a model or a tool call."""
    records = _records(logs)
    traces: dict[str, list[Node]] = {}
    for span in _distinct(spans):
        node = Node(span, facts_of(span, records.get((span.trace_id, span.span_id), ())))
        traces.setdefault(span.trace_id, []).append(node)
    meetings = {trace: {key} for trace, nodes in traces.items() if (key := _answer_key(nodes)) is not None}
    traces = with_late_answers(traces)
    groups: list[list[Node]] = []
    single: dict[tuple[str, str], list[list[Node]]] = {}
    executions: dict[tuple[str, str], list[Node]] = {}
    not_a_run = 0
    for nodes in traces.values():
        if not any(node.facts.kind in _RUN_KINDS for node in nodes):
            not_a_run += 1
        elif (conversation := _lone_call_of(nodes)) is not None:
            single.setdefault(conversation, []).append(nodes)
            for node in nodes:
                meetings.setdefault(node.span.trace_id, set()).add(
                    digest(["conversation", *conversation])[:32]
                )
        elif (execution := _execution_of(nodes)) is not None:
            executions.setdefault(execution, []).extend(nodes)
            for node in nodes:
                meetings.setdefault(node.span.trace_id, set()).add(digest(["execution", *execution])[:32])
        else:
            groups.append(nodes)
    runs = [
        assemble(
            nodes,
            run_id=nodes[0].span.trace_id,
            trace_ids=tuple(dict.fromkeys(node.span.trace_id for node in nodes)),
        )
        for nodes in groups
    ]
    for execution, nodes in executions.items():
        trace_ids = tuple(dict.fromkeys(node.span.trace_id for node in nodes))
        several = digest(["execution", *execution])[:32]
        run_id = trace_ids[0] if len(trace_ids) == 1 else several
        runs.append(assemble(nodes, run_id=run_id, trace_ids=trace_ids))
    for conversation, parts in single.items():
        runs.extend(_conversation(conversation, parts))
    return Reading(
        tuple(sorted(runs, key=lambda run: (run.start_ns, run.run_id))),
        not_a_run,
        {trace: frozenset(keys) for trace, keys in meetings.items()},
    )


def _execution_of(nodes: Sequence[Node]) -> tuple[str, str] | None:
    """The execution that a trace names as the one it is of: an agent that paused goes on in another trace."""
    for node in nodes:
        named = node.span.attributes.get(semconv.EXECUTION_ID)
        if isinstance(named, str) and named:
            return str(node.span.resource.get("service.name", "")), named
    return None


def _answer_key(nodes: Sequence[Node]) -> str | None:
    """What a lone streamed request and its lone answer have in common; None for any other trace."""
    facts, span = nodes[0].facts, nodes[0].span
    asks = facts.kind is Kind.MODEL and not facts.failed and facts.output is None and facts.tokens == Tokens()
    answers = facts.late and span.parent_id is None
    if len(nodes) > 1 or facts.input is None or not (answers or asks):
        return None
    said = canonical_text([[message.role, message.content] for message in facts.input])
    return digest(["answer", span.scope, span.resource.get("service.name"), said])[:32]


def _distinct(spans: Iterable[Span]) -> list[Span]:
    """Each span once, in order of start; the evaluator's own spans left out."""
    found: dict[Key, Span] = {}
    for span in spans:
        if span.scope == semconv.VERDICT_SCOPE:
            continue
        key = (span.trace_id, span.span_id)
        other = found.get(key)
        # A span sent twice with different content: the one that ended later, so that order decides nothing.
        if other is None or (span.end_ns, len(span.attributes), repr(span)) > (
            other.end_ns,
            len(other.attributes),
            repr(other),
        ):
            found[key] = span
    return sorted(found.values(), key=lambda span: (span.start_ns, span.span_id, span.trace_id))


def _records(logs: Iterable[LogRecord]) -> dict[Key, list[LogRecord]]:
    """Log records by span, each once, in order of time."""
    found: dict[Key, dict[tuple[object, ...], LogRecord]] = {}
    for record in logs:
        if record.trace_id and record.span_id:
            said = canonical_text([record.body, record.attributes])
            key = (record.time_ns, record.event_name, said)
            found.setdefault((record.trace_id, record.span_id), {})[key] = record
    return {span: [records[key] for key in sorted(records, key=_in_time)] for span, records in found.items()}


def _in_time(key: tuple[object, ...]) -> tuple[int, str, str]:
    """Time first; equal times by name and content."""
    time, name, said = key
    return (time if isinstance(time, int) else 0, str(name), str(said))


def _lone_call_of(nodes: Sequence[Node]) -> tuple[str, str] | None:
    """The conversation of a trace that holds nothing but one model call of it."""
    if any(node.facts.kind in (Kind.AGENT, Kind.TOOL, Kind.HANDOFF) for node in nodes):
        return None
    models = model_nodes(Tree.of(nodes))
    session = next((node.facts.session for node in nodes if node.facts.session), None)
    if len(models) != 1 or session is None:
        return None
    return str(nodes[0].span.resource.get("service.name", "")), session


def _conversation(conversation: tuple[str, str], parts: Iterable[list[Node]]) -> Iterable[Trajectory]:
    """The runs of a conversation: a new one when a user message follows an assistant's text."""
    ordered = sorted(parts, key=lambda nodes: (nodes[0].span.start_ns, nodes[0].span.span_id))
    run: list[list[Node]] = []
    for nodes in ordered:
        if run and _begins_anew(run[-1], nodes):
            yield _joined(conversation, run)
            run = []
        run.append(nodes)
    if run:
        yield _joined(conversation, run)


def _begins_anew(before: Sequence[Node], after: Sequence[Node]) -> bool:
    earlier, later = model_nodes(Tree.of(before))[0].facts, model_nodes(Tree.of(after))[0].facts
    said, asked = earlier.output, later.input
    if said is not None and said.tool_calls:
        wanted = {call.call_id for call in said.tool_calls if call.call_id}
        return bool(wanted) and asked is not None and not wanted & _call_ids(asked)
    if asked is None:
        return said is not None and bool(said.content)
    if asked[-1].role != "user":
        return False
    repeated = earlier.failed and last_text(earlier.input, "user") == asked[-1].content
    return not repeated


def _call_ids(messages: Sequence[Message]) -> set[str | None]:
    """The ids of calls these messages ask for or answer."""
    return {call.call_id for m in messages for call in m.tool_calls} | {m.tool_call_id for m in messages}


def _joined(conversation: tuple[str, str], parts: Sequence[Sequence[Node]]) -> Trajectory:
    nodes = [node for part in parts for node in part]
    trace_ids = tuple(dict.fromkeys(node.span.trace_id for node in nodes))
    if len(trace_ids) == 1:
        return assemble(nodes, run_id=trace_ids[0], trace_ids=trace_ids)
    first = model_nodes(Tree.of(parts[0]))[0].facts.input or ()
    asked = [message.content for message in first if message.role == "user"]
    run_id = digest([*conversation, asked[0] if asked else None, len(asked)])[:32]
    return assemble(nodes, run_id=run_id, trace_ids=trace_ids)
