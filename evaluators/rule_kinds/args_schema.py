"""What the arguments of a call must be: by a JSON Schema, and by conditions on the call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from redfirst.evaluators.conditions import Condition, Where
from redfirst.evaluators.kleene import Truth
from redfirst.evaluators.logical import in_time
from redfirst.evaluators.paths import ABSENT
from redfirst.evaluators.rule_kinds.calls import CallPattern, look
from redfirst.evaluators.rule_kinds.conclude import OnMissing, Tally, at
from redfirst.evaluators.rule_kinds.keys import Same, describe, show
from redfirst.evaluators.schemas import UnusableSchema, schema_of
from redfirst.evaluators.trajectory import MISSING, ToolCall, Trajectory
from redfirst.evaluators.verdict import Finding, Verdict

VERSION = 1


@dataclass(frozen=True, slots=True)
class _Fault:
    """Something wrong, or perhaps wrong, with the arguments of one call."""

    where: str
    because: str
    truth: Truth
    """``False``: it is wrong; ``None``: that cannot be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgsSchema:
    """The arguments of every ``call`` fit ``schema`` and ``must``; without either, the schema in the trace.

    A condition of ``must`` on an argument that is not there is unknown, as everywhere. ``of`` is (calls whose
    arguments fit, calls that could be judged).
    """

    call: CallPattern
    must: Where
    same: Same
    schema: Mapping[str, object] | None = None
    order: str = "decided"
    missing: OnMissing = None

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run; the completing event is the call."""
        tally = Tally(self.missing, self.call.lack(run))
        for call in in_time(self.call.among(run)):
            applies = self.call.matches(call, run, self.order)
            if applies is False:
                continue
            faults = list(self._faults(call, run))
            wrong = [fault for fault in faults if fault.truth is False]
            if not faults:
                tally.good += 1
            elif wrong and applies is True:
                tally.violations.append(self._finding(call, wrong, run, ""))
            else:
                tally.unknown.append(self._finding(call, wrong or faults, run, "; it cannot be told"))
        return tally.verdict(
            nothing=f"no call of {self.call} that this rule speaks of",
            good=f"{tally.good} call(s) of {self.call}, each with fitting arguments",
        )

    def _faults(self, call: ToolCall, run: Trajectory) -> Iterator[_Fault]:
        for path, condition in self.must.conditions:
            yield from self._unmet(path, condition, call, run)
        schema = self.schema if self.schema is not None or self.must.conditions else call.schema
        if schema is None:
            if not self.must.conditions:
                yield _Fault("args", "the trace carries no schema of the tool", None)
            return
        if call.arguments is None:
            yield _Fault("args", "the arguments were not recorded", None)
            return
        try:
            misfits = schema_of(schema).misfits(call.arguments)
        except UnusableSchema as problem:
            yield _Fault("args", f"the schema cannot be used: {problem}", None)
            return
        for misfit in misfits:
            path = ".".join(("args", *misfit.path))
            yield _Fault(path, f"{path}: {misfit.because}", False)

    def _unmet(self, path: str, condition: Condition, call: ToolCall, run: Trajectory) -> Iterator[_Fault]:
        value = look(path, call, run, self.order)
        truth = condition.holds(value, lambda other: look(other, call, run, self.order))
        if truth is not True:
            stood = "absent" if value is ABSENT else "not recorded" if value is MISSING else show(value)
            yield _Fault(path, f"{path} is {stood}, and must be {condition}", truth)

    def _finding(self, call: ToolCall, faults: list[_Fault], run: Trajectory, end: str) -> Finding:
        key = self.same.of_call(call, run)
        places = ",".join(dict.fromkeys(fault.where for fault in faults))
        return Finding(
            subject=self.same.subject(f"{call.name}|{places}", key),
            because=f"{describe(call)}: {'; '.join(fault.because for fault in faults[:3])}{end}",
            evidence=(at(call, faults[0].because),),
        )
