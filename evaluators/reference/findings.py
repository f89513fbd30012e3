"""What was found wrong beside a reference, each with its subject and its evidence."""

from __future__ import annotations

from collections.abc import Sequence

from redfirst.evaluators.paths import parse_path
from redfirst.evaluators.reference.steps import Step
from redfirst.evaluators.reference.table import Table
from redfirst.evaluators.rule_kinds.conclude import at
from redfirst.evaluators.rule_kinds.keys import describe
from redfirst.evaluators.trajectory import CallStatus, ToolCall
from redfirst.evaluators.verdict import Evidence, Finding


def surplus(table: Table) -> list[ToolCall]:
    """The calls that are left over by a largest matching, of which those with valid arguments go first."""
    taken = set(table.pairs().values())
    return [attempts[-1] for place, attempts in enumerate(table.calls) if place not in taken]


def unmatched(call: ToolCall) -> Finding:
    """A call that no step is left for."""
    because = f"{describe(call)} matches no step of its own"
    if call.status is not CallStatus.OK:
        because += f" (it ended with {call.status.value})"
    return Finding(subject=call.name, because=because, evidence=(at(call),))


def not_made(step: Step, table: Table) -> Finding:
    """A required step that no call matches; the last call of its tools is the nearest miss."""
    near = [attempts[-1] for attempts in table.calls if attempts[-1].name in step.tools]
    evidence = [
        Evidence(span_id=table.run.root_span_id, pointer="/tool_calls", note=f"no such call of {step}")
    ]
    told = ""
    if near:
        last = near[-1]
        ending = "meets another step" if last.status is CallStatus.OK else f"ended with {last.status.value}"
        told = f"this call of {last.name} {ending}"
        evidence.append(at(last, told))
    return Finding(
        subject=",".join(step.tools),
        because=f"the required call of {step} was not made" + (f" ({told})" if told else ""),
        evidence=tuple(evidence),
    )


def invalid_argument(call: ToolCall, steps: Sequence[Step]) -> Finding:
    """A call whose arguments no step of its tool accepts, beside the step that it comes nearest to."""
    faults = min((step.arguments.faults(call) for step in steps), key=len)
    places = [path for path, _ in faults]
    return Finding(
        subject="|".join((call.name, *places)),
        because=f"{describe(call)}: {', '.join(what for _, what in faults)}",
        evidence=tuple(_argument(call, path, what) for path, what in faults),
    )


def _argument(call: ToolCall, path: str, what: str) -> Evidence:
    keys = "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in parse_path(path))
    return Evidence(span_id=call.span_id, pointer=f"/tool_calls/{call.index}/arguments{keys}", note=what)


def out_of_order(step: Step, call: ToolCall, earlier: Step, other: ToolCall) -> Finding:
    """A call that did not come after the call of a step that stands before its own."""
    return Finding(
        subject=f"{step}|{earlier}",
        because=f"{describe(call)} did not come after {describe(other)}",
        evidence=(at(call, f"{step} stands after {earlier}"), at(other)),
    )
