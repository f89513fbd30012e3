"""What was recorded: tool responses matched by arguments, model turns matched by request.

Position never answers a call: it only breaks ties among responses that match. A miss says what was
nearest and how it differed, and is never answered by the live tool or by an invented value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redfirst.evaluators.canonical import canonical_text, digest, same
from redfirst.replay.asking import FACTS, Asked, asked, asked_in_facts
from redfirst.replay.stop import HarnessStop, StopKind

Json = Any

LONGEST_KEY = 200
"""Characters of arguments that a reader of a scenario still compares by eye."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One recorded answer of a tool."""

    tool: str
    when: Mapping[str, Json]
    """The arguments it answers."""
    after: tuple[str, ...] = ()
    """The writes that had succeeded in its run before it, as ``name {arguments}``: it answers in that state."""
    returns: Json = None
    failed: bool = False
    """Whether what it returns says of itself that it is an error."""
    error: Mapping[str, Json] | None = None
    """``{type, message}`` of the exception the tool raised."""
    set: Mapping[str, Json] = field(default_factory=dict)
    """Effects on the state, by JSON pointer (RFC 6901)."""
    unset: tuple[str, ...] = ()
    times: int | None = 1
    """How often it may be given; ``None``: any number of times."""
    source: str = "incident"
    """``incident``, ``control`` or ``authored``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFixture:
    """The recorded answers of one tool and how a call finds them."""

    name: str
    effect: str | None
    responses: tuple[Response, ...]
    args: tuple[str, ...] | None = None
    """The arguments that must agree; ``None``: all."""
    ignore: tuple[str, ...] = ()

    def differing(self, response: Response, arguments: Mapping[str, Json]) -> list[str]:
        """The arguments in which a call differs from a recording; null and absent are the same."""
        keys = self.args if self.args is not None else sorted({*response.when, *arguments})
        return [k for k in keys if k not in self.ignore and not same(response.when.get(k), arguments.get(k))]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTurn:
    """One recorded model call."""

    turn: int
    response: Json
    error: Mapping[str, Json] | None = None
    """``{type, message}`` when the model call failed."""
    request: Mapping[str, Json] | None = None
    """``{model, tools, messages: [digest…], new: [message…]}``, with ``form: facts`` where another instrumentation
    recorded it; ``None``: derived, found by its turn number alone."""


def recorded_request(asked: Asked, before: Sequence[str]) -> dict[str, Json]:
    """The request as a turn keeps it, with the messages that no earlier turn had (``before``: their digests)."""
    digests = asked.keys["messages"]
    new = [m for m, key in zip(asked.messages, digests, strict=True) if key not in before]
    return {**asked.keys, "new": new}


def write_key(name: str, arguments: Mapping[str, Json], ignore: Iterable[str] = ()) -> str:
    """A write as it stands in ``Response.after``; long arguments by their digest, as every later answer repeats them."""
    left_out = frozenset(ignore)
    kept = {k: v for k, v in arguments.items() if k not in left_out}
    text = canonical_text(kept)
    return f"{name} {text if len(text) <= LONGEST_KEY else digest(kept)[:16]}"


class ToolTape:
    """Serves recorded tool responses; each at most ``times`` often, in order among equals."""

    def __init__(self, fixtures: Iterable[ToolFixture], *, sources: Sequence[str]) -> None:
        """``sources`` says which recordings may answer, the preferred first."""
        self.fixtures = {fixture.name: fixture for fixture in fixtures}
        self._sources = list(sources)
        self._used: dict[int, int] = {}

    def find(self, name: str, arguments: Mapping[str, Json], writes: Sequence[str]) -> Response:
        """The response to a call after these writes.

        Raises:
            HarnessStop: nothing recorded answers it (``OFF_TAPE``).
        """
        fixture = self.fixtures.get(name)
        if fixture is None:
            known = ", ".join(sorted(self.fixtures)) or "none"
            raise HarnessStop(
                StopKind.OFF_TAPE,
                f"Not on tape: {name}({canonical_text(arguments)}). The scenario has no tool {name!r} (it has: {known}). "
                f"Add it under tools: in scenario.yaml with source: authored.",
            )
        fitting = [
            response
            for response in fixture.responses
            if response.source in self._sources and not fixture.differing(response, arguments)
        ]
        left = [r for r in fitting if r.times is None or self._used.get(id(r), 0) < r.times]
        if not left:
            raise self._miss(fixture, arguments, fitting)
        best = min(left, key=lambda r: (_distance(r.after, writes), self._sources.index(r.source)))
        self._used[id(best)] = self._used.get(id(best), 0) + 1
        return best

    def earliest(self, name: str, arguments: Mapping[str, Json]) -> Response:
        """The answer to this call that was recorded after the fewest writes, used or not; one was found before."""
        fixture = self.fixtures[name]
        fitting = [r for r in fixture.responses if r.error is None and not fixture.differing(r, arguments)]
        return min(fitting, key=lambda response: len(response.after))

    def _miss(
        self, fixture: ToolFixture, arguments: Mapping[str, Json], fitting: Sequence[Response]
    ) -> HarnessStop:
        asked = f"Not on tape: {fixture.name}({canonical_text(arguments)})."
        if fitting:
            return HarnessStop(
                StopKind.OFF_TAPE,
                f"{asked} It was recorded {len(fitting)} time(s) and every recording has been used.",
            )
        usable = [r for r in fixture.responses if r.source in self._sources]
        if not usable:
            return HarnessStop(StopKind.OFF_TAPE, f"{asked} The tape holds no call of {fixture.name}.")
        nearest = min(usable, key=lambda r: len(fixture.differing(r, arguments)))
        fields = "; ".join(
            f"{key}: recorded {canonical_text(nearest.when.get(key))}, asked {canonical_text(arguments.get(key))}"
            for key in fixture.differing(nearest, arguments)
        )
        return HarnessStop(
            StopKind.OFF_TAPE,
            f"{asked} Nearest: {fixture.name}({canonical_text(nearest.when)}), which differs in {fields}.",
        )


def _distance(after: Sequence[str], writes: Sequence[str]) -> int:
    """How far the state a response was recorded in is from the present one, in writes."""
    here, there = Counter(after), Counter(writes)
    return ((here - there) + (there - here)).total()


class ModelTape:
    """Serves recorded model turns, each once."""

    def __init__(self, turns: Iterable[ModelTurn]) -> None:
        self._left = list(turns)
        self._served = 0

    @property
    def left(self) -> int:
        """How many turns have not been served."""
        return len(self._left)

    def find(self, arguments: Mapping[str, Json]) -> ModelTurn:
        """The turn recorded for this request.

        Raises:
            HarnessStop: ``RECORDING_STALE`` when the prompt or the tools changed, otherwise ``OFF_TAPE``.
        """
        self._served += 1
        forms = {turn.request.get("form") for turn in self._left if turn.request is not None}
        ways = {form: (asked_in_facts if form == FACTS else asked)(arguments) for form in forms}
        for turn in self._left:
            if turn.request is not None and ways[turn.request.get("form")].fits(turn.request):
                self._left.remove(turn)
                return turn
        for turn in self._left:
            if turn.request is None and turn.turn == self._served:
                self._left.remove(turn)
                return turn
        raise self._miss(ways)

    def _miss(self, ways: Mapping[Json, Asked]) -> HarnessStop:
        where = f"Not on tape: model call {self._served}."
        bound = [(turn.turn, turn.request) for turn in self._left if turn.request is not None]
        if not bound:
            return HarnessStop(StopKind.OFF_TAPE, f"{where} Every recorded turn has been used.")
        number, recorded = max(bound, key=lambda pair: _agreement(pair[1], ways[pair[1].get("form")]))
        now = ways[recorded.get("form")].beside(recorded)
        stale = now.stale(recorded)
        if stale is not None:
            what, was, is_now = stale
            return HarnessStop(
                StopKind.RECORDING_STALE,
                f"{where} {what} changed since the recording ({was} → {is_now}): "
                f"a recorded model cannot answer for it. 'redfirst drift' says what it was; use --mode tools.",
            )
        return _first_difference(where, recorded, now, number)


def _agreement(recorded: Mapping[str, Json], now: Asked) -> int:
    score, now = 0, now.beside(recorded)
    for left, right in zip(recorded.get("messages", ()), now.keys["messages"], strict=False):
        if left != right:
            break
        score += 2
    return score + (len(recorded.get("messages", ())) == len(now.messages))


def _first_difference(where: str, recorded: Mapping[str, Json], now: Asked, turn: int) -> HarnessStop:
    old, new, listed = list(recorded.get("messages", ())), now.keys["messages"], now.messages
    place = next(
        (i for i, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]),
        min(len(old), len(new)),
    )
    fresh = {digest(message)[:16]: message for message in recorded.get("new", ())}
    was, is_now = _contrast(
        canonical_text(fresh[old[place]]) if place < len(old) and old[place] in fresh else "no such message",
        canonical_text(listed[place]) if place < len(listed) else "no such message",
    )
    role = listed[place].get("role") if place < len(listed) and isinstance(listed[place], Mapping) else None
    kind = StopKind.RECORDING_STALE if role in ("system", "developer") and place == 0 else StopKind.OFF_TAPE
    advice = (
        "a recorded model cannot answer a changed prompt; 'redfirst run --mode tools' asks the live one"
        if kind is StopKind.RECORDING_STALE
        else (
            "the agent's code took another way than in the recording. 'redfirst run --mode tools' asks the live model; "
            "'redfirst prove --agent BEFORE --control AFTER', the agent that fails and the fixed one, records the new way"
        )
    )
    return HarnessStop(
        kind,
        f"{where} Its request leaves recorded turn {turn} at messages[{place}]: recorded {was}, asked {is_now}: {advice}.",
    )


def _contrast(one: str, other: str, room: int = 70) -> tuple[str, str]:
    """Two texts, each cut to the part where they begin to differ."""
    at = next(
        (i for i, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )
    begin = max(0, at - room // 2)
    cut = [
        "…" * (begin > 0) + text[begin : at + room] + "…" * (at + room < len(text)) for text in (one, other)
    ]
    return cut[0], cut[1]
