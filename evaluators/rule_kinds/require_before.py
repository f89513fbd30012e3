"""A call needs an earlier success of another: ``verify_identity`` before ``cancel_order``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from redfirst.evaluators.assignment import assign
from redfirst.evaluators.kleene import Truth, all_of, any_of
from redfirst.evaluators.logical import in_time
from redfirst.evaluators.rule_kinds.calls import CallPattern
from redfirst.evaluators.rule_kinds.conclude import OnMissing, Tally, at
from redfirst.evaluators.rule_kinds.keys import Key, Same, describe, equal_keys, show
from redfirst.evaluators.rule_kinds.order import before
from redfirst.evaluators.rule_kinds.validity import Cover, Validity
from redfirst.evaluators.trajectory import ToolCall, Trajectory
from redfirst.evaluators.verdict import Evidence, Finding, Verdict

VERSION = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RequireBefore:
    """Every ``call`` comes after a ``needs`` of the same values; with ``once``, after one of its own.

    A need may also be met in the earlier part of the conversation, as far as the first model call was given
    it: the answered calls in its messages.
    """

    call: CallPattern
    needs: CallPattern
    same: Same
    once: bool = False
    covers: tuple[Cover, ...] = ()
    validity: Validity
    order: str = "decided"
    missing: OnMissing = None

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run; the completing event of a violation is the call that came without its need."""
        lack = self.needs.lack(run)
        tally = Tally(self.missing, self.call.lack(run) or lack or self.validity.lack(run))
        triggers = [
            (call, applies)
            for call in in_time(self.call.among(run))
            if (applies := self.call.matches(call, run, self.order)) is not False
        ]
        keys = [self.same.of_call(call, run) for call, _ in triggers]
        witnesses = in_time(self.needs.among(run, earlier=True))
        table = [
            [self.meets(witness, call, key, run) for witness in witnesses]
            for (call, _), key in zip(triggers, keys, strict=True)
        ]
        met = self._met(table, [applies for _, applies in triggers])
        if lack:
            met = [None if one is False else one for one in met]
        for (call, applies), key, one, row in zip(triggers, keys, met, table, strict=True):
            if one is True:
                tally.good += 1
            elif one is False and applies is True:
                tally.violations.append(self._violation(call, key, witnesses, row, run))
            else:
                tally.unknown.append(self._unknown(call, key, applies, lack))
        return tally.verdict(
            nothing=f"no call of {self.call} that this rule speaks of",
            good=f"{tally.good} call(s) of {self.call}, each after {self.needs}",
        )

    def meets(self, witness: ToolCall, call: ToolCall, key: Key, run: Trajectory) -> Truth:
        """Whether the one meets the need of the other."""
        if witness is call:
            return False
        first = all_of(
            (
                before(witness, call, self.order),
                self.needs.matches(witness, run, self.order),
                self.same.ties(witness, call, key, run),
                *(cover.holds(witness, call, run, self.order) for cover in self.covers),
            )
        )
        if first is False:
            return False
        return all_of((first, self.validity.holds(witness, call, run, self.order)))

    def _met(self, table: Sequence[Sequence[Truth]], applies: Sequence[Truth]) -> list[Truth]:
        """For each call whether its need is met; with ``once`` a witness serves one call only."""
        if not self.once:
            return [any_of(row) for row in table]
        certainly = assign([[place for place, truth in enumerate(row) if truth is True] for row in table])
        possibly = assign(
            [
                [place for place, truth in enumerate(row) if truth is not False]
                if applies[task] is True
                else []
                for task, row in enumerate(table)
            ]
        )
        return [
            True if task in certainly else None if task in possibly or applies[task] is None else False
            for task in range(len(table))
        ]

    def _violation(
        self, call: ToolCall, key: Key, witnesses: Sequence[ToolCall], row: Sequence[Truth], run: Trajectory
    ) -> Finding:
        nearest = self._nearest(call, key, witnesses, row, run)
        happened = "ran" if call.ran else f"was asked for ({call.status.value})"
        own = " of its own" if self.once and any(row) else ""
        return Finding(
            subject=self.same.subject(call.name, key),
            because=f"{describe(call)} {happened} without an earlier {self.needs}{own}"
            f"{self.same.of_the_same(key)}{self.validity}" + (f"; {nearest.note}" if nearest else ""),
            evidence=(at(call), nearest) if nearest else (at(call),),
        )

    def _unknown(self, call: ToolCall, key: Key, applies: Truth, lack: str | None) -> Finding:
        if applies is None:
            why = f"whether {describe(call)} is a call this rule speaks of ({self.call.where}) cannot be told"
        elif lack:
            why = f"{describe(call)}: {lack}, so an earlier {self.needs} may be missing"
        else:
            why = (
                f"{describe(call)}: whether {self.needs} came first{self.same.of_the_same(key)}"
                " cannot be told from what was recorded"
            )
        return Finding(subject=self.same.subject(call.name, key), because=why, evidence=(at(call),))

    def _nearest(
        self, call: ToolCall, key: Key, witnesses: Sequence[ToolCall], row: Sequence[Truth], run: Trajectory
    ) -> Evidence | None:
        """The call that came closest to meeting the need, and what was wrong with it."""
        best: tuple[int, Evidence] | None = None
        for witness, truth in zip(reversed(witnesses), reversed(row), strict=True):
            if witness is call:
                continue
            faults = self._faults(witness, call, key, run)
            if truth is True:
                faults = ["already served another call"]
            if best is None or len(faults) < best[0]:
                best = len(faults), at(witness, f"{witness.name} {faults[0]}")
            if len(faults) == 1:  # the latest of those with one fault: none has fewer
                break
        return best[1] if best else None

    def _faults(self, witness: ToolCall, call: ToolCall, key: Key, run: Trajectory) -> list[str]:
        faults = []
        own_key = self.same.of_other(witness, run)
        if equal_keys(own_key, key) is not True:
            faults.append(f"was called for {', '.join(show(value) for value in own_key)}")
        if self.needs.status_fits(witness) is not True:
            faults.append(f"ended with {witness.status.value}")
        elif self.needs.matches(witness, run, self.order) is not True:
            faults.append(f"was called, but not with {self.needs.where}")
        if before(witness, call, self.order) is not True:
            later = before(call, witness, self.order) is True
            faults.append("came only afterwards" if later else "was called at the same time")
        faults += [
            f"was not enough: {cover}"
            for cover in self.covers
            if cover.holds(witness, call, run, self.order) is not True
        ]
        if self.validity.holds(witness, call, run, self.order) is not True:
            faults.append("no longer counted")
        return faults or ["was made by another agent"]
