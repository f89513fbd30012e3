"""What the model asked for and what was executed, joined call by call."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from redfirst.evaluators.canonical import canonical_text, same
from redfirst.evaluators.structure import Key, Node, Tree
from redfirst.evaluators.trajectory import RequestedCall

_FOREVER = 2**64
_Window = Callable[["Asked"], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Asked:
    """One call a model asked for."""

    turn: int
    order: int
    call: RequestedCall
    model: Node


@dataclass(frozen=True, slots=True)
class Joined:
    """The pairs, and what found no partner."""

    pairs: tuple[tuple[Asked, Node], ...] = ()
    unanswered: tuple[Asked, ...] = ()
    unasked: tuple[Node, ...] = ()


class _Desk:
    """Who is still without a partner while the rules are applied one after the other."""

    def __init__(self, asked: Sequence[Asked], nodes: Sequence[Node]) -> None:
        self.asked = list(asked)
        self.nodes = sorted(nodes, key=_start)
        self.starts = [node.span.start_ns for node in self.nodes]
        self.free = [True] * len(self.nodes)
        self.pairs: list[tuple[Asked, Node]] = []
        self.by_id: dict[str, list[int]] = {}
        for place, node in enumerate(self.nodes):
            if node.facts.call_id is not None:
                self.by_id.setdefault(node.facts.call_id, []).append(place)

    def apply(self, fits: Callable[[RequestedCall, Node], bool], window: _Window) -> None:
        """Pair every request with the first execution in its window that fits it."""
        left: list[Asked] = []
        for asked in self.asked:
            begin, end = window(asked)
            places = range(bisect_left(self.starts, begin), bisect_left(self.starts, end))
            if not self._pair(asked, (n for n in places if self.free[n] and fits(asked.call, self.nodes[n]))):
                left.append(asked)
        self.asked = left

    def apply_ids(self, window: _Window) -> None:
        """Pair every request with the first execution in its window that carries its call id."""
        left: list[Asked] = []
        for asked in self.asked:
            begin, end = window(asked)
            places = self.by_id.get(asked.call.call_id or "", ())
            if not self._pair(asked, (n for n in places if self.free[n] and begin <= self.starts[n] < end)):
                left.append(asked)
        self.asked = left

    def _pair(self, asked: Asked, places: Iterator[int]) -> bool:
        place = next(places, None)
        if place is None:
            return False
        self.pairs.append((asked, self.nodes[place]))
        self.free[place] = False
        return True

    def unasked(self) -> list[Node]:
        """Executions without a request, in order."""
        return [node for node, free in zip(self.nodes, self.free, strict=True) if free]


def join(tree: Tree, models: Sequence[Node], asked: Sequence[Asked], nodes: Sequence[Node]) -> Joined:
    """Pair requests with executions: by call id; by name and equal arguments; by name and contained
    arguments, since code may add a key; by name in order within the turn. A turn's own time comes first:
    some servers number the calls of every turn anew."""
    desk = _Desk(asked, nodes)
    windows = _windows(tree, models, asked)
    desk.apply_ids(lambda item: windows[item.turn])
    desk.apply_ids(lambda _: (0, _FOREVER))
    for rule in (_equal, _contained, _bare, _named):
        desk.apply(rule, lambda item: windows[item.turn])
    for rule in (_equal, _contained, _bare):
        desk.apply(rule, lambda item: (item.model.span.start_ns, _FOREVER))
    retries = _retries(desk)
    again = {node.key for _, node in retries}
    unasked = tuple(node for node in desk.unasked() if node.key not in again)
    return Joined((*desk.pairs, *retries), tuple(desk.asked), unasked)


def _retries(desk: _Desk) -> list[tuple[Asked, Node]]:
    """Further attempts of a call that already has its first: the same id, executed again."""
    by_id = {asked.call.call_id: asked for asked, _ in desk.pairs if asked.call.call_id is not None}
    return [(by_id[node.facts.call_id], node) for node in desk.unasked() if node.facts.call_id in by_id]


def _start(node: Node) -> tuple[int, str]:
    return node.span.start_ns, node.span.span_id


def _named(call: RequestedCall, node: Node) -> bool:
    """Frameworks show the model a name in another spelling: ``Delegate work`` and ``delegate_work``.
    A name that either side did not record does not keep them apart."""
    name = node.facts.name
    return not call.name or name is None or call.name == name or spelled(call.name) == spelled(name)


def spelled(name: str) -> str:
    """The name without case and separators."""
    return "".join(c for c in name.lower() if c.isalnum())


def _equal(call: RequestedCall, node: Node) -> bool:
    given, done = call.arguments, node.facts.arguments
    return _named(call, node) and given is not None and done is not None and same(given, done)


def _contained(call: RequestedCall, node: Node) -> bool:
    given, done = call.arguments, node.facts.arguments
    if not _named(call, node) or given is None or done is None:
        return False
    return all(key in done and same(value, done[key]) for key, value in given.items())


def _bare(call: RequestedCall, node: Node) -> bool:
    """Values recorded without names are those of the request, in any order."""
    given, done = call.arguments, node.facts.bare_arguments
    if not _named(call, node) or given is None or done is None:
        return False
    return sorted(map(canonical_text, given.values())) == sorted(map(canonical_text, done))


def _windows(tree: Tree, models: Sequence[Node], asked: Iterable[Asked]) -> Mapping[int, tuple[int, int]]:
    """When the calls of each turn may begin: until the same agent asks its model again."""
    starts: dict[Key | None, list[int]] = {}
    for node in models:
        starts.setdefault(agent_key(tree, node), []).append(node.span.start_ns)
    for times in starts.values():
        times.sort()
    windows: dict[int, tuple[int, int]] = {}
    for item in asked:
        if item.turn not in windows:
            span = item.model.span
            mine = starts.get(agent_key(tree, item.model), ())
            after = bisect_right(mine, max(span.start_ns, span.end_ns))
            windows[item.turn] = (span.start_ns, mine[after] if after < len(mine) else _FOREVER)
    return windows


def agent_key(tree: Tree, node: Node) -> Key | None:
    agent = tree.agent(node)
    return agent.key if agent else None
