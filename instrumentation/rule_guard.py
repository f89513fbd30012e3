"""Rules before a write: the call that would complete a violation is not made."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from redfirst.evaluators.errors import ConfigurationError, RedfirstError, unread
from redfirst.instrumentation import memory
from redfirst.instrumentation.guard import guarded
from redfirst.instrumentation.memory import CallSoFar, Frame

if TYPE_CHECKING:
    from redfirst.evaluators.check import Check
    from redfirst.evaluators.trajectory import ToolCall, Trajectory
    from redfirst.evaluators.verdict import Verdict

OnUnknown = Literal["allow", "refuse"]
Refusal = Literal["raise", "answer"]


class CallRefused(RedfirstError):
    """A rule forbids the call that was about to be made; it was not made."""

    def __init__(self, tool: str, rule: str, because: str) -> None:
        super().__init__(f"{tool} was refused by rule {rule}: {because}")
        self.tool, self.rule, self.because = tool, rule, because


class Guard:
    """The rules of a file, asked before each call of the tools that carry it.

    A call is refused when it would complete a violation of a rule, given the run so far: what the decorated
    tools, models and the run itself reported in this process. Tasks are not asked, since a run must end first.
    """

    def __init__(
        self,
        rules: str | os.PathLike[str],
        *,
        on_unknown: OnUnknown = "allow",
        refusal: Refusal = "raise",
    ) -> None:
        """Read the file.

        Args:
            rules: the path of a rules file.
            on_unknown: what to do where a rule cannot be told because of the call, or the guard itself failed.
            refusal: ``raise`` CallRefused, or ``answer`` the model with ``{"error": …}`` as the tool's result.

        Raises:
            ConfigurationError: the file cannot be read or is wrong, or an option is none of these.
        """
        from redfirst.evaluators.rules import load_rules
        from redfirst.evaluators.verdict import CheckClass

        for name, word, known in (
            ("on_unknown", on_unknown, ("allow", "refuse")),
            ("refusal", refusal, ("raise", "answer")),
        ):
            if word not in known:
                raise ConfigurationError(f"guard: {name} is {' or '.join(known)}, not {word!r}.")
        path = Path(rules)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise ConfigurationError(
                f"guard: rules file {path}: cannot be read: {unread(problem)}."
            ) from problem
        loaded = load_rules(text, str(path))
        self._checks = [check for check in loaded if check.check_class is not CheckClass.GOAL]
        self.on_unknown: OnUnknown = on_unknown
        self.refusal: Refusal = refusal
        memory.Switch.on = True

    def refused(self, tool: str, call: CallSoFar | None, frame: Frame | None) -> CallRefused | None:
        """The refusal of a call, if any. ``call`` is ``None`` when a fault of ours kept it from being begun.

        A fault of ours is counted, and is an unknown.
        """
        found: CallRefused | None = None
        asked = False
        with guarded("ask the guard"):
            if call is not None:
                found = self._judged(call, frame)
                asked = True
        if not asked and self.on_unknown == "refuse":
            found = CallRefused(tool, "-", "the guard failed, and on_unknown is refuse")
        if found is not None and call is not None:
            call.refused, call.end_ns = str(found), time.time_ns()
        return found

    def _judged(self, call: CallSoFar, frame: Frame | None) -> CallRefused | None:
        from redfirst.evaluators.check import judge
        from redfirst.instrumentation.run_so_far import trajectory_of

        run, pending = trajectory_of(call, frame)
        for verdict in judge(run, self._checks):
            finding = next(self._completed_by(pending, verdict), None)
            if finding is not None:
                return CallRefused(call.name, verdict.check, finding)
        if self.on_unknown == "refuse":
            return self._open(call, run, pending)
        return None

    def _completed_by(self, pending: ToolCall, verdict: Verdict) -> Iterator[str]:
        """The reasons of the violations that the pending call completes: its evidence comes first."""
        pointer = f"/tool_calls/{pending.index}"
        yield from (
            finding.because
            for finding in verdict.findings
            if finding.evidence[:1] and finding.evidence[0].pointer == pointer
        )

    def _open(self, call: CallSoFar, run: Trajectory, pending: ToolCall) -> CallRefused | None:
        """A refusal for a rule that cannot be told with the call, and could without it."""
        from dataclasses import replace

        from redfirst.evaluators.check import judge
        from redfirst.evaluators.verdict import Outcome

        without = replace(run, tool_calls=tuple(one for one in run.tool_calls if one is not pending))
        checks: Sequence[Check] = self._checks
        for before, after in zip(judge(without, checks), judge(run, checks), strict=True):
            if after.outcome is Outcome.INCONCLUSIVE and after.because != before.because:
                return CallRefused(call.name, after.check, f"it cannot be told: {after.because}")
        return None


def guard_of(given: Guard | str | os.PathLike[str] | None) -> Guard | None:
    """The guard that a decorator was given, be it by the path of its rules.

    Raises:
        ConfigurationError: the rules are wrong.
    """
    return given if given is None or isinstance(given, Guard) else Guard(given)
