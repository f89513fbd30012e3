"""The tools that some runs have: called, or offered to a model, with their arguments and what they answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from redfirst.evaluators.paths import opened
from redfirst.evaluators.tool_schemas import offered
from redfirst.evaluators.trajectory import MISSING, Trajectory


@dataclass(slots=True)
class ToolSeen:
    """One tool, as runs show it."""

    calls: int = 0
    arguments: set[str] = field(default_factory=set)
    schema: set[str] | None = None
    """The arguments that its schema names."""
    answers: set[str] | None = field(default_factory=set)
    """The keys of its answers; ``None`` when one of them is no object."""

    def known(self, part: str) -> AbstractSet[str]:
        """The names that were seen in its arguments (``args``) or answers (``result``)."""
        return {*self.arguments, *(self.schema or ())} if part == "args" else (self.answers or set())

    def told(self, part: str) -> bool:
        """Whether a schema says what there is, so that a name it lacks is a mistake."""
        return part == "args" and self.schema is not None

    def lacks(self, part: str, name: str) -> bool:
        """Whether enough was seen to say that it has no such name."""
        if part == "args":
            return (self.calls > 0 or self.schema is not None) and name not in self.known(part)
        return bool(self.answers) and name not in self.known(part)


def tools_seen(runs: Iterable[Trajectory]) -> dict[str, ToolSeen]:
    """Every tool of the runs, by name."""
    found: dict[str, ToolSeen] = {}
    for run in runs:
        for call in run.tool_calls:
            tool = found.setdefault(call.name, ToolSeen())
            tool.calls += 1
            tool.arguments.update(call.arguments or ())
            _note_schema(tool, call.schema)
            if call.result is not MISSING and call.result is not None:
                _note_answer(tool, opened(call.result))
        for turn in run.model_calls:
            for definition in turn.tools or ():
                named = offered(definition)
                if named is not None:
                    _note_schema(found.setdefault(named[0], ToolSeen()), named[1])
    return found


def _note_schema(tool: ToolSeen, schema: Mapping[str, object] | None) -> None:
    properties = (schema or {}).get("properties")
    if isinstance(properties, Mapping):
        tool.schema = {*(tool.schema or ()), *map(str, properties)}


def _note_answer(tool: ToolSeen, answer: object) -> None:
    if not isinstance(answer, Mapping):
        tool.answers = None
    elif tool.answers is not None:
        tool.answers.update(map(str, answer))
