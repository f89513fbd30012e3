"""Calls as limits count them: a call with its retries is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from redfirst.evaluators.kleene import Truth, any_of
from redfirst.evaluators.logical import in_time, logical_calls, perhaps_retries
from redfirst.evaluators.rule_kinds.calls import CallPattern
from redfirst.evaluators.trajectory import CallStatus, ToolCall, Trajectory


def counted(
    pattern: CallPattern, run: Trajectory, *, order: str, attempts: bool
) -> Iterator[tuple[ToolCall, Truth]]:
    """The first attempt that counts of every call that does, and whether it surely does.

    A logical call counts when any attempt of it fits the pattern; what did not run is a call of its own.
    An attempt after an infrastructure fault that may have been a second write (the tool declares neither
    effect nor idempotence), or a retry of what was asked before (arguments were not read), counts only perhaps.
    """
    calls = in_time(pattern.among(run))
    faults = [] if attempts else [call for call in calls if call.status is CallStatus.INFRA_ERROR]
    for parts in _logical(calls, attempts=attempts):
        sure_before = perhaps_retries(faults, parts[0][0])
        for tries in parts:
            truths = [pattern.matches(one, run, order) for one in tries]
            truth = any_of(truths)
            if truth is not False:
                yield tries[truths.index(truth)], None if sure_before else truth
            sure_before = sure_before or truth is True


def _logical(calls: Sequence[ToolCall], *, attempts: bool) -> list[list[tuple[ToolCall, ...]]]:
    """Each call as the parts it surely consists of: more than one where a retry may have been a second write."""
    if attempts:
        return [[(call,)] for call in calls]
    ran = [
        [part.attempts for part in logical_calls(whole.attempts, undeclared_is_retry=False)]
        for whole in logical_calls(calls)
    ]
    return ran + [[(call,)] for call in calls if not call.ran]
