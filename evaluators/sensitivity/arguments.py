"""Breaks of rules on arguments: a value beyond its bound, of another list, of another shape, or from a tainted source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from redfirst.evaluators import rule_kind_shapes as shapes
from redfirst.evaluators.check import Check
from redfirst.evaluators.conditions import ORDERED, parse_where
from redfirst.evaluators.paths import ABSENT, call_path
from redfirst.evaluators.rule_kinds.keys import describe
from redfirst.evaluators.rule_kinds.order import before
from redfirst.evaluators.sensitivity import editing
from redfirst.evaluators.sensitivity.mutant import Expected, Mutant, Original
from redfirst.evaluators.sensitivity.places import argument, judged, looking, read_elsewhere, value_at
from redfirst.evaluators.sensitivity.values import another, breaking
from redfirst.evaluators.trajectory import MISSING, CallStatus, ToolCall, Trajectory

_LITERAL = re.compile(r"\^([A-Za-z0-9_ -]+)\$?")
_TAINT = "mallory@planted.example"


def breaks_of_arguments(of: Original, check: Check, shape: shapes.ArgsSchemaShape) -> Iterator[Mutant]:
    """For each call that the rule judges, one argument that its conditions or its schema refuse."""
    if not of.right(check):
        return
    for call in judged(shape.call, shape, of.run):
        for path, condition in parse_where(shape.must, call_path).conditions:
            keys = argument(path)
            value = value_at(path, call, of.run, shape.order)
            if keys is None or value is MISSING or value is ABSENT:
                continue
            wrong = breaking(condition, value, looking(call, of.run, shape.order))
            if wrong is MISSING:
                continue
            bounded = any(test.operator in ORDERED for test in condition.tests)
            yield _mutant("past_bound" if bounded else "bad_argument", keys, wrong, call, of.run, check)
            if shape.missing is None:
                yield replace(_mutant("drop_attr", keys, ABSENT, call, of.run, check), expected=Expected.OPEN)
        for name, part in _properties(shape.json_schema):
            if call.arguments is None or name not in call.arguments:
                continue
            for operator, wrong in _misfits(part, call.arguments[name]):
                yield _mutant(operator, (name,), wrong, call, of.run, check)


def open_keys(
    of: Original, check: Check, shape: shapes.RequireBeforeShape | shapes.ApprovalShape, call: ToolCall
) -> Iterator[Mutant]:
    """A call without one of the values that tie it to its need: nobody can tell whether it had one.

    Not where the rule reads another call's answer for it, which the value may choose.
    """
    if read_elsewhere([*shape.call.where, *(pair[1] for pair in shape.same)]):
        return
    for pair in shape.same:
        keys = argument(pair[1])
        if keys is not None and shape.missing is None and value_at(pair[1], call, of.run) is not ABSENT:
            yield replace(_mutant("drop_attr", keys, ABSENT, call, of.run, check), expected=Expected.OPEN)


def breaks_of_flow(of: Original, check: Check, shape: shapes.NoFlowShape) -> Iterator[Mutant]:
    """A value that only an untrusted answer has reaches the tool."""
    if (
        not of.right(check)
        or shape.sources is None
        or shape.mode != "value"
        or shape.pattern
        or shape.differs
    ):
        return
    run = of.run
    for call in run.calls_to(*shape.to.tool):
        keys = next((keys for path in shape.to.arg if (keys := argument(path))), None)
        sources = [
            one
            for one in run.calls_to(*shape.sources.tool)
            if one.status is CallStatus.OK and before(one, call, shape.order) is True
        ]
        if keys is None or not sources or shape.unless or shape.to.where or shape.sources.where:
            continue
        source = sources[0]
        said = editing.with_call(run, source, replace(source, result=_said(source.result)))
        twin = said.tool_calls[call.index]
        tainted = editing.with_call(said, twin, editing.given(twin, keys, _TAINT))
        yield Mutant(
            operator="taint_arg",
            place=f"{describe(call)}: {'.'.join(keys)} from {source.name}",
            run=tainted,
            killers=frozenset({check.id}),
        )


def _said(result: object) -> object:
    """An answer that names the planted address beside what it said."""
    if isinstance(result, Mapping):
        return {**result, "planted": _TAINT}
    return [result, _TAINT] if not isinstance(result, str) else f"{result} {_TAINT}"


def _properties(schema: Mapping[str, object] | None) -> list[tuple[str, Mapping[str, object]]]:
    parts = (schema or {}).get("properties")
    found = parts.items() if isinstance(parts, Mapping) else ()
    return [(str(name), part) for name, part in found if isinstance(part, Mapping)]


def _misfits(part: Mapping[str, object], value: object) -> Iterator[tuple[str, object]]:
    """Values that a keyword of the schema refuses, each with the name of the break."""
    for keyword, limit in part.items():
        match keyword, limit:
            case "maximum" | "exclusiveMaximum", int() | float():
                yield "past_bound", limit + 1
            case "minimum" | "exclusiveMinimum", int() | float():
                yield "past_bound", limit - 1
            case "multipleOf", int() | float() if isinstance(value, int | float):
                yield "bad_argument", value + limit / 2
            case "maxItems", int() if isinstance(value, list) and value:
                yield "past_bound", [*value, *value[:1] * (limit + 1 - len(value))]
            case "maxContains", int() if isinstance(value, list):
                item = _example(part.get("contains"))
                if item is not None:
                    yield "past_bound", [*value, *[item] * (limit + 1)]
            case "enum" | "const" | "pattern", _:
                yield "bad_argument", another(value)
            case "type", str() if limit != "object":
                yield "bad_argument", {"another": "type"}
            case _:
                pass


def _example(schema: object) -> Mapping[str, object] | None:
    """An object that fits properties whose patterns are literal beginnings."""
    found = {}
    for name, part in _properties(schema if isinstance(schema, Mapping) else None):
        literal = _LITERAL.fullmatch(str(part.get("pattern", "")))
        if literal is None:
            return None
        found[name] = f"{literal[1]}0"
    return found or None


def _mutant(
    operator: str, keys: tuple[str, ...], value: object, call: ToolCall, run: Trajectory, check: Check
) -> Mutant:
    shown = "gone" if value is ABSENT else f"{value!r:.40}"
    return Mutant(
        operator=operator,
        place=f"{describe(call)}: {'.'.join(keys)} {shown}",
        run=editing.with_call(run, call, editing.given(call, keys, value)),
        killers=frozenset({check.id}),
    )
