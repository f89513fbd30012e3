"""A streamed call whose request and answer are two spans: one call.

The request's span ends when the stream begins. What the stream gave is written when it is over, beside that span; in a
trace of its own where nothing was around the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from redfirst.evaluators.dialects.facts import Kind, SpanFacts
from redfirst.evaluators.structure import Node
from redfirst.evaluators.trajectory import Tokens


def with_late_answers(traces: Mapping[str, list[Node]]) -> dict[str, list[Node]]:
    """The traces with each late answer in its request. A late answer without one stays a call of its own."""
    late = [node for nodes in traces.values() for node in nodes if node.facts.late]
    if not late:
        return dict(traces)
    found = {trace: list(nodes) for trace, nodes in traces.items()}
    for answer in sorted(late, key=lambda node: (node.span.start_ns, node.span.span_id, node.span.trace_id)):
        request = _request_of(answer, found)
        if request is None:
            continue
        trace, told = request.span.trace_id, Node(answer.span, SpanFacts(dialect=answer.facts.dialect))
        found[trace] = [_answered(node, answer) if node is request else node for node in found[trace]]
        if answer.span.trace_id == trace:
            found[trace] = [told if node is answer else node for node in found[trace]]
        else:
            found[trace].append(told)
            found[answer.span.trace_id] = [n for n in found[answer.span.trace_id] if n is not answer]
    return {trace: nodes for trace, nodes in found.items() if nodes}


def _request_of(answer: Node, traces: Mapping[str, list[Node]]) -> Node | None:
    """The last unanswered request before it, of one parent; where it stands alone, one that says the same."""
    mine = traces[answer.span.trace_id]
    beside = [node for node in mine if _asks(node, answer) and node.span.parent_id == answer.span.parent_id]
    if not beside and len(mine) == 1 and answer.span.parent_id is None:
        alone = [nodes[0] for nodes in traces.values() if len(nodes) == 1]
        beside = [node for node in alone if _asks(node, answer) and _says_the_same(node, answer)]
    same = [node for node in beside if _says_the_same(node, answer)]
    return max(same or beside, key=_began, default=None)


def _began(node: Node) -> tuple[int, str, str]:
    return node.span.start_ns, node.span.span_id, node.span.trace_id


def _asks(node: Node, answer: Node) -> bool:
    """Whether the span may be the request of this answer: nothing it says speaks against it."""
    asked, told = node.facts, answer.facts
    return (
        asked.kind is Kind.MODEL
        and not asked.late
        and not asked.failed
        and asked.output is None
        and asked.tokens == Tokens()
        and node.span.scope == answer.span.scope
        and node.span.end_ns <= answer.span.start_ns
        and _agree(asked.model, told.model)
        and _agree(asked.input, told.input)
    )


def _agree(one: object, other: object) -> bool:
    return one is None or other is None or one == other


def _says_the_same(node: Node, answer: Node) -> bool:
    return (
        node.facts.input is not None
        and node.facts.input == answer.facts.input
        and node.span.resource.get("service.name") == answer.span.resource.get("service.name")
    )


def _answered(request: Node, answer: Node) -> Node:
    """The call: it began with the request and ended with the answer, which carries its cost too."""
    asked, told = request.facts, answer.facts
    span = replace(
        request.span,
        end_ns=max(request.span.end_ns, answer.span.end_ns),
        attributes={**answer.span.attributes, **request.span.attributes},
    )
    facts = replace(
        asked,
        output=told.output,
        raw_output=told.raw_output,
        tokens=told.tokens,
        finish=told.finish or asked.finish,
        response_id=told.response_id or asked.response_id,
        model=asked.model or told.model,
        input=asked.input if asked.input is not None else told.input,
        tools=asked.tools if asked.tools is not None else told.tools,
        failed=told.failed,
        error=told.error,
        error_type=told.error_type,
        gaps=(*asked.gaps, *told.gaps),
    )
    return Node(span, facts)
