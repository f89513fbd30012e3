"""The values that tie two calls together (``same``), and how calls are named in sentences and subjects."""

from __future__ import annotations

from dataclasses import dataclass

from redfirst.evaluators.canonical import canonical, canonical_text, equal, key_text
from redfirst.evaluators.kleene import Truth, all_of
from redfirst.evaluators.paths import ABSENT, parse_path
from redfirst.evaluators.rule_kinds.calls import look
from redfirst.evaluators.rule_kinds.order import Scope, in_scope
from redfirst.evaluators.trajectory import MISSING, ToolCall, Trajectory

_LONGEST = 60

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Same:
    """Pairs of paths, on the other call and on the judged call, whose values must be equal."""

    pairs: tuple[tuple[str, str], ...] = ()
    order: str = "decided"
    scope: Scope = "trace"

    def of_call(self, call: ToolCall, run: Trajectory) -> Key:
        """The judged call's values."""
        return tuple(look(path, call, run, self.order) for _, path in self.pairs)

    def of_other(self, call: ToolCall, run: Trajectory) -> Key:
        """The other call's values."""
        return tuple(look(path, call, run, self.order) for path, _ in self.pairs)

    def ties(self, other: ToolCall, call: ToolCall, key: Key, run: Trajectory) -> Truth:
        """Whether the other call belongs to the judged call, whose values are ``key``."""
        if in_scope(other, call, self.scope) is False:
            return False
        return all_of((in_scope(other, call, self.scope), equal_keys(self.of_other(other, run), key)))

    def group(self, call: ToolCall, key: Key) -> str | None:
        """What calls share that are counted together; ``None`` where a value of it is not there."""
        whole = (*key, MISSING if call.agent is None else call.agent) if self.scope == "agent" else key
        return key_text(whole) if bound(whole) else None

    def subject(self, tool: str, key: Key) -> str:
        """``tool|values``: what failed, in words that repeat from run to run."""
        return "|".join((tool, *(show(value) for value in key)))

    def of_the_same(self, key: Key) -> str:
        """`` of the same customer C-77``, or nothing."""
        named = [f"{label(path)} {show(value)}" for (_, path), value in zip(self.pairs, key, strict=True)]
        return f" of the same {' and '.join(named)}" if named else ""

    def for_each(self, key: Key) -> str:
        """`` for order A-7``, or nothing."""
        named = [f"{label(path)} {show(value)}" for (_, path), value in zip(self.pairs, key, strict=True)]
        return f" for {' and '.join(named)}" if named else ""


def bound(key: Key) -> bool:
    """Whether every value of the key is there."""
    return not any(value is MISSING or value is ABSENT for value in key)


def equal_keys(left: Key, right: Key) -> Truth:
    """Whether the keys are equal, as conditions mean it; a value that is not there is unknown."""
    return all_of(
        equal(one, other) if bound((one, other)) else None for one, other in zip(left, right, strict=True)
    )


def show(value: object) -> str:
    """A value in a sentence: on one line and short."""
    if value is MISSING or value is ABSENT:
        return "?"
    plain = canonical(value)
    text = plain if isinstance(plain, str) else canonical_text(plain)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def label(path: str) -> str:
    """What the value at a path is called: ``customer`` for ``args.customer_id``."""
    name = parse_path(path)[-1]
    return name.removesuffix("_id") or name


def describe(call: ToolCall) -> str:
    """``cancel_order (order B-7)``: the tool and the one or two arguments that say which one."""
    arguments = {
        name: value
        for name, value in sorted((call.arguments or {}).items())
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    }
    telling = {
        name: value for name, value in arguments.items() if name == "id" or name.endswith("_id")
    } or arguments
    named = [f"{label(name)} {show(value)}" for name, value in list(telling.items())[:2]]
    return f"{call.name} ({', '.join(named)})" if named else call.name
