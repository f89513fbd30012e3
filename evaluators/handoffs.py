"""Control passed between agents: which spans and which requested calls are that, and not tool calls."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from redfirst.evaluators.dialects.facts import Kind
from redfirst.evaluators.dialects.values import first_text
from redfirst.evaluators.joining import Asked, Joined
from redfirst.evaluators.structure import Node, Tree
from redfirst.evaluators.trajectory import Handoff

_CERTAIN = re.compile(
    r"hand_?off(_to_?(?P<target>.+))?|transfer_to_agent|delegate_work_to_(co_?)?worker", re.IGNORECASE
)
_LIKELY = re.compile(r"(transfer|delegate|route|switch)_(back_)?to_(?P<target>.+)", re.IGNORECASE)
_TARGET_KEYS = ("to_agent", "agent_name", "agent", "coworker", "recipient", "target", "destination", "name")
_FINAL = frozenset({"final_answer", "final_result"})
_FINAL_SPAN = "FinalAnswerTool"
"""How smolagents names the span of it, after the class."""
_SEPARATORS = re.compile(r"[\s\-.]+")


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a run's agents, and what they make of a tool's name.

    ``transfer_to_savings`` is a bank's tool and ``transfer_to_refunds_agent`` a hand-off: a name of
    the likely kind is one only when the run knows its target as an agent, or the target says it is one.
    """

    agents: frozenset[str]
    called: frozenset[str] = frozenset()
    """Agents that ran inside another one: a call of that very name is how control came to them."""

    @classmethod
    def of(cls, tree: Tree) -> Names:
        """Every name that an agent, or a node that holds model calls, has in the run."""
        found = {node.facts.name for node in tree.of_kind(Kind.AGENT) if node.facts.name}
        for node in tree.of_kind(Kind.MODEL):
            if node.facts.agent:
                found.add(node.facts.agent)
            found |= {above.span.name for above in tree.ancestors(node) if above.facts.kind is Kind.STRUCTURE}
        return cls(frozenset(_plain(name) for name in found if name), frozenset(_called(tree)))

    def target(self, name: str, arguments: Mapping[str, object] | None) -> str | None:
        """The agent a call of this name hands over to; empty when it is a hand-off to nobody named."""
        plain, certain, likely = _spelling(name)
        if plain in self.called:
            return name
        if certain:
            named = certain.group("target")
            return named or first_text(*((arguments or {}).get(key) for key in _TARGET_KEYS)) or ""
        if likely:
            target = likely.group("target")
            plain = _plain(target)
            if plain in self.agents or (plain.endswith("agent") and "human" not in plain):
                return target
        return None

    def is_handoff(self, name: str | None, arguments: Mapping[str, object] | None) -> bool:
        """Whether a call of this name passes control on."""
        return name is not None and self.target(name, arguments) is not None


@functools.lru_cache(maxsize=64)
def _spelling(name: str) -> tuple[str, re.Match[str] | None, re.Match[str] | None]:
    """The plain form of a tool's name, and how it matches the certain and the likely kind of a hand-off."""
    flat = _SEPARATORS.sub("_", name.strip())
    return _plain(name), _CERTAIN.fullmatch(flat), _LIKELY.fullmatch(flat)


def _called(tree: Tree) -> Iterable[str]:
    for node in tree.of_kind(Kind.AGENT):
        caller = tree.agent(node)
        while caller is not None and not caller.facts.name:
            caller = tree.agent(caller)
        if node.facts.name and caller is not None and caller.facts.name != node.facts.name:
            yield _plain(node.facts.name)


def gives_answer(name: str | None, span_name: str = "") -> bool:
    """Whether a call of this name is how a framework lets the model answer, and acts on nothing. ``span_name`` tells
    where the call's own name was lost."""
    return name in _FINAL or (name is None and span_name in {_FINAL_SPAN, *_FINAL})


def answer_in(arguments: Mapping[str, object] | None) -> str | None:
    """The answer such a call carries, where it is one text."""
    values = list((arguments or {}).values())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else None


def _plain(name: str) -> str:
    return _SEPARATORS.sub("_", name.strip().lower())


def handoffs_of(
    tree: Tree, names: Names, joined: Joined, asked: Sequence[Asked], spans: Iterable[Node]
) -> tuple[Handoff, ...]:
    """Each hand-off once: requested, executed as a tool, recorded as a span of its own, or all three."""
    out: list[Handoff] = []
    executed = {id(item): node for item, node in reversed(joined.pairs)}
    free = sorted(spans, key=lambda node: (node.span.start_ns, node.span.span_id))
    for item in asked:
        own = next((node for node in free if node.span.start_ns >= item.model.span.start_ns), None)
        if own is not None:
            free.remove(own)
        ran = executed.get(id(item))
        where = own or ran or item.model
        target = (
            (own.facts.name if own else None) or names.target(item.call.name, item.call.arguments) or None
        )
        out.append(_handoff(tree, where, name=item.call.name, target=target, at=item.model))
    for node in joined.unasked:
        target = names.target(node.facts.name or "", node.facts.arguments) or None
        out.append(_handoff(tree, node, name=node.facts.name, target=target, at=node))
    out.extend(_handoff(tree, node, name=None, target=node.facts.name, at=node) for node in free)
    return tuple(sorted(out, key=lambda item: (item.start_ns, item.span_id, item.name or "")))


def _handoff(tree: Tree, node: Node, *, name: str | None, target: str | None, at: Node) -> Handoff:
    source = (node.facts.agent if node.facts.kind is Kind.HANDOFF else None) or agent_name(tree, at)
    if target is None:
        later = [
            n for n in tree.of_kind(Kind.AGENT) if n.span.start_ns >= node.span.start_ns and n.facts.name
        ]
        target = later[0].facts.name if later else None
    return Handoff(
        source=source, target=target, span_id=node.span.span_id, name=name, start_ns=node.span.start_ns
    )


def agent_name(tree: Tree, node: Node) -> str | None:
    """The closest agent around it that has a name; else the one it names itself."""
    for agent in tree.agents(node):
        if agent.facts.name:
            return agent.facts.name
    return node.facts.agent


def agent_spans(tree: Tree, node: Node) -> tuple[str, ...]:
    """The spans of the agents around it, outermost first."""
    return tuple(agent.span.span_id for agent in reversed(tree.agents(node)))
