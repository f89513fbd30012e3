"""Whether the arguments of every call fit the schema of its tool, as the trace carries it."""

from __future__ import annotations

from dataclasses import dataclass, field

from redfirst.evaluators.rule_kinds.conclude import and_untold, sentence
from redfirst.evaluators.rule_kinds.lacking import lacks_calls, lacks_names, without_absence
from redfirst.evaluators.schemas import Misfit, UnusableSchema, schema_of
from redfirst.evaluators.tool_schemas import Asked, Schemas
from redfirst.evaluators.trajectory import ToolCall, Trajectory
from redfirst.evaluators.verdict import (
    Evidence,
    Finding,
    Verdict,
    failed,
    inconclusive,
    not_applicable,
    passed,
)

VERSION = 1

_NO_OBJECT = "its arguments are no JSON object"


@dataclass(slots=True)
class _Found:
    """What was found call by call."""

    good: int = 0
    bad: list[Finding] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    without: int = 0
    """Calls of tools that the trace gives no schema of."""


def arguments(run: Trajectory) -> Verdict:
    """Calls whose arguments fit ÷ calls that could be checked, those that were refused or never ran included.

    Arguments that a model wrote are held against the tool's definition in what the model was given, others
    against the schema on the tool's span (JSON Schema, the words of OpenAPI 3.0 understood, formats ignored).
    """
    return without_absence(_seen(run), lacks_calls(run) or lacks_names(run))


def _seen(run: Trajectory) -> Verdict:
    if not run.tool_calls:
        return not_applicable("no tool was called")
    found, schemas = _Found(), Schemas(run)
    for call in run.tool_calls:
        _look(call, schemas.asked(call), found)
    judged = found.good + len(found.bad)
    if found.bad:
        because = sentence(found.bad) + and_untold(len(found.unread))
        return failed(because, findings=found.bad, of=(found.good, judged))
    if found.unread:
        return inconclusive(found.unread[0])
    beside = f"; {found.without} of tools without one" if found.without else ""
    if not judged:
        return not_applicable(
            f"the trace gives no schema of any tool called ({found.without} call(s))", unseen=True
        )
    return passed(f"{judged} call(s), each fits the schema of its tool{beside}", of=(judged, judged))


def _look(call: ToolCall, asked: Asked, found: _Found) -> None:
    if asked.unparsed:
        found.bad.append(_finding(call, [Misfit((), "type", _NO_OBJECT)]))
    elif asked.schema is None:
        found.without += 1
    elif asked.arguments is None:
        found.unread.append(f"the arguments of {call.name} were not recorded")
    else:
        try:
            misfits = schema_of(asked.schema).misfits(asked.arguments)
        except UnusableSchema as problem:
            found.unread.append(f"the schema of {call.name} cannot be used: {problem}")
            return
        if misfits:
            found.bad.append(_finding(call, misfits))
        else:
            found.good += 1


def _finding(call: ToolCall, misfits: list[Misfit]) -> Finding:
    """One call's; its subject names the arguments and the demands, not the values."""
    places = sorted({f"{'.'.join(map(_general, one.path)) or '(all)'}:{one.keyword}" for one in misfits})
    told = "; ".join(f"{_where(one)}{one.because}" for one in misfits[:3])
    return Finding(
        subject=f"{call.name}|{','.join(places)}",
        because=f"{call.name} does not fit its schema: {told}",
        evidence=tuple(
            Evidence(
                span_id=call.span_id,
                pointer="/".join((f"/tool_calls/{call.index}/arguments", *map(_escaped, one.path))),
                note=one.because,
            )
            for one in misfits[:10]
        ),
    )


def _general(part: str) -> str:
    return "*" if part.isdigit() else part


def _where(misfit: Misfit) -> str:
    return f"{'.'.join(misfit.path)}: " if misfit.path else ""


def _escaped(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")
