"""Why a run ended and what it answered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from redfirst.evaluators.dialects.common import error_of
from redfirst.evaluators.dialects.facts import Kind, SpanFacts
from redfirst.evaluators.span import StatusCode
from redfirst.evaluators.structure import Node, Tree
from redfirst.evaluators.trajectory import MISSING, Handoff, ModelCall, RunEvent, Stop, Termination

_STEP_CAP = re.compile(
    r"GraphRecursionError|recursion limit|MaxTurnsExceeded|max(imum)?[ _](number of )?(turns|steps|iterations)"
    r"|MaxSteps|LlmCallsLimit|max(imum)? number of (llm|model) calls|UsageLimitExceeded|request_limit"
    r"|step limit|(exceeded|reached) (the )?(step|turn|iteration)",
    re.IGNORECASE,
)
_TOKEN_CAP = re.compile(r"\w*token\w*_limit|token budget|context_length_exceeded", re.IGNORECASE)
_TIME_CAP = re.compile(r"(execution|wall|run) time (limit|exceeded)|max_execution_time", re.IGNORECASE)
_REFUSED = re.compile(r"Guardrail\w*Trip|content.?filter|ContentFilter", re.IGNORECASE)
_INFRA_TYPE = re.compile(
    r"Time-?out|Connect(ion)?(Error|Refused|Reset|Aborted)?|RateLimit|Overloaded|ServiceUnavailable|TooManyRequests"
    r"|InternalServerError|BadGateway|GatewayTimeout|RemoteProtocolError|NetworkError|DNS",
    re.IGNORECASE,
)
_INFRA_TEXT = re.compile(r"(status|error|http)[ _]?(code)?[ :=]*(429|5\d\d)\b", re.IGNORECASE)
_CODED_ANSWER = re.compile(r"^\s*final_answer\(", re.MULTILINE)
"""An agent that writes code calls its answer instead of saying it."""
_NUMBER = re.compile(r"\d+")

_PAUSES = frozenset({"paused", "input_required", "input-required"})
_RESUMED = "resumed"
"""Names of a run's own events by which it waits for a person, and goes on."""
_FINISHED = frozenset({"length", "max_tokens", "max_output_tokens"})
_DONE = frozenset({"stop", "end_turn", "stop_sequence", "completed"})
_FILTERED = frozenset({"content_filter", "refusal", "safety", "blocked"})


def is_infrastructure(error_type: str | None, message: str | None) -> bool:
    """Whether an error means that the other end was not reached or not able to answer."""
    if error_type and (_INFRA_TYPE.search(error_type.rpartition(".")[2]) or error_type in ("429", *_SERVER)):
        return True
    return bool(_INFRA_TEXT.search(message or ""))


_SERVER = tuple(str(code) for code in range(500, 600))


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What is known of a run when its end is judged."""

    tree: Tree
    models: Sequence[ModelCall]
    """All model calls, in order."""
    outer: Sequence[ModelCall]
    """Those no tool call contains: the turns of the run itself."""
    handoffs: Sequence[Handoff]
    handoff_ids: frozenset[str]
    """Call ids and names of requests that were hand-offs."""
    finished: bool = False
    """The last turn called the tool by which the model gives its answer."""
    final_answer: str | None = None
    """The text it gave so."""


def root_agent(tree: Tree) -> Node | None:
    """The first outermost agent."""
    outermost = [
        node for node in tree.of_kind(Kind.AGENT) if tree.nearest(node, Kind.AGENT, Kind.TOOL) is None
    ]
    return outermost[0] if outermost else None


def termination_of(course: Course) -> Termination:
    """Why the run ended: what its loop said, else an error, else its last turn."""
    root = root_agent(course.tree)
    said = _said(root)
    if said is not None:
        return said
    parked = next((node for node in course.tree.nodes.values() if node.facts.interrupted), None)
    if parked is not None and not _goes_on(course, parked):
        return Termination(
            reason=Stop.PARKED, because="the framework interrupted the run", span_id=parked.span.span_id
        )
    paused = _paused(course)
    if paused is not None:
        because = f"the agent reported {paused.name}, and nothing that it went on"
        return Termination(reason=Stop.PARKED, because=because, span_id=paused.span_id)
    fatal = _fatal(course)
    if fatal is not None:
        return _from_error(*fatal)
    return _from_last_turn(course, root)


def _paused(course: Course) -> RunEvent | None:
    """The pause that the agent reported last, when it reported no resumption and asked no model after it."""
    told = [event for node in course.tree.nodes.values() for event in node.facts.events]
    told = [event for event in told if event.name in _PAUSES or event.name == _RESUMED]
    last = max(told, key=lambda event: (event.time_ns, event.name == _RESUMED), default=None)
    if last is None or last.name == _RESUMED or any(call.start_ns > last.time_ns for call in course.outer):
        return None
    return last


def _said(root: Node | None) -> Termination | None:
    if root is None or root.facts.stop_reason is None:
        return None
    known = root.facts.stop_reason in tuple(Stop)
    return Termination(
        reason=Stop(root.facts.stop_reason) if known else Stop.UNKNOWN,
        cap=root.facts.stop_cap,
        because=f"the agent reported {root.facts.stop_reason}",
        span_id=root.span.span_id,
    )


def _fatal(course: Course) -> tuple[Node, SpanFacts] | None:
    """The error that ended the run: of a span outside every tool, after which no model was called."""
    found: list[tuple[Node, SpanFacts]] = []
    for node in course.tree.nodes.values():
        facts = node.facts
        if not facts.dialect:
            failed = node.span.status is StatusCode.ERROR
            facts = SpanFacts(dialect="", **error_of(node.span, failed=failed))  # type: ignore[arg-type]  # its own fields
        if not facts.failed or facts.kind in (Kind.TOOL, Kind.HANDOFF):
            continue
        if course.tree.nearest(node, Kind.TOOL) is not None or _goes_on(course, node):
            continue
        inner = not facts.dialect or next(course.tree.ancestors(node), None) is not None
        if facts.kind is Kind.STRUCTURE and inner and _answered(course):
            continue
        found.append((node, facts))
    return (
        max(
            found,
            key=lambda pair: (_STEP_CAP.search(_words(pair[1])) is not None, -course.tree.depth(pair[0])),
        )
        if found
        else None
    )


def _goes_on(course: Course, node: Node) -> bool:
    """Whether a model was asked again after this span ended."""
    return any(
        call.start_ns >= node.span.end_ns and call.span_id != node.span.span_id for call in course.outer
    )


def _answered(course: Course) -> bool:
    last = course.outer[-1] if course.outer else None
    return (
        last is not None
        and last.output is not None
        and bool(last.output.content)
        and not last.output.tool_calls
    )


def _words(facts: SpanFacts) -> str:
    return f"{facts.error_type or ''} {facts.error or ''}"


def _from_error(node: Node, facts: SpanFacts) -> Termination:
    words = _words(facts)
    number = _NUMBER.search(facts.error or "")
    because = words.strip()[:200]
    if _TOKEN_CAP.search(words):
        return _end(Stop.TOKEN_CAP, because, node, cap=int(number.group()) if number else None)
    if _STEP_CAP.search(words):
        return _end(Stop.STEP_CAP, because, node, cap=int(number.group()) if number else None)
    if _TIME_CAP.search(words):
        return _end(Stop.TIME_CAP, because, node)
    if _REFUSED.search(words):
        return _end(Stop.REFUSED, because, node)
    if is_infrastructure(facts.error_type, facts.error):
        return _end(Stop.INFRA, because, node)
    return _end(Stop.ERROR, because, node)


def _end(reason: Stop, because: str, node: Node, cap: int | None = None) -> Termination:
    return Termination(reason=reason, cap=cap, because=because, span_id=node.span.span_id)


def _from_last_turn(course: Course, root: Node | None) -> Termination:
    last = course.outer[-1] if course.outer else None
    if course.finished and last is not None:
        where = root.span.span_id if root else last.span_id
        return Termination(
            reason=Stop.COMPLETED, because="the last turn gave the final answer", span_id=where
        )
    if last is None or last.output is None:
        return _without_turns(course, root, last)
    where = root.span.span_id if root else last.span_id
    calls = last.output.tool_calls
    cap = root.facts.step_cap if root else None
    if cap is not None and not calls and sum(not call.failed for call in course.outer) > cap:
        because = f"a turn without tools followed the last of {cap} that the agent may take"
        return Termination(reason=Stop.STEP_CAP, cap=cap, because=because, span_id=where)
    if calls and not (root is not None and root.facts.answer):
        return _asked_in_vain(course, root, last, where)
    finish = (last.finish_reason or "").lower()
    if finish in _FINISHED and not calls:
        return Termination(
            reason=Stop.TOKEN_CAP, because=f"the model stopped at {finish}", span_id=last.span_id
        )
    if finish in _FILTERED:
        return Termination(
            reason=Stop.REFUSED, because=f"the model stopped at {finish}", span_id=last.span_id
        )
    if last.output.content or (root is not None and root.facts.answer):
        return Termination(
            reason=Stop.COMPLETED, because="the last turn answered and asked for no tool", span_id=where
        )
    if finish in _DONE and last.raw_output is MISSING:
        return Termination(reason=Stop.COMPLETED, because=f"the model stopped at {finish}", span_id=where)
    if root is not None and last.output.content == "":
        return Termination(
            reason=Stop.COMPLETED, because="the agent returned after an empty turn", span_id=where
        )
    return Termination(reason=Stop.UNKNOWN, because="the last turn neither answered nor asked", span_id=where)


def _asked_in_vain(course: Course, root: Node | None, last: ModelCall, where: str) -> Termination:
    """The last turn asked for tools and the model never saw what came of it."""
    calls = last.output.tool_calls if last.output else ()
    if calls and all((call.call_id or call.name) in course.handoff_ids for call in calls):
        return Termination(reason=Stop.HANDOFF, because="the last turn handed over", span_id=where)
    cap = root.facts.step_cap if root else None
    if cap is not None and len(course.outer) >= cap:
        because = f"turn {len(course.outer)} of {cap} still asked for tools"
        return Termination(reason=Stop.STEP_CAP, cap=cap, because=because, span_id=where)
    if root is not None and all(call.arguments is None and call.raw_arguments for call in calls):
        because = "the agent returned after a call that nothing could execute"
        return Termination(reason=Stop.COMPLETED, because=because, span_id=where)
    because = "the last turn asked for tools and no turn followed"
    return Termination(reason=Stop.UNKNOWN, because=because, span_id=where)


def _without_turns(course: Course, root: Node | None, last: ModelCall | None) -> Termination:
    """No model output to go by: an agent that answered has completed, by its finish reason if there is one."""
    answer = answer_of_agents(course.tree)
    if answer is not None and root is not None:
        return Termination(reason=Stop.COMPLETED, because="the agent answered", span_id=root.span.span_id)
    finish = (last.finish_reason or "").lower() if last else ""
    if last is not None and finish in _DONE:
        return Termination(
            reason=Stop.COMPLETED, because=f"the model stopped at {finish}", span_id=last.span_id
        )
    if last is None and root is not None and root.span.end_ns and not root.facts.says_why:
        # Frameworks end their agent's span with an error when a limit or a fault ended the run.
        because = "the agent's span ended without an error"
        return Termination(reason=Stop.COMPLETED, because=because, span_id=root.span.span_id)
    where = root.span.span_id if root else last.span_id if last else ""
    return Termination(reason=Stop.UNKNOWN, because="no turn of the model was recorded", span_id=where)


def answer_of_agents(tree: Tree) -> str | None:
    """What the outermost agents returned: the first of them, else the last that said something."""
    outermost = [node for node in tree.of_kind(Kind.AGENT) if tree.nearest(node, Kind.TOOL) is None]
    said = [node.facts.answer for node in outermost if node.facts.answer]
    root = root_agent(tree)
    return root.facts.answer if root is not None and root.facts.answer else said[-1] if said else None


def answer_of(course: Course, end: Termination, *, own: bool) -> str | None:
    """The final text. Our own agent span says what was returned; elsewhere the last turn of the model does."""
    if own and (said := answer_of_agents(course.tree)) is not None:
        return said
    if end.reason in (Stop.ERROR, Stop.INFRA, Stop.PARKED):
        return None
    last = course.outer[-1] if course.outer else None
    if last is None or last.output is None:
        return answer_of_agents(course.tree)
    if course.finished:
        return course.final_answer or answer_of_agents(course.tree)
    if last.output.tool_calls:
        return None
    if _CODED_ANSWER.search(last.output.content or ""):
        return answer_of_agents(course.tree)
    return last.output.content or None
