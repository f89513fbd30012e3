"""Steps in an order: every ``pay`` after a ``quote`` that came after a ``verify``."""

from __future__ import annotations

from dataclasses import dataclass

from redfirst.evaluators.kleene import Truth, all_of, any_of
from redfirst.evaluators.logical import in_time
from redfirst.evaluators.rule_kinds.calls import CallPattern
from redfirst.evaluators.rule_kinds.conclude import OnMissing, Tally, at
from redfirst.evaluators.rule_kinds.keys import Same, describe
from redfirst.evaluators.rule_kinds.order import before
from redfirst.evaluators.trajectory import ToolCall, Trajectory
from redfirst.evaluators.verdict import Finding, Verdict

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Every call of a step comes after a chain of successes of all steps before it, in their order.

    The steps before may be met in the earlier conversation. ``of`` is (calls in order, calls that could be
    judged); calls of the first step need nothing and are not counted.
    """

    steps: tuple[CallPattern, ...]
    """The steps as needs: they ask for success."""
    judged: tuple[CallPattern, ...]
    """The same steps as they are judged: tried is enough."""
    same: Same
    order: str = "decided"
    missing: OnMissing = None

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run; the completing event is the call that came too early."""
        lack = next((why for one in (*self.steps, *self.judged) if (why := one.lack(run))), None)
        tally = Tally(self.missing, lack)
        witnesses = [in_time(step.among(run, earlier=True)) for step in self.steps]
        for place in range(1, len(self.judged)):
            for call in in_time(self.judged[place].among(run)):
                applies = self.judged[place].matches(call, run, self.order)
                if applies is False:
                    continue
                met = self._chain(place, call, call, run, witnesses, {})
                if met is True:
                    tally.good += 1
                elif met is False and applies is True and lack is None:
                    tally.violations.append(self._finding(place, call, run, ""))
                else:
                    tally.unknown.append(
                        self._finding(place, call, run, f"; {lack}" if lack else "; it cannot be told")
                    )
        return tally.verdict(
            nothing=f"no call of {' or '.join(map(str, self.judged[1:]))} that this rule speaks of",
            good=f"{tally.good} call(s), each after {' and then '.join(map(str, self.steps[:-1]))}",
        )

    def _chain(
        self,
        place: int,
        later: ToolCall,
        call: ToolCall,
        run: Trajectory,
        witnesses: list[list[ToolCall]],
        known: dict[tuple[int, int], Truth],
    ) -> Truth:
        """Whether all steps before this one came before ``later``, in order and with the values of ``call``."""
        if place == 0:
            return True
        name = (place, id(later))
        if name not in known:
            known[name] = any_of(
                all_of((fits, self._chain(place - 1, one, call, run, witnesses, known)))
                for one in witnesses[place - 1]
                if (fits := self._fits(place - 1, one, later, call, run)) is not False
            )
        return known[name]

    def _fits(self, place: int, one: ToolCall, later: ToolCall, call: ToolCall, run: Trajectory) -> Truth:
        if one is later or one is call:
            return False
        return all_of(
            (
                before(one, later, self.order),
                self.steps[place].matches(one, run, self.order),
                self.same.ties(one, call, self.same.of_call(call, run), run),
            )
        )

    def _finding(self, place: int, call: ToolCall, run: Trajectory, end: str) -> Finding:
        key = self.same.of_call(call, run)
        needed = " and then ".join(map(str, self.steps[:place]))
        return Finding(
            subject=self.same.subject(call.name, key),
            because=f"{describe(call)} was called without {needed} before it{self.same.of_the_same(key)}{end}",
            evidence=(at(call),),
        )
