"""Differences that mean nothing. Declared as operators, with what they presuppose, before anything is judged.

A check that fails for one of these would fail runs that are right.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from redfirst.evaluators.canonical import INTENT, canonical_text
from redfirst.evaluators.paths import RESULT_OF, opened
from redfirst.evaluators.rule_kinds.keys import describe
from redfirst.evaluators.sensitivity import editing
from redfirst.evaluators.sensitivity.mutant import Expected, Mutant, Original
from redfirst.evaluators.trajectory import MISSING, CallStatus, Effect, Message, ToolCall, Trajectory

_READ = "read_opening_hours"
_MOST_SWAPS = 3


def equivalents(of: Original) -> Iterator[Mutant]:
    """Every equivalent of a run that has one."""
    yield from swap_two_reads(of)
    yield from rename_call_id(of)
    yield from reformat(of)
    yield from add_optional_read(of)
    yield from drop_optional_read(of)


def swap_two_reads(of: Original) -> Iterator[Mutant]:
    """Two reads of one tool that follow each other, made in the other order.

    Both ended ok, ask different things, ask them once in the run, and nothing was called beside them or reported
    between them. No rule tells the two apart: none names the tool twice, counts rows of it with ``same``, or reads
    its latest answer for a call that does not say which of the two it means.
    """
    asked = [_intent(call) for call in of.run.tool_calls]
    swapped = 0
    for one, other in pairwise(of.run.tool_calls):
        if (
            one.name == other.name
            and one.agent == other.agent
            and _stand_alone(one, other, of.run)
            and all(_is_read(call, of) and asked.count(_intent(call)) == 1 for call in (one, other))
            and not any(one.end_ns <= state.time_ns <= other.start_ns for state in of.run.states)
            and not _told_apart(one, other, of)
        ):
            yield _mutant(
                "swap_two_reads",
                f"{describe(one)} and {describe(other)}",
                editing.exchanged(of.run, one, other),
            )
            swapped += 1
            if swapped == _MOST_SWAPS:
                return


def rename_call_id(of: Original) -> Iterator[Mutant]:
    """Calls with other ids, everywhere alike."""
    if not of.run.tool_calls:
        return

    def renamed(messages: tuple[Message, ...] | None) -> tuple[Message, ...] | None:
        return None if messages is None else tuple(_renamed(message) for message in messages)

    run = editing.changed(of.run, lambda call: replace(call, call_id=_other_id(call.call_id)))
    models = tuple(
        replace(one, input_messages=renamed(one.input_messages), output=one.output and _renamed(one.output))
        for one in run.model_calls
    )
    yield _mutant(
        "rename_call_id", "every call", replace(run, history=renamed(run.history), model_calls=models)
    )


def reformat(of: Original) -> Iterator[Mutant]:
    """Arguments and answers with their keys in the other order; JSON text with the same spaces as before.

    Two answers that differ in their text alone are left as they are.
    """
    texts = {call.result for call in of.run.tool_calls if isinstance(call.result, str)}
    if len({canonical_text(opened(text)) for text in texts}) < len(texts) or not of.run.tool_calls:
        return
    run = editing.changed(
        of.run,
        lambda call: replace(
            call,
            arguments=None if call.arguments is None else _turned_object(call.arguments),
            result=call.result if call.result is MISSING else _turned_text(call.result),
        ),
    )
    yield _mutant("reformat_json", "every call", run)


def add_optional_read(of: Original) -> Iterator[Mutant]:
    """One read more, of a tool that no rule names, after the first call.

    Not where a rule counts calls or turns, for which one more is one more, or where it would end a row.
    """
    if _counts_calls(of) or not of.run.tool_calls:
        return
    first = of.run.tool_calls[0]
    beside = {one.name for one in of.run.tool_calls if one is first or one.turn == first.turn}
    rows = [check.spec for check in of.checks if check.spec.get("kind") == "max_consecutive"]
    if any(_names(name, spec) for spec in rows for name in beside):
        return
    read = ToolCall(
        index=0, name=_READ, arguments={}, result={"from": 9, "to": 17}, status=CallStatus.OK,
        effect=Effect.READ, agent=first.agent, agent_spans=first.agent_spans,
    )  # fmt: skip
    yield _mutant("add_optional_read", f"after {describe(first)}", editing.inserted(of.run, first, [read]))


def drop_optional_read(of: Original) -> Iterator[Mutant]:
    """One read less, of a tool that no rule names.

    Not where calls are counted, where something is asked twice in the run, or between two calls of one tool.
    """
    calls = of.run.tool_calls
    asked = [_intent(call) for call in calls]
    if _counts_calls(of) or len(set(asked)) < len(asked) or len(calls) < 2:
        return
    text = json.dumps([dict(check.spec) for check in of.checks], default=str)
    for place, call in enumerate(calls):
        beside = {one.name for one in (*calls[max(0, place - 1) : place], *calls[place + 1 : place + 2])}
        if _is_read(call, of) and call.name not in text and len(beside) == min(2, len(calls) - 1):
            rest = editing.with_calls(of.run, [one for one in calls if one is not call])
            yield _mutant("drop_optional_read", describe(call), rest)
            return


def _counts_calls(of: Original) -> bool:
    """Whether one call more or less is a difference."""
    counts = ("budget", "match", "precision", "efficiency", "tool_selection", "learned")
    return any(
        str(check.spec.get("kind")).startswith(counts) or "within_steps" in check.spec for check in of.checks
    )


def _stand_alone(one: ToolCall, other: ToolCall, run: Trajectory) -> bool:
    """Whether one came before the other, and every third call before or after both, in another turn."""
    turns = {one.turn, other.turn} - {None}
    return (
        one.turn != other.turn
        and one.end_ns <= other.start_ns
        and all(
            (third.end_ns <= one.start_ns or third.start_ns >= other.end_ns) and third.turn not in turns
            for third in run.tool_calls
            if third is not one and third is not other
        )
    )


def _is_read(call: ToolCall, of: Original) -> bool:
    """Declared as a read; or declared as nothing, and judged as a call by no rule."""
    if call.status is not CallStatus.OK or call.arguments is None:
        return False
    return call.effect is Effect.READ or (
        call.effect is None and not _roles(call.name, of, ("call", "calls"))
    )


def _told_apart(one: ToolCall, other: ToolCall, of: Original) -> bool:
    for check in of.checks:
        text = json.dumps(dict(check.spec), default=str)
        roles = _roles(one.name, Original(run=of.run, checks=(check,), verdicts=()), ())
        if roles > 1 or (check.spec.get("kind") == "max_consecutive" and roles and check.spec.get("same")):
            return True
        if f"{RESULT_OF}.{one.name}." in text and not _all_say_which(one, other, of.run):
            return True
    return False


def _roles(tool: str, of: Original, keys: tuple[str, ...]) -> int:
    """How often rules name the tool, under these keys or under any."""
    return sum(
        _names(tool, part)
        for check in of.checks
        for key, part in check.spec.items()
        if key not in ("id", "severity", "kind") and (not keys or key in keys)
    )


def _names(tool: str, part: object) -> int:
    if isinstance(part, Mapping):
        return sum(_names(tool, item) for key, item in part.items() if key not in ("where", "must", "schema"))
    if isinstance(part, list | tuple):
        return sum(_names(tool, item) for item in part)
    return int(part == tool)


def _all_say_which(one: ToolCall, other: ToolCall, run: Trajectory) -> bool:
    """Whether every later call shares an argument with the two reads in which these differ."""
    mine, theirs = one.arguments or {}, other.arguments or {}
    telling = {name for name in set(mine) & set(theirs) if mine[name] != theirs[name]}
    later = [call for call in run.tool_calls if call.index > other.index and call.name != one.name]
    return all(telling & set(call.arguments or {}) for call in later)


def _intent(call: ToolCall) -> tuple[str, str]:
    return call.name, canonical_text(call.arguments, INTENT)


def _other_id(name: str | None) -> str | None:
    return None if name is None else f"renamed-{name}"


def _renamed(message: Message) -> Message:
    asked = tuple(replace(one, call_id=_other_id(one.call_id)) for one in message.tool_calls)
    return replace(message, tool_calls=asked, tool_call_id=_other_id(message.tool_call_id))


def _turned(value: object) -> object:
    """The value with the keys of every object in the other order."""
    if isinstance(value, Mapping):
        return _turned_object(value)
    if isinstance(value, list | tuple):
        return [_turned(item) for item in value]
    return value


def _turned_object(value: Mapping[str, object]) -> Mapping[str, object]:
    return {key: _turned(value[key]) for key in reversed(list(value))}


def _turned_text(value: object) -> object:
    inside = opened(value)
    if not isinstance(value, str) or inside is value:
        return _turned(value)
    separators = (", ", ": ") if '": ' in value else (",", ":")
    return json.dumps(_turned(inside), ensure_ascii=value.isascii(), separators=separators)


def _mutant(operator: str, place: str, run: Trajectory) -> Mutant:
    return Mutant(operator=operator, place=place, run=run, expected=Expected.SURVIVES)
