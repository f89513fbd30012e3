"""Each check of a rules file in one sentence of plain English, with its exact meaning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from redfirst.evaluators import rule_base_shapes as base
from redfirst.evaluators import rule_kind_shapes as shapes
from redfirst.evaluators.canonical import canonical_text
from redfirst.evaluators.conditions import parse_condition, parse_where
from redfirst.evaluators.declared import DeclaredShape
from redfirst.evaluators.declared_parts import when_of
from redfirst.evaluators.file_shapes import RecallShape
from redfirst.evaluators.outcome_shapes import OutcomeCheckShape
from redfirst.evaluators.paths import call_path, parse_path
from redfirst.evaluators.reference.learned_shapes import LearnedCheckShape
from redfirst.evaluators.reference.shapes import MatchShape, RatioShape, RecallFactsShape
from redfirst.evaluators.rule_kinds.calls import EVERY_STATUS, RAN, SUCCEEDED, TOOK_EFFECT
from redfirst.evaluators.rule_kinds.happenings import ANSWER, EVENT, HANDOFF, USER
from redfirst.evaluators.rule_shapes import StateCollateralShape, StateRequiredShape
from redfirst.evaluators.shapes import AllowedShape, CallShape, RequiredShape, WhenShape
from redfirst.evaluators.trajectory import CallStatus

_ENDED = {
    RAN: "",
    EVERY_STATUS: " (also one that did not run)",
    SUCCEEDED: " that ended ok",
    TOOK_EFFECT: " that may have taken effect",
}
_BESIDE = {
    "recall": "each required step of the reference is matched by a call of its own",
    "match": "the calls match the reference in its mode",
    "precision": "each call that was made is matched by a step of the reference",
    "tool_selection": "each call that was made is of a tool that the reference allows",
    "argument_validity": "each call of a tool of the reference has arguments that the reference accepts",
    "efficiency": "no more calls are made than the reference requires",
    "learned.recall": "the run makes the calls that passing runs of its task have in common",
    "learned.tool_selection": "the run calls only tools that passing runs of its task called",
}
"""What is asked beside a reference, or beside what was learned."""
_NAMES = {USER: "a message of the user", ANSWER: "the final answer", HANDOFF: "a handoff"}


def explained(shape: DeclaredShape) -> str:
    """The sentence of a declaration."""
    said = _said(shape)
    if isinstance(shape, base.RuleShape):
        said = _when(shape.when) + said + _open(shape)
    return f"{said[0].upper()}{said[1:]}."


def _said(shape: DeclaredShape) -> str:
    match shape:
        case shapes.RequireBeforeShape():
            needs = _event(shape.needs, SUCCEEDED, _tie(shape))
            return f"{_every(shape.call, shape)} comes after {needs}{_worth(shape.covers)}{_once(shape)}{_lasting(shape)}"
        case shapes.RequireAfterShape():
            needs = _event(shape.needs, SUCCEEDED, _tie(shape))
            return f"{_every(shape.call, shape)} is followed by {needs}{_once(shape)}{_lasting(shape)} before the run ends"
        case shapes.ForbidShape():
            after = "" if shape.after is None else f" after {_event(shape.after, SUCCEEDED, _tie(shape))}"
            return f"there is no {_judged(shape.call, shape)}{after}"
        case shapes.MutuallyExclusiveShape():
            kinds = _listed(_called(one, shape) for one in shape.calls)
            return f"at most one of {kinds} is called{_each(shape)}, in whatever order"
        case shapes.MaxCallsShape():
            counted = "every attempt counts" if shape.attempts else "a call with its retries counts once"
            return f"there are at most {shape.limit} call(s) of {_called(shape.call, shape)}{_each(shape)}; {counted}"
        case shapes.MaxConsecutiveShape():
            row = f" with the same {_listed(pair[1] for pair in shape.same)}" if shape.same else ""
            called = _or(shape.call.tool) + _qualified(shape.call, EVERY_STATUS if shape.attempts else RAN)
            return (
                f"one agent calls {called}{row} at most {shape.limit} time(s) in a row; any other call that ran ends"
                " the row"
            )
        case shapes.SequenceShape():
            chain = ", then ".join(_event(one, SUCCEEDED, _tie(shape)) for one in shape.steps[:-1])
            return f"{_every(shape.steps[-1], shape)} comes after {chain}, and each step between after those before it"
        case shapes.InvariantShape():
            must = parse_condition(shape.must, parse_path)
            return f"in every state that was reported, {shape.state} is {must}; between reports nothing is claimed"
        case shapes.NoFlowShape():
            return _flow(shape)
        case shapes.ArgsSchemaShape():
            return f"the arguments of every {_judged(shape.call, shape)} {_fit(shape)}"
        case shapes.BudgetShape():
            return _budget(shape)
        case shapes.ApprovalShape():
            granted = _event(shape.approval or CallShape(tool=[f"{EVENT}approval"]), SUCCEEDED, _tie(shape))
            who = (
                f" by each of {shape.distinct} different values of {shape.approver}"
                if shape.distinct > 1
                else ""
            )
            return (
                f"{_every(shape.call, shape)} comes after {granted}{who}{_worth(shape.covers)}{_once(shape)}"
                f"{_lasting(shape)}"
            )
        case shapes.StateDiffShape():
            return _state(shape)
        case shapes.TerminationShape():
            answer = (
                f", its answer is {parse_condition(shape.answer)}"
                if "answer" in shape.model_fields_set
                else ""
            )
            pending = "" if shape.pending else ", and no call of its last turn is left unexecuted"
            return f"the run ends as {_or(shape.ends)}{answer}{pending}"
        case RecallShape():
            if shape.reference is not None:
                return f"{_when(shape.when)}{_BESIDE[shape.kind]}"
            calls = "; ".join(_event(one, SUCCEEDED) for one in shape.required_calls or ())
            return f"{_when(shape.when)}each of these is called, in any order, one call for each: {calls}"
        case MatchShape() | RatioShape():
            return f"{_when(shape.when)}{_BESIDE[shape.kind]}"
        case RecallFactsShape():
            return f"{_when(shape.when)}each of {len(shape.facts)} fact(s) is established by a call before the answer"
        case LearnedCheckShape():
            return _BESIDE[shape.kind]
        case StateRequiredShape():
            return f"{_when(shape.when)}at the end {_places(shape.required)}"
        case shapes.PythonShape():
            return f"the function {shape.function} says so" + (
                f", given {dict(shape.params)}" if shape.params else ""
            )
        case OutcomeCheckShape():
            return f"{_when(shape.when)}{_outcome(shape)}"
    return _collateral(shape)


def _outcome(shape: OutcomeCheckShape) -> str:
    """What a run must come to."""
    parts: list[str] = []
    if shape.answer is not None:
        said = shape.answer.model_dump(exclude_none=True)
        parts.append(f"the answer {_listed(f'{word} {value!r}' for word, value in said.items())}")
    if shape.state is not None:
        parts.append(f"at the end {_places(shape.state)}")
    if shape.function is not None:
        parts.append(f"the function {shape.function} says so")
    return _listed(parts)


def _judged(shape: CallShape, rule: base.OrderedShape) -> str:
    return _noun(shape) + _qualified(shape, EVERY_STATUS if rule.attempts else RAN)


def _every(shape: CallShape, rule: base.OrderedShape) -> str:
    said = _judged(shape, rule)
    return said if said.startswith("the ") else f"every {said.removeprefix('a ')}"


def _called(shape: CallShape, rule: base.OrderedShape) -> str:
    return _or(shape.tool) + _qualified(shape, EVERY_STATUS if rule.attempts else RAN)


def _event(shape: CallShape, statuses: frozenset[CallStatus], tie: str = "") -> str:
    noun = _noun(shape)
    return ("a " if noun.startswith(("call", "report")) else "") + noun + tie + _qualified(shape, statuses)


def _once(shape: base.LastingShape) -> str:
    return ", one for each" if shape.once else ""


def _worth(covers: Mapping[str, object]) -> str:
    return "".join(f", whose {path} is {_covered(of)}" for path, of in sorted(covers.items()))


def _noun(shape: CallShape) -> str:
    tools = [name for name in shape.tool if not name.startswith("$")]
    others = [
        f"report of {name.removeprefix(EVENT)}" if name.startswith(EVENT) else _NAMES[name]
        for name in shape.tool
        if name.startswith("$")
    ]
    return _or([*([f"call of {_or(tools)}"] if tools else []), *others])


def _qualified(shape: CallShape, statuses: frozenset[CallStatus]) -> str:
    calls = any(not name.startswith("$") for name in shape.tool)
    ended = _ENDED[statuses] if shape.status is None else f" that ended as {_or(shape.status)}"
    where = parse_where(shape.where, call_path)
    limits = f" where {where}" if where.conditions else ""
    return (ended if calls else "") + limits


def _tie(shape: base.OrderedShape) -> str:
    same = [
        other if other == judged else f"{other} (of the former) as {judged} (of the latter)"
        for other, judged in shape.same
    ]
    within = {"trace": "", "agent": " by the same agent", "subtree": " under the same agent's span"}[
        shape.scope
    ]
    return (f" with the same {_listed(same)}" if same else "") + within


def _each(shape: base.OrderedShape) -> str:
    each = [judged for _, judged in shape.same] + (["agent"] if shape.scope == "agent" else [])
    return f" for each {_listed(each)}" if each else ""


def _lasting(shape: base.LastingShape) -> str:
    parts = [f", at most {shape.within} apart" if shape.within is not None else ""]
    if shape.within_steps is not None:
        parts.append(f", at most {shape.within_steps} model turn(s) apart")
    if shape.until is not None:
        parts.append(f", with no {_noun(shape.until)}{_qualified(shape.until, TOOK_EFFECT)} in between")
    return "".join(parts)


def _covered(operators: object) -> str:
    return f"{parse_condition(base.covers_as_where({'result': operators})['result'], call_path)} of that call"  # type: ignore[index] # a mapping goes in


def _flow(shape: shapes.NoFlowShape) -> str:
    to = f"{_listed(shape.to.arg)} of {_or(shape.to.tool)}"
    to += f" where {parse_where(shape.to.where, call_path)}" if shape.to.where else ""
    values = f"value in which {shape.pattern} is found" if shape.pattern else "value"
    unless = f", unless {_event(shape.unless, SUCCEEDED)} came in between" if shape.unless else ""
    differs = [f"{one} of the source equals {other} of the call" for one, other in shape.differs]
    unless += f", unless {' and '.join(differs)}" if differs else ""
    if shape.sources is None:
        return f"no {values} reaches {to}"
    if shape.mode == "order":
        return f"no call of {_or(shape.to.tool)} is made after {_event(shape.sources, RAN)} answered{unless}"
    givers = ["the user", "the system prompt", *shape.trusted]
    return (
        f"no {values} that {_event(shape.sources, RAN)} answered, and that none of {_listed(givers)} gave before,"
        f" reaches {to}{unless}"
    )


def _fit(shape: shapes.ArgsSchemaShape) -> str:
    must = parse_where(shape.must, call_path)
    parts = [str(must)] if must.conditions else []
    if shape.json_schema is not None:
        parts.append(f"fit the schema {canonical_text(shape.json_schema)}")
    if not parts:
        return "fit the schema that the trace carries"
    return "are such that " + ", and they ".join(parts) if must.conditions else parts[0]


def _budget(shape: shapes.BudgetShape) -> str:
    if shape.limits is not None:
        limits = [f"{limit:g} {name.replace('_', ' ')}" for name, limit in shape.limits.given()]
        return f"the run spends at most {_listed(limits)}"
    (test,) = parse_condition({"le": shape.limit}, call_path).tests
    each = f" for each {_listed(pair[1] for pair in shape.by)}" if shape.by else ""
    window = f" within any {shape.within} of the run" if shape.within else ""
    called = "" if shape.call is None else _noun(shape.call) + _qualified(shape.call, RAN)
    return f"the sum of {shape.sum} over every {called} is {test}{each}{window}; a call with its retries counts once"


def _state(shape: shapes.StateDiffShape) -> str:
    parts = []
    if shape.required:
        parts.append(f"at the end {_places(shape.required)}")
    if shape.allowed is not None and shape.collateral == "fail":
        parts.append(f"nothing else changes but {_patterns(shape.allowed)}")
    if shape.together is not None:
        parts.append(f"what stands at {_listed(shape.together)} changes together or not at all")
    return " and ".join(parts)


def _collateral(shape: StateCollateralShape) -> str:
    parts = []
    for scope in shape.scopes:
        what = "anything" if scope.collateral == "ignore" else _patterns(scope.allowed or [])
        allowed = f"{what} may change"
        if scope.required:
            allowed += f", and what is under {_listed(one.path for one in scope.required)}"
        parts.append(f"{_when(scope.when) or 'in every run '}{allowed}")
    return f"between the first and the last state nothing changes but what is allowed: {'; '.join(parts)}"


def _places(required: Sequence[RequiredShape]) -> str:
    conditions = [
        f"{one.path} is {parse_condition({'eq': one.equals} if 'equals' in one.model_fields_set else one.must)}"
        for one in required
    ]
    return _listed(conditions)


def _patterns(allowed: Sequence[AllowedShape]) -> str:
    said = []
    for one in allowed:
        mentioned = " where the user mentioned the key under the first *" if one.mentioned else ""
        to = (
            f" to {_or(map(canonical_text, one.to if isinstance(one.to, list) else [one.to]))}"
            if one.to is not None
            else ""
        )
        said.append(one.path + mentioned + to)
    return _listed(said) or "nothing"


def _when(shape: WhenShape | None) -> str:
    when = when_of(shape)
    parts = [
        f"request is {when.request}" if when.request else "",
        f"agent is {when.agent}" if when.agent else "",
    ]
    named = " and ".join(part for part in parts if part)
    return f"in runs whose {named}, " if named else ""


def _open(shape: base.RuleShape) -> str:
    """What order means to the rule, and what becomes of what cannot be told."""
    order = getattr(shape, "order", None) if _orders(shape) else None
    turns = {
        "decided": "; calls of one model turn are simultaneous",
        "executed": "; calls are in the order in which they were executed",
    }
    untold = {
        None: "what cannot be told leaves it inconclusive",
        "failed": "what cannot be told is a failure",
        "ignore": "what cannot be told is not counted",
    }
    return f"{turns.get(str(order), '')}; {untold[shape.missing]}"


def _orders(shape: base.RuleShape) -> bool:
    """Whether it matters to the rule what came first."""
    if isinstance(shape, shapes.ForbidShape):
        return shape.after is not None
    return isinstance(
        shape, base.LastingShape | shapes.SequenceShape | shapes.NoFlowShape | shapes.MaxConsecutiveShape
    )


def _or(names: Iterable[str]) -> str:
    return _listed(names, "or")


def _listed(names: Iterable[str], word: str = "and") -> str:
    every = list(dict.fromkeys(names))
    return f" {word} ".join([", ".join(every[:-1]), every[-1]]) if len(every) > 1 else "".join(every)
