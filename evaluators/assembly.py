"""A run's spans, read by their dialects, into one trajectory. Knows no dialect."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import fields

from redfirst.evaluators.calls import calls_of
from redfirst.evaluators.continuation import completed
from redfirst.evaluators.dialects.costs import cost_of
from redfirst.evaluators.dialects.facts import Kind
from redfirst.evaluators.dialects.messages import last_text
from redfirst.evaluators.ending import Course, answer_of, root_agent, termination_of
from redfirst.evaluators.handoffs import Names, agent_name, answer_in, gives_answer, handoffs_of
from redfirst.evaluators.joining import Asked, Joined, agent_key, join
from redfirst.evaluators.later import as_held
from redfirst.evaluators.structure import Key, Node, Tree, model_nodes, tool_nodes
from redfirst.evaluators.trajectory import (
    Completeness,
    Coverage,
    Gap,
    ModelCall,
    Source,
    Stop,
    Tokens,
    Trajectory,
)

OWN = "redfirst"


def assemble(nodes: Iterable[Node], *, run_id: str, trace_ids: tuple[str, ...]) -> Trajectory:
    """The trajectory of one run."""
    tree = Tree.of(nodes)
    names = Names.of(tree)
    model_spans = completed(tree, model_nodes(tree))
    models = tuple(_model_call(tree, node, index) for index, node in enumerate(model_spans))
    asked = [
        Asked(turn, order, call, node)
        for turn, node in enumerate(model_spans)
        for order, call in enumerate(node.facts.output.tool_calls if node.facts.output else ())
    ]
    executed = tool_nodes(tree)
    root = root_agent(tree)
    told = root is not None and root.facts.says_why
    answers = [] if told else _answers(asked, models)
    given = [] if told else _given_answers(tree, executed, model_spans)
    recorded = bool(models) and all(call.output is not None or call.failed for call in models)
    over = [item for item in asked if names.is_handoff(item.call.name, item.call.arguments)]
    joined = _without(join(tree, model_spans, asked, executed), answers, given)
    passed, joined = _apart(joined, names, over)
    handoffs = handoffs_of(tree, names, passed, over, tree.of_kind(Kind.HANDOFF))
    completeness = _completeness(tree)
    whole = completeness is Completeness.COMPLETE
    calls = calls_of(tree, joined, models, recorded=recorded, whole=whole)
    outer = tuple(m for m, n in zip(models, model_spans, strict=True) if tree.nearest(n, Kind.TOOL) is None)
    course = Course(
        tree=tree,
        models=models,
        outer=outer,
        handoffs=handoffs,
        handoff_ids=frozenset(item.call.call_id or item.call.name for item in over),
        finished=bool(outer)
        and (
            any(item.turn == outer[-1].index for item in answers)
            or any(node.span.start_ns >= outer[-1].start_ns for node in given)
        ),
        final_answer=next((said for said in _final_texts(answers, given) if said), None),
    )
    end = termination_of(course)
    own = any(node.facts.dialect == OWN for node in tree.nodes.values())
    answer = answer_of(course, end, own=own)
    tokens, token_gaps, token_notes = _tokens(tree, models)
    first = outer[0] if outer else models[0] if models else None
    request = (root.facts.request if root else None) or last_text(
        first.input_messages if first else None, "user"
    )
    all_nodes = list(tree.nodes.values())
    missing = [
        *_missing(models, recorded=recorded, calls=bool(executed), request=request),
        *token_gaps,
        *(
            [Gap(fact="answer", because="no span carries it")]
            if answer is None and end.reason is Stop.COMPLETED
            else []
        ),
        *calls.missing,
        *dict.fromkeys(gap for node in all_nodes for gap in node.facts.gaps),
    ]
    tops = tree.tops()
    return Trajectory(
        run_id=run_id,
        trace_ids=trace_ids,
        root_span_id=(root or tops[0]).span.span_id if root or tops else "",
        dialects=tuple(sorted({n.facts.dialect for n in all_nodes if n.facts.kind is not Kind.STRUCTURE})),
        completeness=completeness,
        agents=_agents(tree),
        agent_version=root.facts.version if root else None,
        models=tuple(dict.fromkeys(call.model for call in models if call.model)),
        session_id=_first(node.facts.session for node in all_nodes),
        user_id=_first(node.facts.user for node in all_nodes),
        request=request,
        history=first.input_messages if first else None,
        answer=answer,
        termination=end,
        tool_calls=calls.calls,
        model_calls=models,
        handoffs=handoffs,
        tokens=tokens,
        cost_usd=_cost(model_spans),
        states=tuple(
            sorted((s for n in all_nodes for s in n.facts.states), key=lambda s: (s.time_ns, s.span_id))
        ),
        events=tuple(
            sorted((e for n in all_nodes for e in n.facts.events), key=lambda e: (e.time_ns, e.span_id))
        ),
        coverage=Coverage(
            missing=tuple(missing),
            reconstructed=(*calls.reconstructed, *token_notes, *_notes([*all_nodes, *model_spans])),
        ),
        start_ns=min((n.span.start_ns for n in all_nodes), default=0),
        end_ns=max((n.span.end_ns for n in all_nodes), default=0),
        span_ids=frozenset(n.span.span_id for n in all_nodes),
        coarse_order=any(call.source is Source.MESSAGE and call.ran for call in calls.calls),
    )


def _cost(model_spans: Sequence[Node]) -> float | None:
    """What all model calls cost; unknown when one of them does not say."""
    costs = [cost_of(node.span.attributes) for node in model_spans]
    known = [cost for cost in costs if cost is not None]
    return math.fsum(known) if known and len(known) == len(costs) else None


def _answers(asked: Sequence[Asked], models: Sequence[ModelCall]) -> list[Asked]:
    """The requests, each in the last turn of its agent, by which a model gives its answer."""
    last = {call.agent: call.index for call in models}.values()
    return [item for item in asked if gives_answer(item.call.name) and item.turn in last]


def _given_answers(tree: Tree, executed: Sequence[Node], models: Sequence[Node]) -> list[Node]:
    """The executions, after the last turn of their agent, of the tool by which a model gives its answer."""
    last: dict[Key | None, int] = {}
    mine = [n for n in executed if gives_answer(n.facts.name, n.span.name) and not n.facts.failed]
    for node in models if mine else ():
        last[agent_key(tree, node)] = max(last.get(agent_key(tree, node), 0), node.span.start_ns)
    return [node for node in mine if node.span.start_ns >= last.get(agent_key(tree, node), 0)]


def _final_texts(answers: Sequence[Asked], given: Sequence[Node]) -> Iterable[str | None]:
    """What was said by them, the last one first."""
    for item in reversed(answers):
        yield answer_in(item.call.arguments)
    for node in reversed(given):
        yield answer_in(node.facts.arguments)


def _without(joined: Joined, answers: Sequence[Asked], given: Sequence[Node]) -> Joined:
    """The calls that are no way of answering. A span that lost its name is what was asked of it."""
    left = {id(item) for item in answers}
    done = {node.key for node in given}
    return Joined(
        tuple(pair for pair in joined.pairs if id(pair[0]) not in left and pair[1].key not in done),
        tuple(item for item in joined.unanswered if id(item) not in left),
        tuple(node for node in joined.unasked if node.key not in done),
    )


def _apart(joined: Joined, names: Names, over: Sequence[Asked]) -> tuple[Joined, Joined]:
    """The hand-offs among the pairs, and everything else. A span that lost its name is what was asked of it."""
    wanted = {id(item) for item in over}
    passing = [(item, node) for item, node in joined.pairs if id(item) in wanted]
    spans = [
        node
        for node in joined.unasked
        if names.is_handoff(node.facts.name or node.span.name, node.facts.arguments)
    ]
    handed = {node.key for _, node in passing} | {node.key for node in spans}
    return (
        Joined(pairs=tuple(passing), unasked=tuple(spans)),
        Joined(
            pairs=tuple(pair for pair in joined.pairs if pair[1].key not in handed),
            unanswered=tuple(item for item in joined.unanswered if id(item) not in wanted),
            unasked=tuple(node for node in joined.unasked if node.key not in handed),
        ),
    )


def _model_call(tree: Tree, node: Node, index: int) -> ModelCall:
    facts = node.facts
    return ModelCall(
        index=index,
        span_id=node.span.span_id,
        model=facts.model,
        start_ns=node.span.start_ns,
        end_ns=node.span.end_ns,
        agent=agent_name(tree, node),
        input_messages=as_held(facts, "input"),
        output=facts.output,
        finish_reason=facts.finish,
        tokens=facts.tokens,
        tools=as_held(facts, "tools"),
        raw_output=as_held(facts, "raw_output"),
        error=facts.error,
        failed=facts.failed,
    )


def _tokens(tree: Tree, models: Sequence[ModelCall]) -> tuple[Tokens, list[Gap], list[Gap]]:
    """Sums over the calls themselves. A number that one of them lacks is taken from the outermost agent,
    whose number is a sum already; else it is missing."""
    answered = [call for call in models if not call.failed]
    agents = tree.of_kind(Kind.AGENT)
    # With several agents it depends on the framework whether the outer sum holds the inner one.
    root = agents[0] if len(agents) == 1 and len({call.agent for call in answered}) < 2 else None
    sums: dict[str, int | None] = {}
    gaps: list[Gap] = []
    notes: list[Gap] = []
    for field in fields(Tokens):
        values = [getattr(call.tokens, field.name) for call in answered]
        lacking = [call for call, value in zip(answered, values, strict=True) if value is None]
        if values and not lacking:
            sums[field.name] = sum(values)
            continue
        whole = getattr(root.facts.tokens, field.name) if root is not None else None
        sums[field.name] = whole
        if whole is not None:
            because = "taken from the agent's own sum"
            notes.append(
                Gap(fact=f"tokens.{field.name}", because=because, span_id=root.span.span_id if root else "")
            )
        elif field.name in ("input", "output"):
            because = (
                f"{len(lacking)} of {len(answered)} model calls did not report it"
                if answered
                else "no model call was answered"
            )
            gaps.append(
                Gap(
                    fact=f"tokens.{field.name}",
                    because=because,
                    span_id=lacking[0].span_id if lacking else "",
                )
            )
    return Tokens(**sums), gaps, notes


def _missing(
    models: Sequence[ModelCall], *, recorded: bool, calls: bool, request: str | None
) -> Iterable[Gap]:
    if not models:
        yield Gap(fact="model_calls", because="no span records one")
    for call in models:
        if call.output is None and not call.failed:
            yield Gap(fact=f"model_calls[{call.index}].output", because="not recorded", span_id=call.span_id)
    if not recorded and not calls:
        yield Gap(fact="tool_calls", because="no span records one and the model's outputs are not known")
    if request is None:
        yield Gap(fact="request", because="not recorded")


def _notes(nodes: Sequence[Node]) -> list[Gap]:
    found = [
        Gap(fact="attribute", because=note, span_id=node.span.span_id)
        for node in nodes
        for note in node.facts.notes
    ]
    return list(dict.fromkeys(found))


def _first(values: Iterable[str | None]) -> str | None:
    return next((value for value in values if value), None)


def _agents(tree: Tree) -> tuple[str, ...]:
    """The agents that have a span; in a run that broke off before theirs ended, those that the calls name."""
    found = [node.facts.name for node in tree.of_kind(Kind.AGENT)]
    if not any(found):
        found = [node.facts.agent for node in (*tree.of_kind(Kind.MODEL), *tree.of_kind(Kind.TOOL))]
    return tuple(dict.fromkeys(name for name in found if name))


def _completeness(tree: Tree) -> Completeness:
    """Incomplete when parents are absent. One top with an absent parent is a run called from elsewhere."""
    by_trace: dict[str, list[Node]] = {}
    for node in tree.tops():
        by_trace.setdefault(node.span.trace_id, []).append(node)
    for tops in by_trace.values():
        orphans = [node for node in tops if node.span.parent_id is not None]
        if orphans and len(tops) > 1:
            return Completeness.INCOMPLETE
    return Completeness.COMPLETE
