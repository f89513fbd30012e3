"""The tree of a run's spans, and the calls in it: each once, however many instrumentors recorded it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from redfirst.evaluators.canonical import same
from redfirst.evaluators.dialects.facts import Kind, SpanFacts
from redfirst.evaluators.span import Span
from redfirst.evaluators.trajectory import MISSING, Tokens

Key = tuple[str, str]
"""Trace id and span id."""


@dataclass(frozen=True, slots=True)
class Node:
    """One span and what it says."""

    span: Span
    facts: SpanFacts

    @property
    def key(self) -> Key:
        return self.span.trace_id, self.span.span_id


@dataclass(frozen=True, slots=True)
class Tree:
    """All spans of a run, in order of their start."""

    nodes: Mapping[Key, Node]
    parents: Mapping[Key, Key]
    """The parent of each node that has one here. Free of circles."""
    _agents: dict[Key, tuple[Node, ...]] = field(default_factory=dict, compare=False, repr=False)
    """Around whatever has this parent: most calls of a run have the same."""

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> Tree:
        """The tree; ``nodes`` in any order. The first of spans that name each other as parents is a top."""
        ordered = sorted(nodes, key=lambda node: (node.span.start_ns, node.span.span_id, node.span.trace_id))
        found = {node.key: node for node in ordered}
        parents = {
            key: above
            for key, node in found.items()
            if node.span.parent_id is not None
            and (above := (node.span.trace_id, node.span.parent_id)) in found
        }
        _cut_circles(parents, list(found))
        return cls(found, parents)

    def ancestors(self, node: Node) -> Iterator[Node]:
        """From the parent upwards."""
        above = self.parents.get(node.key)
        while above is not None:
            yield self.nodes[above]
            above = self.parents.get(above)

    def depth(self, node: Node) -> int:
        """How many ancestors are there."""
        return sum(1 for _ in self.ancestors(node))

    def nearest(self, node: Node, *kinds: Kind) -> Node | None:
        """The closest ancestor of one of these kinds."""
        key = self.parents.get(node.key)
        while key is not None:
            above = self.nodes[key]
            if above.facts.kind in kinds:
                return above
            key = self.parents.get(key)
        return None

    def host(self, node: Node) -> Node | None:
        """The ancestor of the same kind with nothing but structure between."""
        for above in self.ancestors(node):
            if above.facts.kind is node.facts.kind:
                return above
            if above.facts.kind is not Kind.STRUCTURE:
                return None
        return None

    def within(self, node: Node, other: Node) -> bool:
        """Whether ``other`` is an ancestor of ``node``."""
        return any(above.key == other.key for above in self.ancestors(node))

    def agent(self, node: Node) -> Node | None:
        """The agent that contains it."""
        return next(iter(self.agents(node)), None)

    def agents(self, node: Node) -> tuple[Node, ...]:
        """The agents around it, the closest first."""
        above = self.parents.get(node.key)
        if above is None:
            return ()
        if above not in self._agents:
            around = (self.nodes[above], *self.ancestors(self.nodes[above]))
            self._agents[above] = tuple(one for one in around if one.facts.kind is Kind.AGENT)
        return self._agents[above]

    def of_kind(self, kind: Kind) -> list[Node]:
        """All nodes of that kind, in order."""
        return [node for node in self.nodes.values() if node.facts.kind is kind]

    def tops(self) -> list[Node]:
        """Nodes whose parent is not here."""
        return [node for key, node in self.nodes.items() if key not in self.parents]


def _cut_circles(parents: dict[Key, Key], order: Sequence[Key]) -> None:
    """Take the parent from the first node of each circle."""
    rank = {key: place for place, key in enumerate(order)}
    if all(rank[above] < rank[key] for key, above in parents.items()):
        return
    safe: set[Key] = set()
    for key in order:
        path: list[Key] = []
        on_path: set[Key] = set()
        at: Key | None = key
        while at is not None and at not in safe and at not in on_path:
            path.append(at)
            on_path.add(at)
            at = parents.get(at)
        if at is not None and at in on_path:
            del parents[min(path[path.index(at) :], key=rank.__getitem__)]
        safe.update(path)


_Merge = Callable[[Node, Node], Node | None]
_Identity = Callable[[SpanFacts], str | None]


def model_nodes(tree: Tree) -> list[Node]:
    """Each call of a model once.

    Of nested model spans the inner one is the call and is completed from the outer one; an outer span
    around several calls is their frame. A span that says nothing beside others that do is preparation.
    """
    mine = tree.of_kind(Kind.MODEL)
    if any(node.facts.says_something for node in mine):
        mine = [node for node in mine if node.facts.says_something]
    kept = {node.key for node in mine}
    merged = _innermost(tree, mine, kept, _merge_models)
    merged = _siblings(tree, merged, lambda facts: facts.response_id, _merge_models)
    return _siblings(tree, merged, _counted, _merge_models)


def _counted(facts: SpanFacts) -> str | None:
    """What tells a call that came without an id: its numbers."""
    into, out = facts.tokens.input, facts.tokens.output
    return None if into is None or out is None else f"{into} {out}"


def tool_nodes(tree: Tree) -> list[Node]:
    """Each attempt of a tool call once: a client's and a server's span, or two instrumentors', are one."""
    mine = tree.of_kind(Kind.TOOL)
    kept = {node.key for node in mine}
    merged = _innermost(tree, mine, kept, _merge_tools)
    return _siblings(tree, merged, lambda facts: facts.call_id, _merge_tools)


def _innermost(tree: Tree, mine: Sequence[Node], kept: set[Key], merge: _Merge) -> list[Node]:
    """Fold every node into the same-kind node around it, from the leaves up."""
    current = {node.key: node for node in mine}
    inner: dict[Key, list[Key]] = {}
    for node in mine:
        host = tree.host(node)
        while host is not None and host.key not in kept:
            host = tree.host(host)
        if host is not None:
            inner.setdefault(host.key, []).append(node.key)
    for key in sorted(inner, key=lambda k: -tree.depth(tree.nodes[k])):
        alike = [k for k in inner[key] if k in current and merge(current[key], current[k]) is not None]
        calls = _siblings(tree, [current[k] for k in alike], _counted, merge) if len(alike) > 1 else []
        if len(alike) == 1 or len(calls) == 1:
            whole = merge(current[key], calls[0] if calls else current[alike[0]])
            current[key] = whole if whole is not None else current[key]
            for inside in alike:
                del current[inside]
        elif len(alike) > 1:
            del current[key]
    return sorted(current.values(), key=lambda node: (node.span.start_ns, node.span.span_id))


def _siblings(tree: Tree, nodes: Sequence[Node], identity: _Identity, merge: _Merge) -> list[Node]:
    """Fold nodes that two scopes wrote side by side about one call: same id, overlapping in time."""
    out: list[Node] = []
    places: dict[str, list[int]] = {}
    for node in nodes:
        mine = identity(node.facts)
        for place in places.get(mine, ()) if mine is not None else ():
            other = out[place]
            if other.span.scope != node.span.scope and _overlap(other, node) and not tree.within(node, other):
                whole = merge(other, node)
                if whole is not None:
                    out[place] = whole
                    break
        else:
            if mine is not None:
                places.setdefault(mine, []).append(len(out))
            out.append(node)
    return out


def _overlap(one: Node, other: Node) -> bool:
    return one.span.start_ns <= other.span.end_ns and other.span.start_ns <= one.span.end_ns


def _merge_models(outer: Node, inner: Node) -> Node | None:
    """One call: numbers from the inner span, errors as the caller saw them, everything else from either."""
    facts = _filled(inner.facts, outer.facts)
    tokens = Tokens(
        **{
            one.name: getattr(inner.facts.tokens, one.name)
            if getattr(inner.facts.tokens, one.name) is not None
            else getattr(outer.facts.tokens, one.name)
            for one in fields(Tokens)
        }
    )
    output = max((inner.facts.output, outer.facts.output), key=_told)
    return Node(
        outer.span,
        replace(
            facts,
            output=output,
            tokens=tokens,
            failed=outer.facts.failed,
            error=outer.facts.error,
            error_type=outer.facts.error_type,
            dialect=outer.facts.dialect,
        ),
    )


def _told(message: object) -> int:
    content, calls = getattr(message, "content", None), getattr(message, "tool_calls", ())
    return 0 if message is None else 1 + bool(content) + 2 * len(calls)


def _merge_tools(outer: Node, inner: Node) -> Node | None:
    """One call when names agree and arguments do not differ; otherwise the inner is a call of its own."""
    one, other = outer.facts, inner.facts
    if one.name and other.name and one.name != other.name:
        return None
    if one.arguments is not None and other.arguments is not None and not same(one.arguments, other.arguments):
        return None
    facts = _filled(one, other)
    told = (
        other.failed and isinstance(one.result, str) and bool(other.error) and str(other.error) in one.result
    )
    if told:
        # The framework caught the error and passes its text on as if it were a result.
        facts = replace(facts, result=MISSING, failed=True, error=other.error, error_type=other.error_type)
    elif one.result is MISSING and not one.failed and (other.failed or other.result is not MISSING):
        facts = replace(
            facts, result=other.result, failed=other.failed, error=other.error, error_type=other.error_type
        )
    return Node(outer.span, replace(facts, poll=one.poll or other.poll))


def _filled(first: SpanFacts, second: SpanFacts) -> SpanFacts:
    """The first, with what it does not say taken from the second."""
    missing = {
        one.name: getattr(second, one.name)
        for one in fields(SpanFacts)
        if getattr(first, one.name) in (None, (), MISSING) and one.name not in ("error", "error_type")
    }
    return replace(first, **missing)
