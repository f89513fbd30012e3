"""What a rules file says that cannot be meant: tools and paths that no run has, demands that nothing can meet.

The file itself is faultless when this is asked; what is wrong with its form is an error of its reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from redfirst.evaluators.check import judge
from redfirst.evaluators.linting_tools import ToolSeen, tools_seen
from redfirst.evaluators.rule_kind_shapes import ForbidShape, StateDiffShape
from redfirst.evaluators.rule_places import PathPlace, paths_in, tools_in, wheres_in
from redfirst.evaluators.rule_reach import contradiction
from redfirst.evaluators.rules import Rules
from redfirst.evaluators.shapes import AllowedShape
from redfirst.evaluators.state_diff import ANY_ONE, ANY_REST, parse_pattern
from redfirst.evaluators.strict_yaml import Path, nearest
from redfirst.evaluators.trajectory import Trajectory
from redfirst.evaluators.verdict import Outcome


class Level(StrEnum):
    """How sure it is that the file is wrong."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lint:
    """One complaint, with the line it is about."""

    line: int
    level: Level
    what: str
    """``unknown_tool``, ``unknown_path``, ``unreachable``, ``vacuous`` or ``wildcard``."""
    message: str


def lint(rules: Rules, runs: Sequence[Trajectory]) -> tuple[Lint, ...]:
    """Every complaint, by line. Without runs nothing is known of tools, so none of them is unknown."""
    seen = tools_seen(runs)
    found = [
        *(_unknown_tools(rules, seen) if seen else ()),
        *(_unknown_paths(rules, seen) if seen else ()),
        *_unreachable(rules),
        *_wildcards(rules),
        *(_vacuous(rules, runs) if runs else ()),
    ]
    return tuple(sorted(dict.fromkeys(found), key=lambda one: (one.line, one.what, one.message)))


def _unknown_tools(rules: Rules, seen: dict[str, ToolSeen]) -> Iterator[Lint]:
    for place in tools_in(rules.shape):
        for name in place.tools:
            if name not in seen and not name.startswith("$"):
                message = f"no run has a tool {name}; {nearest(name, sorted(seen))}"
                yield _at(rules, place.where, Level.ERROR, "unknown_tool", message)


def _unknown_paths(rules: Rules, seen: dict[str, ToolSeen]) -> Iterator[Lint]:
    for place in paths_in(rules.shape):
        tools = [seen[name] for name in place.tools if name in seen]
        lacking = [tool for tool in tools if tool.lacks(place.part, place.key)]
        if not tools or len(lacking) < len(place.tools):
            continue
        known = sorted({name for tool in tools for name in tool.known(place.part)})
        told = all(tool.told(place.part) for tool in lacking)
        where = "argument" if place.part == "args" else "key in its result"
        message = f"{place.path}: {_or(place)} has no {where} {place.key} in {_basis(lacking, told=told)}"
        message += f"; {nearest(place.key, known)}" if known else ""
        yield _at(rules, place.where, Level.ERROR if told else Level.WARNING, "unknown_path", message)


def _basis(tools: Sequence[ToolSeen], *, told: bool) -> str:
    return "its schema" if told else f"{sum(tool.calls for tool in tools)} call(s) seen"


def _or(place: PathPlace) -> str:
    return " or ".join(place.tools)


def _unreachable(rules: Rules) -> Iterator[Lint]:
    for where, conditions in wheres_in(rules.shape):
        for path, condition in conditions:
            if (why := contradiction(condition)) is not None:
                message = f"{path} can never be {condition}: {why}"
                yield _at(rules, (*where, path), Level.ERROR, "unreachable", message)
    banned = {
        tool: rule.id
        for rule in rules.shape.rules
        if isinstance(rule, ForbidShape)
        and not (rule.call.where or rule.call.status or rule.after or rule.when)
        for tool in rule.call.tool
    }
    for place in tools_in(rules.shape):
        if place.needed and all(name in banned for name in place.tools):
            rule = banned[place.tools[0]]
            message = f"{' or '.join(place.tools)} can never be called: {rule} forbids it"
            yield _at(rules, place.where, Level.ERROR, "unreachable", message)


def _wildcards(rules: Rules) -> Iterator[Lint]:
    for where, allowed in _allowed(rules):
        segments = parse_pattern(allowed.path)
        fixed = [part for part in segments if part not in (ANY_ONE, ANY_REST)]
        whole = segments[-1] == ANY_REST and len(segments) <= 2
        every_row = ANY_ONE in segments and not allowed.mentioned
        if whole or every_row:
            table = fixed[0] if fixed and segments[0] not in (ANY_ONE, ANY_REST) else "the whole state"
            message = (
                f"{allowed.path} lets every row of {table} change; name the row, or add mentioned: true,"
                " as in {path: orders.*.status, mentioned: true}"
            )
            yield _at(rules, (*where, "path"), Level.WARNING, "wildcard", message)


def _allowed(rules: Rules) -> Iterator[tuple[Path, AllowedShape]]:
    shape = rules.shape
    if shape.state is not None:
        yield from ((("state", "allowed", place), one) for place, one in enumerate(shape.state.allowed))
    for number, task in enumerate(shape.tasks):
        listed = task.state.allowed if task.state is not None else None
        yield from (
            (("tasks", number, "state", "allowed", place), one) for place, one in enumerate(listed or ())
        )
    for number, rule in enumerate(shape.rules):
        if isinstance(rule, StateDiffShape):
            yield from (
                (("rules", number, "allowed", place), one) for place, one in enumerate(rule.allowed or ())
            )


def _vacuous(rules: Rules, runs: Sequence[Trajectory]) -> Iterator[Lint]:
    """Checks that had nothing to judge, or could judge nothing, in any run."""
    verdicts = [judge(run, rules.checks) for run in runs]
    for number, check in enumerate(rules.checks):
        outcomes = {one[number].outcome for one in verdicts}
        if outcomes == {Outcome.NOT_APPLICABLE}:
            message = f"{check.id} had nothing to judge in any of {len(runs)} run(s)"
        elif outcomes <= {Outcome.NOT_APPLICABLE, Outcome.INCONCLUSIVE}:
            why = next(one[number].because for one in verdicts if one[number].outcome is Outcome.INCONCLUSIVE)
            message = f"{check.id} could not be told in any of {len(runs)} run(s): {why}"
        else:
            continue
        yield _at(rules, _place_of(rules, check.id), Level.WARNING, "vacuous", message)


def _place_of(rules: Rules, name: str) -> Path:
    for place, rule in enumerate(rules.shape.rules):
        if rule.id == name:
            return ("rules", place, "id")
    task = name.partition(":")[2]
    return next(
        (("tasks", place, "id") for place, one in enumerate(rules.shape.tasks) if one.id == task), ("state",)
    )


def _at(rules: Rules, where: Path, level: Level, what: str, message: str) -> Lint:
    return Lint(line=rules.document.line_of(where), level=level, what=what, message=message)
