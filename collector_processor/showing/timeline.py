"""A run as lines a person reads from top to bottom: what each turn asked for, what came back, what changed.

Pure: a run and its verdicts in, lines out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import chain

from redfirst.collector_processor.showing.columns import ROOM, Line, brief, row, wrapped
from redfirst.collector_processor.showing.folding import Block, folded
from redfirst.collector_processor.showing.steps import Happening, Step, steps_of
from redfirst.collector_processor.showing.witnesses import Witnesses
from redfirst.collector_processor.terminal import WIDTH
from redfirst.evaluators.logical import logical_calls
from redfirst.evaluators.paths import ABSENT, look_up, opened, show_path
from redfirst.evaluators.state_diff import changes
from redfirst.evaluators.trajectory import (
    MISSING,
    CallStatus,
    Effect,
    Handoff,
    ModelCall,
    ToolCall,
    Trajectory,
)

_FEW = 4
"""Changes of state shown after one write; those that a failed check points at are always shown."""
_LONG = 60
"""Calls from which on a run is long."""
_USUAL_FINISH = frozenset(
    {"stop", "tool_calls", "tool_call", "tool_use", "end_turn", "completed", "function_call"}
)
_FAULTS: Mapping[CallStatus, str] = {
    CallStatus.TOOL_ERROR: "error",
    CallStatus.INFRA_ERROR: "infrastructure",
    CallStatus.DENIED: "denied",
    CallStatus.NOT_EXECUTED: "not run",
}


def timeline(run: Trajectory, witnesses: Witnesses) -> list[Line]:
    """The turns and calls of a run in order, each failed check marked where it points; the request, the end and
    the answer are not among them."""
    retries = {
        attempt.index: f"retry of #{logical.first.index + 1}"
        for logical in logical_calls(run.tool_calls)
        for attempt in logical.attempts[1:]
    }
    blocks, agent, several = [], None, len(run.agents) > 1
    for step in steps_of(run):
        block = Block()
        _step(block, step, run, witnesses, retries)
        if (
            several
            and block.lines
            and step.agent not in (None, agent)
            and (step.calls or not step.hands_over())
        ):
            block.lines[:0] = row("agent", str(step.agent), style="bold")
            block.alike.append(step.agent)
            block.plain = False
        agent = step.agent or agent
        agent = next((handoff.target or agent for handoff in step.hands_over()), agent)
        blocks.append(block)
    lines = list(
        chain.from_iterable(folded([block for block in blocks if block.lines], len(run.tool_calls) > _LONG))
    )
    for label, words, mark in dict.fromkeys(witnesses.elsewhere):
        lines += row(label, words, mark, style="red", label_style="red")
    return lines


def _step(
    block: Block, step: Step, run: Trajectory, witnesses: Witnesses, retries: Mapping[int, str]
) -> None:
    label = "" if step.turn is None else f"turn {step.turn + 1}"
    if step.model is not None and _turn(block, label, step.model, run, witnesses):
        label = ""
    _after(block, step.after.get(-1, ()), "", run, witnesses)
    width = len(str(len(run.tool_calls))) + 2
    for place, call in enumerate(step.calls):
        last = place == len(step.calls) - 1
        bracket, bar = (
            ("", "") if len(step.calls) == 1 else ("└ ", "  ") if last else ("├ " if place else "┌ ", "│ ")
        )
        tags = [(f"{len(step.calls)} at once", "dim")] if bracket and not place else []
        tags += [("write", "yellow")] if call.effect is Effect.WRITE else []
        tags += [(retries[call.index], "dim")] if call.index in retries else []
        tags += [witnesses.repeats[call.index]] if call.index in witnesses.repeats else []
        tags += witnesses.calls.get(call.index, ())
        mark = "code" if call.by_code else label if not place else ""
        number = bracket + f"#{call.index + 1}".ljust(width)
        style = "bold" if call.effect is Effect.WRITE and call.ran else ""
        block.put(mark, f"{call.name[:ROOM]} {_arguments(call)}".rstrip(), *tags, number=number, style=style)
        block.calls.append(call.index + 1)
        block.alike.append((call.arguments, call.result, call.error, call.status))
        block.outline.append((call.name, [tag for tag in tags if not tag[0].startswith("repeat")]))
        block.plain &= call.status is CallStatus.OK and call.effect is not Effect.WRITE
        _result(block, call, bar + " " * width)
        _after(block, step.after.get(place, ()), bar + " " * width, run, witnesses)


def _turn(block: Block, label: str, model: ModelCall, run: Trajectory, witnesses: Witnesses) -> bool:
    """What the model said itself, shown; false when there was nothing."""
    said = (model.output.content or "").strip() if model.output is not None else ""
    asked = model.output.tool_calls if model.output is not None else ()
    odd = model.finish_reason if model.finish_reason not in (None, *_USUAL_FINISH) else None
    tags = [(odd, "yellow")] if odd else []
    tags += witnesses.spans.get(model.span_id, ())
    block.plain &= not (model.failed or odd)
    if model.failed:
        block.put(label, f"✗ the model failed: {model.error or 'no error recorded'}", *tags, style="red")
    elif said and (asked or said != (run.answer or "").strip()):
        block.put(label, f"says {json.dumps(said[:WIDTH], ensure_ascii=False)}", *tags, style="dim")
    elif tags or not (said or asked):
        told = "(output not recorded)" if model.output is None else "answers" if said else "(says nothing)"
        block.put(label, "asks for tools" if asked else told, *tags, style="dim")
    else:
        return False
    return True


def _arguments(call: ToolCall) -> str:
    if call.arguments is None:
        return "(arguments not recorded)"
    return brief(call.arguments, ROOM) if call.arguments else ""


def _result(block: Block, call: ToolCall, indent: str) -> None:
    room = ROOM - len(indent) - 2
    fault = _FAULTS.get(call.status)
    if fault is not None:
        told = call.error or ("" if call.result is MISSING else brief(opened(call.result), 2 * room))
        first, *rest = wrapped(f"{fault}: {told}" if told else fault, room, most=2)
        block.put("", f"{indent}✗ {first}", style="red")
        for more in rest:
            block.put("", f"{indent}  {more}", style="red")
    elif call.result is not MISSING:
        block.put("", f"{indent}→ {brief(opened(call.result), room)}", style="dim")
    else:
        told = (
            "whether it ran was not recorded" if call.status is CallStatus.UNKNOWN else "result not recorded"
        )
        block.put("", f"{indent}→ ({told})", style="dim")


def _after(
    block: Block, found: Iterable[Happening], indent: str, run: Trajectory, witnesses: Witnesses
) -> None:
    for what in found:
        block.plain &= isinstance(what, tuple)
        if isinstance(what, tuple):
            _changed(block, what, indent, run, witnesses)
        elif isinstance(what, Handoff):
            told = f"{what.source or '?'} → {what.target or '?'}"
            block.put("handoff", told, *witnesses.spans.get(what.span_id, ()), style="bold")
        else:
            told = f"{what.name[:ROOM]} {brief(what.attributes, ROOM) if what.attributes else ''}".rstrip()
            block.put("event", told, *witnesses.spans.get(what.span_id, ()))


def _changed(block: Block, pair: tuple[int, int], indent: str, run: Trajectory, witnesses: Witnesses) -> None:
    before, after = (run.states[place].state for place in pair)
    marked = dict(witnesses.states.get(pair[1], {}))
    hidden = 0
    shown = len(block.lines)
    for place, change in enumerate(changes(before, after)):
        marks = marked.pop(change.path, ())
        if place >= _FEW and not marks:
            hidden += 1
            continue
        sign = "+" if change.before is ABSENT else "-" if change.after is ABSENT else "±"
        old, new = brief(change.before, 20), brief(change.after, 30)
        told = f"{old} → {new}" if sign == "±" else new if sign == "+" else old
        block.put(
            "", f"{indent}{sign} {show_path(change.path)[:WIDTH]}: {told}", *marks, style="yellow", least=ROOM
        )
    if hidden:
        block.put("", f"{indent}± and {hidden} more changes", style="yellow")
    for path, marks in marked.items():
        block.put(
            "state",
            f"{show_path(path) or 'the state'} is {brief(look_up(after, path), 40)}",
            *marks,
            least=ROOM,
        )
    block.plain &= len(block.lines) == shown
