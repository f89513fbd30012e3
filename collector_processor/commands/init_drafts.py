"""Draft rules from the tools that were seen: a write needs a read of the same object first, and happens once to it.

Each draft was run over the runs it comes from; its comment says how many it would flag. Drafts are notes, which flag
nothing, until a person raises their severity.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from redfirst.collector_processor.terminal import clean
from redfirst.evaluators import yaml_writer
from redfirst.evaluators.check import check_from_spec, judge
from redfirst.evaluators.rule_shapes import SCHEMA
from redfirst.evaluators.trajectory import Effect, ToolCall, Trajectory
from redfirst.evaluators.verdict import Outcome

Rule = Mapping[str, object]

_NAME = 80
"""Characters of a tool's name in a comment, which it must not be able to end."""

_READS = (
    *("get", "list", "search", "find", "read", "fetch", "lookup", "look", "query", "show", "view", "check"),
    *("verify", "describe", "count", "retrieve", "load", "browse", "validate"),
)
_WRITES = (
    *(
        "create",
        "update",
        "delete",
        "remove",
        "cancel",
        "refund",
        "send",
        "set",
        "add",
        "write",
        "post",
        "put",
    ),
    *("patch", "insert", "book", "buy", "pay", "transfer", "charge", "submit", "place", "issue", "modify"),
    *("change", "edit", "close", "reserve", "order", "ship", "return", "exchange", "approve", "reject"),
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYS = re.compile(
    r"(^|_)(id|ids|key|uuid|number|no|code|name|email|path|ref|reference)$|Id$|ID$", re.IGNORECASE
)


@dataclass(slots=True)
class Tool:
    """A tool as the runs show it."""

    name: str
    calls: int = 0
    runs: int = 0
    arguments: Counter[str] = field(default_factory=Counter)
    declared: Counter[Effect] = field(default_factory=Counter)

    @property
    def effect(self) -> Effect | None:
        """What its spans declare, else what its name says; None when neither says anything."""
        if self.declared:
            return self.declared.most_common(1)[0][0]
        return guessed(self.name)


def guessed(name: str) -> Effect | None:
    """The effect that a tool's name speaks of, by its first word that does."""
    for word in _WORD.findall(name):
        if word.lower() in _READS:
            return Effect.READ
        if word.lower() in _WRITES:
            return Effect.WRITE
    return None


def tools_in(runs: Iterable[Trajectory]) -> list[Tool]:
    """Every tool that was called, by name."""
    found: dict[str, Tool] = {}
    for run in runs:
        for call in run.tool_calls:
            _note(found.setdefault(call.name, Tool(call.name)), call)
        for name in {call.name for call in run.tool_calls}:
            found[name].runs += 1
    return [found[name] for name in sorted(found)]


def _note(tool: Tool, call: ToolCall) -> None:
    tool.calls += 1
    tool.arguments.update(name for name in call.arguments or {} if _PLAIN.fullmatch(name))
    if call.effect is not None:
        tool.declared[call.effect] += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One rule and what it did on the runs it was drafted from."""

    rule: Rule
    tool: Tool
    flagged: int
    judged: int
    """Runs in which the rule had something to say."""
    runs: int


def drafts(runs: Sequence[Trajectory]) -> list[Draft]:
    """The draft rules for every write tool that was seen."""
    tools = tools_in(runs)
    reads = [tool for tool in tools if tool.effect is Effect.READ]
    taken: set[str] = set()
    found: list[Draft] = []
    for tool in tools:
        if tool.effect is not Effect.WRITE:
            continue
        found += [_tried(rule, tool, runs) for rule in _rules(tool, reads, taken)]
    return found


def _rules(tool: Tool, reads: Sequence[Tool], taken: set[str]) -> Iterator[Rule]:
    shared = _key(tool, {name for read in reads for name in read.arguments}, any_name=True)
    if shared is not None:
        needs = [read.name for read in reads if shared in read.arguments]
        yield {
            "id": _id(f"read-before-{tool.name}", taken),
            "kind": "require_before",
            "severity": "note",
            "call": tool.name,
            "needs": needs[0] if len(needs) == 1 else needs,
            "same": [f"args.{shared}"],
        }
    key = _key(tool, {shared} if shared else set(tool.arguments))
    if key is not None:
        yield {
            "id": _id(f"{tool.name}-once-per-{key}", taken),
            "kind": "max_calls",
            "severity": "note",
            "call": tool.name,
            "max": 1,
            "same": [f"args.{key}"],
        }


def _key(tool: Tool, among: AbstractSet[str], *, any_name: bool = False) -> str | None:
    """The argument that says which object is meant: called like a key where there is one, and used most."""
    names = [name for name in tool.arguments if name in among]
    keys = [name for name in names if _KEYS.search(name)]
    found = keys or (names if any_name else [])
    return min(found, key=lambda name: (-tool.arguments[name], name), default=None)


def _id(text: str, taken: set[str]) -> str:
    base = re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-.")[:90]
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    taken.add(name)
    return name


def _tried(rule: Rule, tool: Tool, runs: Sequence[Trajectory]) -> Draft:
    check = check_from_spec(rule)
    outcomes = Counter(judge(run, [check])[0].outcome for run in runs)
    return Draft(
        rule=rule,
        tool=tool,
        flagged=outcomes[Outcome.FAILED],
        judged=outcomes[Outcome.FAILED] + outcomes[Outcome.PASSED],
        runs=len(runs),
    )


def rules_text(found: Sequence[Draft], tools: Sequence[Tool]) -> str:
    """The rules file."""
    lines = [
        "# Draft rules, made by redfirst init from the tools that were seen. Read each one: keep it and raise its",
        "# severity to flag, change it, or delete it. As a note it is judged and shown, and flags nothing.",
        f"schema: {SCHEMA}",
        "",
        "rules:" if found else "rules: []",
    ]
    for draft in found:
        guess = "" if draft.tool.declared else "; that it writes is guessed from its name"
        lines += [
            f"  # draft: {clean(draft.tool.name)[:_NAME]} observed {draft.tool.calls} times, would flag "
            f"{draft.flagged} runs of {draft.runs} ({draft.judged} could be judged{guess})",
            *(f"  {line}" if line else "" for line in yaml_writer.dump([draft.rule]).splitlines()),
            "",
        ]
    drafted = {draft.tool.name for draft in found}
    lines += _left_out(tools, drafted)
    return "\n".join(lines).rstrip() + "\n"


def _left_out(tools: Sequence[Tool], drafted: set[str]) -> list[str]:
    unknown = [tool for tool in tools if tool.effect is None]
    bare = [tool for tool in tools if tool.effect is Effect.WRITE and tool.name not in drafted]
    lines = []
    if unknown:
        lines += [
            "# No draft: neither their spans nor their names say whether these read or write; declare it with "
            '@tool(effect="…"):',
            *(f"#   {clean(tool.name)[:_NAME]} ({tool.calls} calls)" for tool in unknown),
        ]
    if bare:
        lines += [
            "# No draft: these write, and no argument says to what object:",
            *(f"#   {clean(tool.name)[:_NAME]} ({tool.calls} calls)" for tool in bare),
        ]
    return lines
