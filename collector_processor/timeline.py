"""A run as lines a person reads from top to bottom: what each turn asked for, what came back, what changed.

Pure: a run and its verdicts in, lines out. A line is never wider than the screen, and no character of a trace
moves the cursor. Stretches that repeat are shown once, with their number and the marks of all of them.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from redfirst.collector_processor.terminal import WIDTH, clean
from redfirst.evaluators.canonical import INTENT, digest
from redfirst.evaluators.logical import logical_calls
from redfirst.evaluators.paths import ABSENT, look_up, opened, show_path
from redfirst.evaluators.state_diff import changes
from redfirst.evaluators.trajectory import (
    MISSING,
    CallStatus,
    Effect,
    Handoff,
    ModelCall,
    RunEvent,
    ToolCall,
    Trajectory,
)
from redfirst.evaluators.verdict import Outcome, Verdict

Segment = tuple[str, str]
"""Text and its style; the empty style is plain."""
Line = tuple[Segment, ...]

GUTTER = 9
"""Columns of the label on the left."""
ROOM = WIDTH - GUTTER
_LEAST = 40
"""Columns a text keeps beside its tags; tags that leave fewer go to the next line."""
_FEW = 4
"""Changes of state shown after one write; those that a failed check points at are always shown."""
_LONG = 60
"""Calls from which on a run is long."""
_LONGEST_ROUND = 8
_FEWEST_ROUNDS = 3
_USUAL_FINISH = frozenset(
    {"stop", "tool_calls", "tool_call", "tool_use", "end_turn", "completed", "function_call"}
)
_PLAIN = re.compile(r"(?!(?:true|false|null|None|[-+.\d][\d.eE+-]*)$)[^\s\"'=,:{}\[\]]+")
_FAULTS: Mapping[CallStatus, str] = {
    CallStatus.TOOL_ERROR: "error",
    CallStatus.INFRA_ERROR: "infrastructure",
    CallStatus.DENIED: "denied",
    CallStatus.NOT_EXECUTED: "not run",
}

# -- text in columns


def columns(text: str) -> int:
    """The columns a terminal gives the text: two to a wide character."""
    return len(text) + sum(unicodedata.east_asian_width(c) in "WF" for c in text if c > "\u10ff")


def cut(text: str, width: int) -> str:
    """The text on one line in at most so many columns, with a mark where it was cut."""
    text = clean(text[: 4 * width + 4])
    if columns(text) <= width:
        return text
    kept, used = 0, 1
    for kept, char in enumerate(text):  # noqa: B007 - the place where it stopped is the result
        used += columns(char)
        if used > width:
            break
    return text[:kept].rstrip() + "…"


def wrapped(text: str, width: int, *, most: int = 40) -> list[str]:
    """The text on at most so many lines, with a mark where it was cut."""
    head = text[: 4 * width * most]
    lines, line = [], ""
    for word in clean(head).split():
        joined = f"{line} {word}" if line else word
        if columns(joined) <= width:
            line = joined
            continue
        lines += [line] if line else []
        line = cut(word, width)
    lines.append(line)
    if len(lines) <= most and len(head) == len(text):
        return lines
    last = lines[:most][-1]
    return [*lines[: most - 1], last if last.endswith("…") else f"{cut(last, width - 2)} …"]


def brief(value: object, room: int) -> str:
    """A value in at most so many columns; a mapping as ``key=value``, text bare where that is unambiguous."""
    pieces, used = [], 0
    for piece in _pieces(value, room, 0):
        pieces.append(piece)
        used += len(piece)
        if used > room:
            break
    return cut("".join(pieces), room)


def _pieces(value: object, room: int, depth: int) -> Iterator[str]:
    if value is ABSENT or value is MISSING:
        yield "absent" if value is ABSENT else "unknown"
    elif isinstance(value, str):
        head = value[: room + 1]
        yield head if _PLAIN.fullmatch(head) else json.dumps(head, ensure_ascii=False)
    elif isinstance(value, Mapping) and value and depth == 0:
        for place, (key, item) in enumerate(value.items()):
            yield f"{' ' if place else ''}{str(key)[:room]}="
            yield from _pieces(item, room, 1)
    elif isinstance(value, Mapping | list | tuple) and value and depth > 4:
        yield "…"
    elif isinstance(value, Mapping):
        for place, (key, item) in enumerate(value.items()):
            yield f"{', ' if place else '{'}{str(key)[:room]}: "
            yield from _pieces(item, room, depth + 1)
        yield "}" if value else "{}"
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield ", " if place else "["
            yield from _pieces(item, room, depth + 1)
        yield "]" if value else "[]"
    else:
        yield json.dumps(value) if value is None or isinstance(value, bool) else str(value)[: room + 1]


def row(
    label: str, body: str, *tags: Segment, style: str = "", label_style: str = "dim", least: int = _LEAST
) -> list[Line]:
    """A label, a text and tags at the right edge. The text is cut to fit, but for tags not below ``least``."""
    left = min(least, columns(cut(body, ROOM)))
    lines: list[list[Segment]] = [[]]
    used = left
    for text, of in tags:
        text = cut(text, ROOM - 2)
        if used + columns(text) + 2 > ROOM and (used > left or len(lines) == 1):
            lines.append([])
            used = 0
        lines[-1].append((f"  {text}", of))
        used += columns(text) + 2
    out: list[Line] = []
    for right in lines:
        free = ROOM - sum(columns(text) for text, _ in right)
        shown = cut(body, free) if not out else ""
        gap = " " * (free - columns(shown)) if right else ""
        out.append(
            (((label if not out else "").ljust(GUTTER), label_style), (shown, style), (gap, ""), *right)
        )
    return out


def paragraph(
    label: str, text: str, *, style: str = "", label_style: str = "dim", most: int = 40
) -> list[Line]:
    """A label and a text of several lines beside it."""
    first, *rest = wrapped(text, ROOM, most=most)
    return [
        ((label.ljust(GUTTER), label_style), (first, style)),
        *(((" " * GUTTER, ""), (line, style)) for line in rest),
    ]


# -- where failed checks point


class Witnesses:
    """The failed checks that point at each place of a run."""

    def __init__(self, run: Trajectory, verdicts: Iterable[Verdict]) -> None:
        self.calls: dict[int, list[Segment]] = defaultdict(list)
        self.states: dict[int, dict[tuple[str, ...], list[Segment]]] = defaultdict(dict)
        self.parts: dict[str, list[Segment]] = defaultdict(list)
        """By part of the run: its request, its termination, its answer."""
        self.spans: dict[str, list[Segment]] = defaultdict(list)
        self.elsewhere: list[tuple[str, str, Segment]] = []
        """Places without a line of their own: a label, what is said of them, the mark."""
        self.repeats: dict[int, Segment] = {}
        """Of each call that the check on repeats counted: which one it repeats."""
        repeated: set[int] = set()
        spans = chain(
            *((one.span_id for one in part) for part in (run.model_calls, run.handoffs, run.events))
        )
        known = set(spans) - {run.root_span_id}
        by_span = {call.span_id: call.index for call in reversed(run.tool_calls)}
        for verdict in sorted(verdicts, key=lambda one: -one.severity):
            if verdict.outcome is not Outcome.FAILED:
                continue
            mark = (f"◀ {verdict.check}", "red" if verdict.flags else "yellow")
            for item in verdict.evidence:
                place = [part.replace("~1", "/").replace("~0", "~") for part in item.pointer.split("/")[1:]]
                number = int(place[1]) if len(place) > 1 and place[1].isascii() and place[1].isdigit() else -1
                if place[:1] == ["tool_calls"] and 0 <= number < len(run.tool_calls):
                    _add(self.calls[number], mark)
                    if verdict.check == "repeats":
                        repeated.add(number)
                elif place[:1] == ["model_calls"] and 0 <= number < len(run.model_calls):
                    _add(self.spans[run.model_calls[number].span_id], mark)
                elif place[:1] == ["states"] and 0 < number < len(run.states):
                    _add(self.states[number].setdefault(tuple(place[3:]), []), mark)
                elif place[:1] in (["request"], ["termination"], ["answer"]):
                    _add(self.parts[place[0]], mark)
                elif not place and item.span_id in by_span:
                    _add(self.calls[by_span[item.span_id]], mark)
                elif not place and item.span_id in known:
                    _add(self.spans[item.span_id], mark)
                else:
                    label = "absent" if place == ["tool_calls"] else "witness"
                    self.elsewhere.append((label, item.note or verdict.because, mark))

        first: dict[tuple[str, str], int] = {}
        for call in run.tool_calls if repeated else ():
            intent = call.name, digest(call.arguments, INTENT)
            if call.index in repeated:
                told = f"repeat of #{first[intent] + 1}" if intent in first else "same answer again"
                self.repeats[call.index] = (told, "yellow")
            if call.ran:
                first.setdefault(intent, call.index)


def _add(marks: list[Segment], mark: Segment) -> None:
    if mark not in marks:
        marks.append(mark)


# -- the steps of a run


Happening = tuple[int, int] | Handoff | RunEvent
"""Two neighbouring snapshots of the state, by place; a hand-off; an event of the run."""


@dataclass(slots=True)
class _Step:
    """One turn of the model and the calls it asked for, or one call that no turn asked for."""

    turn: int | None = None
    model: ModelCall | None = None
    calls: list[ToolCall] = field(default_factory=list)
    after: dict[int, list[Happening]] = field(default_factory=lambda: defaultdict(list))
    """What happened after the call of that place; before any of them at -1."""

    @property
    def agent(self) -> str | None:
        return next((one.agent for one in (self.model, *self.calls) if one is not None and one.agent), None)

    def hands_over(self) -> list[Handoff]:
        """The hand-offs that followed it."""
        return [what for found in self.after.values() for what in found if isinstance(what, Handoff)]

    def points(self) -> Iterator[tuple[int, _Step, int]]:
        """When its turn and its calls began, as far as that is known, with their places."""
        if self.model is not None and self.model.start_ns:
            yield self.model.start_ns, self, -1
        yield from ((call.start_ns, self, place) for place, call in enumerate(self.calls) if call.start_ns)


def _steps(run: Trajectory) -> list[_Step]:
    turns = list(run.model_calls)
    steps: list[_Step] = []

    def turn_up_to(last: int | None, start_ns: int) -> None:
        while turns and (turns[0].index <= last if last is not None else turns[0].start_ns <= start_ns):
            steps.append(_Step(turn=turns[0].index, model=turns.pop(0)))

    for call in run.tool_calls:
        turn_up_to(call.turn, call.start_ns)
        if call.turn is None or not steps or steps[-1].turn != call.turn:
            steps.append(_Step(turn=call.turn))
        steps[-1].calls.append(call)
    steps.extend(_Step(turn=one.index, model=one) for one in turns)
    points = [point for step in steps for point in step.points()]
    for time_ns, what in _happenings(run):
        before = [point for point in points if point[0] <= time_ns]
        if not before and (not steps or steps[0].turn is not None or steps[0].calls):
            steps.insert(0, _Step())
        _, step, place = before[-1] if before else (0, steps[0], -1)
        step.after[place].append(what)
    return steps


def _happenings(run: Trajectory) -> list[tuple[int, Happening]]:
    found: list[tuple[int, Happening]] = [
        (after.time_ns, (n, n + 1)) for n, after in enumerate(run.states[1:])
    ]
    found += [(item.start_ns, item) for item in run.handoffs]
    found += [(item.time_ns, item) for item in run.events]
    return sorted(found, key=lambda pair: pair[0])


@dataclass(slots=True)
class _Block:
    """The lines of one step; two steps with equal ``alike`` differ in nothing but their numbers."""

    lines: list[Line] = field(default_factory=list)
    alike: list[object] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    marks: list[Segment] = field(default_factory=list)
    outline: list[object] = field(default_factory=list)
    """The tools it called, without arguments and answers."""
    plain: bool = True
    """Whether it did nothing but call tools that answered: nothing failed, changed or is pointed at."""

    def put(
        self, label: str, body: str, *tags: Segment, number: str = "", style: str = "", least: int = _LEAST
    ) -> None:
        self.lines += row(label, number + body, *tags, style=style, least=least)
        self.alike.append(
            (re.sub(r"\d+$", "", label), body, [re.sub(r"#\d+", "#", text) for text, _ in tags])
        )
        for tag in tags:
            if tag[0].startswith("◀"):
                _add(self.marks, tag)
                self.plain = False


def timeline(run: Trajectory, witnesses: Witnesses) -> list[Line]:
    """The turns and calls of a run in order, each failed check marked where it points; the request, the end and
    the answer are not among them."""
    retries = {
        attempt.index: f"retry of #{logical.first.index + 1}"
        for logical in logical_calls(run.tool_calls)
        for attempt in logical.attempts[1:]
    }
    blocks, agent, several = [], None, len(run.agents) > 1
    for step in _steps(run):
        block = _Block()
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
        chain.from_iterable(_folded([block for block in blocks if block.lines], len(run.tool_calls) > _LONG))
    )
    for label, words, mark in dict.fromkeys(witnesses.elsewhere):
        lines += row(label, words, mark, style="red", label_style="red")
    return lines


def _step(
    block: _Block, step: _Step, run: Trajectory, witnesses: Witnesses, retries: Mapping[int, str]
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


def _turn(block: _Block, label: str, model: ModelCall, run: Trajectory, witnesses: Witnesses) -> bool:
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


def _result(block: _Block, call: ToolCall, indent: str) -> None:
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
    block: _Block, found: Iterable[Happening], indent: str, run: Trajectory, witnesses: Witnesses
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


def _changed(
    block: _Block, pair: tuple[int, int], indent: str, run: Trajectory, witnesses: Witnesses
) -> None:
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


# -- folding


def _folded(blocks: Sequence[_Block], long: bool) -> Iterator[list[Line]]:
    """Rounds of up to eight steps that come three times or more in a row are shown once and counted. In a long
    run plain steps that call the same tools are such rounds too, whatever their arguments."""
    kinds = _numbered([b.outline if long and b.plain and b.calls else b.alike for b in blocks])
    at = 0
    while at < len(blocks):
        found = [
            (p, n) for p in range(1, _LONGEST_ROUND + 1) if (n := _rounds(kinds, at, p)) >= _FEWEST_ROUNDS
        ]
        period, rounds = max(found, key=lambda one: (one[0] * one[1], -one[0]), default=(1, 1))
        for block in blocks[at : at + period]:
            yield block.lines
        if rounds > 1:
            yield _fold(blocks[at : at + period * rounds], period)
        at += period * rounds


def _numbered(items: Iterable[list[object]]) -> list[int]:
    """A number for each, the same for equal ones."""
    known: dict[str, list[tuple[list[object], int]]] = defaultdict(list)
    out: list[int] = []
    for place, item in enumerate(items):
        near = known[repr(item[:1])]  # the parts that follow may be large, and are only compared
        number = next((number for other, number in near if other == item), place)
        if number == place:
            near.append((item, place))
        out.append(number)
    return out


def _rounds(kinds: Sequence[int], at: int, period: int) -> int:
    end = at
    while end + period < len(kinds) and kinds[end] == kinds[end + period]:
        end += 1
    return (end - at) // period + 1


def _fold(blocks: Sequence[_Block], period: int) -> list[Line]:
    """What stands for every round but the first, with the marks of all of them."""
    first, rest = blocks[:period], blocks[period:]
    same = all(block.alike == first[place % period].alike for place, block in enumerate(rest))
    calls = list(chain.from_iterable(block.calls for block in rest))
    marks: list[Segment] = []
    for mark in chain.from_iterable(block.marks for block in rest):
        _add(marks, mark)
    times = len(rest) // period
    if same:
        told = (
            f"the same {times} times more" if period == 1 else f"the same {period} steps {times} times more"
        )
    else:
        told = f"{times} more {'like it' if period == 1 else 'rounds like these'}, all ok, with other values"
    return row("", f"⋮ {told}{f' (#{calls[0]} to #{calls[-1]})' if calls else ''}", *marks, style="bold")
