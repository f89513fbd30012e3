"""Calls of which only one may happen, in all or for each value: a refund or a replacement per order."""

from __future__ import annotations

from dataclasses import dataclass, field

from redfirst.evaluators.kleene import Truth
from redfirst.evaluators.logical import in_time
from redfirst.evaluators.rule_kinds.calls import CallPattern
from redfirst.evaluators.rule_kinds.conclude import OnMissing, Tally, at
from redfirst.evaluators.rule_kinds.keys import Key, Same, describe
from redfirst.evaluators.trajectory import ToolCall, Trajectory
from redfirst.evaluators.verdict import Finding, Verdict

VERSION = 1


@dataclass(slots=True)
class _Group:
    """The calls of one key, by the pattern they are of."""

    key: Key
    sure: dict[int, list[ToolCall]] = field(default_factory=dict)
    perhaps: dict[int, list[ToolCall]] = field(default_factory=dict)

    def add(self, place: int, call: ToolCall, truth: Truth) -> None:
        (self.sure if truth else self.perhaps).setdefault(place, []).append(call)


@dataclass(frozen=True, slots=True, kw_only=True)
class MutuallyExclusive:
    """Of these calls at most one kind happens, for each value of ``same`` where it is given.

    Order does not matter. A call that may be of several kinds is of the first that it surely is. ``of`` is
    (keys with one kind at most, keys that could be judged).
    """

    calls: tuple[CallPattern, ...]
    same: Same
    order: str = "decided"
    missing: OnMissing = None

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run; the completing event is the first call of a second kind."""
        lack = next((why for one in self.calls if (why := one.lack(run))), None)
        tally = Tally(self.missing, lack)
        for group in self._groups(run):
            calls = [call for kind in group.sure.values() for call in kind]
            if len(group.sure) > 1:
                tally.violations.append(self._finding(group, calls, ""))
            elif len({*group.sure, *group.perhaps}) > 1:
                both = [*calls, *(call for kind in group.perhaps.values() for call in kind)]
                tally.unknown.append(self._finding(group, both, "; whether each counts cannot be told"))
            else:
                tally.good += 1
        names = " and ".join(str(one) for one in self.calls)
        return tally.verdict(
            nothing=f"no call of {names} that this rule speaks of", good=f"never both {names}"
        )

    def _groups(self, run: Trajectory) -> list[_Group]:
        groups: dict[str, _Group] = {}
        unbound: list[tuple[int, ToolCall, Key]] = []
        for place, pattern in enumerate(self.calls):
            for call in in_time(pattern.among(run)):
                truth = pattern.matches(call, run, self.order)
                if truth is False:
                    continue
                key = self.same.of_call(call, run)
                name = self.same.group(call, key)
                if name is None:
                    unbound.append((place, call, key))
                else:
                    groups.setdefault(name, _Group(key)).add(place, call, truth)
        if unbound and not groups:
            groups[""] = _Group(unbound[0][2])
        for group in groups.values():
            for place, call, _ in unbound:
                group.add(place, call, None)
        return list(groups.values())

    def _finding(self, group: _Group, calls: list[ToolCall], end: str) -> Finding:
        listed = in_time(calls)
        kind = {
            id(call): place for part in (group.perhaps, group.sure) for place in part for call in part[place]
        }
        second = next(call for call in listed if kind[id(call)] != kind[id(listed[0])])
        subject = self.same.subject(",".join(sorted({call.name for call in calls})), group.key)
        return Finding(
            subject=subject,
            because=f"{describe(second)} was called beside {describe(listed[0])}"
            f"{self.same.of_the_same(group.key)}; only one of them may be{end}",
            evidence=(at(second), at(listed[0])),
        )
