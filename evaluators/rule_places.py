"""Where a rules file names tools and paths into their calls, with the tools that each path is of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from redfirst.evaluators import rule_base_shapes as base
from redfirst.evaluators import rule_kind_shapes as kinds
from redfirst.evaluators.conditions import Condition, ValueOf, parse_where
from redfirst.evaluators.file_shapes import RulesFile
from redfirst.evaluators.paths import RESULT_OF, RESULTS_OF, call_path
from redfirst.evaluators.shapes import CallShape
from redfirst.evaluators.strict_yaml import Path


@dataclass(frozen=True, slots=True)
class ToolPlace:
    """Where tools are named."""

    where: Path
    tools: tuple[str, ...]
    needed: bool = False
    """Whether a call to one of them must happen for the rule to be met."""


@dataclass(frozen=True, slots=True)
class PathPlace:
    """A key of the arguments or the answer of some tools."""

    where: Path
    tools: tuple[str, ...]
    part: str
    """``args`` or ``result``."""
    key: str
    path: str


@dataclass(frozen=True, slots=True)
class _Pattern:
    where: Path
    shape: CallShape | kinds.SinkShape
    needed: bool = False


_NEEDED = frozenset({"needs", "approval"})
_PATTERNS = ("call", "needs", "after", "until", "unless", "approval", "sources", "to")


def tools_in(shape: RulesFile) -> Iterator[ToolPlace]:
    """Every place that names tools, paths through an earlier result included."""
    for pattern in _patterns(shape):
        yield ToolPlace(pattern.where, tuple(pattern.shape.tool), pattern.needed)
    for number, rule in enumerate(shape.rules):
        if isinstance(rule, kinds.NoFlowShape) and rule.trusted:
            yield ToolPlace(("rules", number, "trusted"), tuple(rule.trusted))
    for where, _, path in _paths(shape):
        parts = call_path(path)
        if parts[0] in (RESULT_OF, RESULTS_OF):
            yield ToolPlace(where, (parts[1],))


def paths_in(shape: RulesFile) -> Iterator[PathPlace]:
    """Every path that names a key of the arguments or the answer of a tool."""
    for where, tools, path in _paths(shape):
        parts = path.split(".")
        if parts[0] in (RESULT_OF, RESULTS_OF):
            tools, parts = (call_path(path)[1],), ["result", *parts[2:]]
        named = tuple(name for name in tools if not name.startswith("$"))
        if parts[0] not in ("args", "result") or len(parts) < 2 or len(named) < len(tools):
            continue
        if parts[1] != "*" and not parts[1].isdigit():
            key = call_path(".".join(["args", parts[1]]))[1]
            yield PathPlace(where, named, parts[0], key, path)


def wheres_in(shape: RulesFile) -> Iterator[tuple[Path, tuple[tuple[str, Condition], ...]]]:
    """The conditions on calls, with the place of each mapping."""
    for pattern in _patterns(shape):
        if pattern.shape.where:
            yield (*pattern.where, "where"), parse_where(pattern.shape.where, call_path).conditions
    for number, rule in enumerate(shape.rules):
        if isinstance(rule, kinds.ArgsSchemaShape) and rule.must:
            yield ("rules", number, "must"), parse_where(rule.must, call_path).conditions


def _patterns(shape: RulesFile) -> Iterator[_Pattern]:
    for number, rule in enumerate(shape.rules):
        for name in _PATTERNS:
            found = getattr(rule, name, None)
            key = "from" if name == "sources" else name
            if isinstance(found, CallShape | kinds.SinkShape):
                yield _Pattern(("rules", number, key), found, name in _NEEDED)
        for name in ("calls", "steps"):
            for place, one in enumerate(getattr(rule, name, ())):
                last = place == len(getattr(rule, name)) - 1
                yield _Pattern(("rules", number, name, place), one, name == "steps" and not last)
    for number, task in enumerate(shape.tasks):
        for place, one in enumerate(task.required_calls or ()):
            yield _Pattern(("tasks", number, "required_calls", place), one, needed=True)


def _paths(shape: RulesFile) -> Iterator[tuple[Path, tuple[str, ...], str]]:
    """Every path with its place and the tools whose calls it leads into."""
    for pattern in _patterns(shape):
        where = (*pattern.where, "where")
        yield from _of_conditions(where, tuple(pattern.shape.tool), pattern.shape.where)
        if isinstance(pattern.shape, kinds.SinkShape):
            yield from (
                ((*pattern.where, "arg"), tuple(pattern.shape.tool), path) for path in pattern.shape.arg
            )
    for number, rule in enumerate(shape.rules):
        if not isinstance(rule, kinds.PythonShape):  # it speaks of no tool by name
            yield from _of_rule(("rules", number), rule)


def _of_rule(at: Path, rule: base.RuleShape) -> Iterator[tuple[Path, tuple[str, ...], str]]:
    judged, others = _sides(rule)
    for place, (other, own) in enumerate(getattr(rule, "same", ())):
        yield (*at, "same", place), others, other
        yield (*at, "same", place), judged, own
    match rule:
        case kinds.RequireBeforeShape() | kinds.ApprovalShape():
            for path, operators in rule.covers.items():
                yield (*at, "covers", path), others, path
                wanted = operators.values() if isinstance(operators, Mapping) else [operators]
                yield from (((*at, "covers", path), judged, str(one).removeprefix("call.")) for one in wanted)
            if isinstance(rule, kinds.ApprovalShape) and rule.approval is not None:
                yield (*at, "approver"), others, rule.approver
        case kinds.ArgsSchemaShape():
            yield from _of_conditions((*at, "must"), judged, rule.must)
        case kinds.BudgetShape() if rule.sum is not None:
            yield (*at, "sum"), judged, rule.sum
            yield from (((*at, "by", place), judged, pair[1]) for place, pair in enumerate(rule.by))
        case kinds.NoFlowShape():
            for place, (source, sink) in enumerate(rule.differs):
                yield (*at, "differs", place), others, source
                yield (*at, "differs", place), judged, sink


def _sides(rule: base.RuleShape) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tools of the judged calls, and those of the other calls that the rule ties to them."""
    listed: Sequence[CallShape] = getattr(rule, "calls", None) or getattr(rule, "steps", None) or ()
    every = tuple(dict.fromkeys(name for one in listed for name in one.tool))
    judged: CallShape | kinds.SinkShape | None = getattr(rule, "call", None) or getattr(rule, "to", None)
    other = next(
        (found for name in ("needs", "after", "approval", "sources") if (found := getattr(rule, name, None))),
        judged,
    )
    if judged is None or other is None:
        return every, every
    return tuple(judged.tool), tuple(other.tool)


def _of_conditions(
    where: Path, tools: tuple[str, ...], conditions: Mapping[str, object]
) -> Iterator[tuple[Path, tuple[str, ...], str]]:
    for path, condition in parse_where(conditions, call_path).conditions:
        yield (*where, path), tools, path
        for test in condition.tests:
            if isinstance(test.wanted, ValueOf):
                yield (*where, path), tools, test.wanted.path
