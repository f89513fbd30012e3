"""How much the calls of a run may add up to, for each value and within a time: refunds per order, wires a day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from redfirst.evaluators.canonical import number_of
from redfirst.evaluators.conditions import ValueOf
from redfirst.evaluators.logical import in_time
from redfirst.evaluators.rule_kinds.calls import CallPattern, look
from redfirst.evaluators.rule_kinds.conclude import OnMissing, Tally, at
from redfirst.evaluators.rule_kinds.counting import counted
from redfirst.evaluators.rule_kinds.keys import Key, Same, describe
from redfirst.evaluators.rule_kinds.validity import duration_ns
from redfirst.evaluators.trajectory import ToolCall, Trajectory
from redfirst.evaluators.verdict import Finding, Verdict

VERSION = 1


@dataclass(frozen=True, slots=True)
class _Amount:
    call: ToolCall
    amount: Decimal | None
    sure: bool
    limit: Decimal | None


@dataclass(slots=True)
class _Group:
    key: Key
    amounts: list[_Amount] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSum:
    """The values at ``sum`` of the calls of one key add up to at most ``limit``, in any window of ``within``.

    Calls are counted as ``max_calls`` counts them: a call with its retries once. The limit is a number or what
    stands at a path of the call that is added. A window ends where a call begins and reaches back ``within``;
    it lies inside one run. A value that is no number leaves the sum open, unless the others already pass the
    limit. ``of`` is (keys within the limit, keys that could be judged).
    """

    call: CallPattern
    sum: str
    limit: Decimal | ValueOf
    by: Same
    within: str | None = None
    order: str = "decided"
    missing: OnMissing = None

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run; the completing event is the call whose amount passes the limit."""
        lack = self.call.lack(run)
        tally = Tally(self.missing, lack)
        for group in self._groups(run):
            over = self._over(group, surely=True)
            if over is not None:
                tally.violations.append(self._finding(group, over, ""))
                continue
            maybe = self._over(group, surely=False) or (group.amounts[-1] if lack else None)
            if maybe is not None:
                tally.unknown.append(
                    self._finding(group, maybe, f"; {lack}" if lack else "; it cannot be told")
                )
            else:
                tally.good += 1
        return tally.verdict(
            nothing=f"no call of {self.call} that this rule speaks of",
            good=f"{self.sum} of {self.call} stayed within {self.limit}"
            + (" for each key" if self.by.pairs else ""),
        )

    def _groups(self, run: Trajectory) -> list[_Group]:
        groups: dict[str, _Group] = {}
        unbound: list[tuple[_Amount, Key]] = []
        found = {
            id(call): (call, truth)
            for call, truth in counted(self.call, run, order=self.order, attempts=False)
        }
        for call in in_time(call for call, _ in found.values()):
            key = self.by.of_call(call, run)
            amount = number_of(look(self.sum, call, run, self.order))
            limit = self._limit(call, run)
            name = self.by.group(call, key)
            one = _Amount(call, amount, found[id(call)][1] is True and name is not None, limit)
            if name is None:
                unbound.append((one, key))
            else:
                groups.setdefault(name, _Group(key)).amounts.append(one)
        if unbound and not groups:
            return [_Group(unbound[0][1], [one for one, _ in unbound])]
        for group in groups.values():
            group.amounts.extend(one for one, _ in unbound)
        return list(groups.values())

    def _limit(self, call: ToolCall, run: Trajectory) -> Decimal | None:
        if isinstance(self.limit, Decimal):
            return self.limit
        return number_of(self.limit.read(lambda path: look(path, call, run, self.order)))

    def _over(self, group: _Group, *, surely: bool) -> _Amount | None:
        """The first call with which the sum of a window passes the limit, or perhaps does."""
        for place, one in enumerate(group.amounts):
            total = Decimal(0)
            doubtful = one.limit is None
            for earlier in self._window(group.amounts[: place + 1], surely=surely):
                if earlier.amount is None:
                    doubtful = True
                elif earlier.sure or (not surely and earlier.amount > 0):
                    total += earlier.amount
            if one.limit is not None and total > one.limit:
                return one
            if doubtful and not surely:
                return one
        return None

    def _window(self, amounts: Sequence[_Amount], *, surely: bool) -> Iterator[_Amount]:
        last = amounts[-1].call.start_ns
        for one in amounts:
            if self.within is None:
                yield one
            elif not last or not one.call.start_ns:
                if not surely or one is amounts[-1]:
                    yield one
            elif last - one.call.start_ns < duration_ns(self.within):
                yield one

    def _finding(self, group: _Group, over: _Amount, end: str) -> Finding:
        window = f" within {self.within}" if self.within else ""
        return Finding(
            subject=self.by.subject(f"{','.join(self.call.tools)}|{self.sum}", group.key),
            because=f"with {describe(over.call)} {self.sum} of {self.call}{self.by.for_each(group.key)}"
            f" adds up to more than {self.limit}{window}{end}",
            evidence=(at(over.call), *(at(one.call) for one in group.amounts if one is not over)),
        )
