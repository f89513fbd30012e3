"""What holds in every state that was reported: a balance that never falls below its reserve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from redfirst.evaluators.conditions import Condition
from redfirst.evaluators.kleene import Truth
from redfirst.evaluators.paths import ABSENT, look_up, parse_path, show_path
from redfirst.evaluators.rule_kinds.conclude import OnMissing, Tally
from redfirst.evaluators.rule_kinds.keys import show
from redfirst.evaluators.rule_kinds.lacking import incomplete, missing_fact
from redfirst.evaluators.state_diff import ANY_ONE, ANY_REST, parse_pattern
from redfirst.evaluators.trajectory import MISSING, StateSnapshot, Trajectory
from redfirst.evaluators.verdict import Evidence, Finding, Verdict, inconclusive

VERSION = 1

_Keys = tuple[str, ...]


def invariant_path(path: str) -> tuple[str, ...]:
    """The segments of a path into the state; ``*`` is every key of a mapping or item of a list.

    Raises:
        ValueError: the path is empty, or holds ``**``.
    """
    segments = parse_pattern(path)
    if ANY_REST in segments:
        raise ValueError(
            f"path {path!r}: ** names no value to test; use * for one key, as in accounts.*.balance"
        )
    return segments


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """A condition on a value of the state, at every observation: the first, those between and the last.

    Between observations nothing is claimed. A value that is not there is unknown, unless the condition asks
    for ``exists``; of a pattern with ``*`` only what is there is judged. In a condition, ``value_of`` names
    another path of the same state. ``of`` is (values that hold, values that could be judged).
    """

    path: tuple[str, ...]
    must: Condition
    missing: OnMissing = None

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run; the completing event is the first state in which the condition does not hold."""
        if not run.states:
            return inconclusive(incomplete(run) or missing_fact(run, "states") or "the run reported no state")
        tally = Tally(self.missing, incomplete(run) or missing_fact(run, "states"))
        told: set[_Keys] = set()
        for place, snapshot in enumerate(run.states):
            for keys, value in _values(snapshot.state, self.path):
                truth = self._holds(value, snapshot)
                if truth is True:
                    tally.good += 1
                elif truth is None:
                    tally.unknown.append(self._finding(keys, value, place, snapshot, "cannot be told"))
                elif keys not in told:
                    told.add(keys)
                    tally.violations.append(self._finding(keys, value, place, snapshot, "must be"))
        path = ".".join(self.path)
        return tally.verdict(
            nothing=f"nothing stands at {path} in {len(run.states)} observation(s)",
            good=f"{path} is {self.must} in each of {len(run.states)} observation(s)",
        )

    def _holds(self, value: object, snapshot: StateSnapshot) -> Truth:
        return self.must.holds(value, lambda path: look_up(snapshot.state, parse_path(path)))

    def _finding(self, keys: _Keys, value: object, place: int, snapshot: StateSnapshot, how: str) -> Finding:
        path = show_path(keys)
        stood = "absent" if value is ABSENT else "unknown" if value is MISSING else show(value)
        wanted = f"it must be {self.must}" if how == "must be" else f"whether it is {self.must} {how}"
        escaped = (key.replace("~", "~0").replace("/", "~1") for key in keys)
        return Finding(
            subject=path,
            because=f"{path} is {stood} in observation {place + 1}; {wanted}",
            evidence=(
                Evidence(
                    span_id=snapshot.span_id, pointer="/".join(("", "states", str(place), "state", *escaped))
                ),
            ),
        )


def _values(state: object, segments: tuple[str, ...]) -> Iterator[tuple[_Keys, object]]:
    """Every place of the state that the path names, with what stands there."""
    for place, segment in enumerate(segments):
        if segment != ANY_ONE:
            continue
        start = tuple(parse_path(part)[0] for part in segments[:place])
        inside = look_up(state, start)
        for key, item in _children(inside):
            for rest, value in _values(item, segments[place + 1 :]):
                yield (*start, key, *rest), value
        if inside is MISSING:
            yield (*start, ANY_ONE), MISSING
        return
    keys = tuple(parse_path(part)[0] for part in segments)
    yield keys, look_up(state, keys) if keys else state


def _children(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        yield from ((str(key), item) for key, item in value.items())
    elif isinstance(value, list | tuple):
        yield from ((str(place), item) for place, item in enumerate(value))
