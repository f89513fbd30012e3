"""What a run may spend: model calls, tool calls, steps, tokens, seconds, money, each apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from redfirst.evaluators.logical import in_time
from redfirst.evaluators.rule_kinds.conclude import OnMissing, Tally, at
from redfirst.evaluators.rule_kinds.lacking import incomplete, lacks_calls, missing_fact
from redfirst.evaluators.trajectory import ModelCall, Trajectory
from redfirst.evaluators.verdict import Evidence, Finding, Verdict

VERSION = 1

Resource = Literal["model_calls", "tool_calls", "steps", "tokens", "seconds", "usd"]
_WORDS = {
    "model_calls": "model call(s)",
    "tool_calls": "tool call(s)",
    "steps": "step(s)",
    "tokens": "token(s)",
    "seconds": "second(s)",
    "usd": "USD",
}


@dataclass(frozen=True, slots=True)
class _Spent:
    """How much of a resource was spent at least, what passed the limit, and why more may have been."""

    amount: float
    over: Evidence | None
    lack: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """No resource beyond its limit. ``of`` is (limits kept, limits that could be judged).

    ``model_calls`` and ``tool_calls`` count attempts, also those that failed; ``steps`` the model calls that
    were answered; ``tokens`` input and output of every model call; ``seconds`` from the first span's begin to
    the last one's end; ``usd`` the cost that the trace carries. What a trace lacks can only add: beyond the
    limit without it is a violation all the same.
    """

    limits: tuple[tuple[Resource, float], ...]
    missing: OnMissing = None

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run; the completing event is the one that passed the limit."""
        tally = Tally(self.missing, incomplete(run))
        said = []
        for resource, limit in self.limits:
            spent = _SPENT[resource](run, limit)
            told = f"{_number(spent.amount)} of {_number(limit)} {_WORDS[resource]}"
            said.append(told)
            if spent.over is not None:
                because = f"{_number(spent.amount)} {_WORDS[resource]}; at most {_number(limit)} allowed"
                tally.violations.append(Finding(subject=resource, because=because, evidence=(spent.over,)))
            elif spent.lack is not None:
                root = Evidence(span_id=run.root_span_id, note=spent.lack)
                tally.unknown.append(
                    Finding(subject=resource, because=f"{told} at least: {spent.lack}", evidence=(root,))
                )
            else:
                tally.good += 1
        return tally.verdict(nothing="no limit", good=f"spent {', '.join(said)}")


def _model_calls(run: Trajectory, limit: float) -> _Spent:
    return _counted(run, run.model_calls, limit)


def _steps(run: Trajectory, limit: float) -> _Spent:
    return _counted(run, [turn for turn in run.model_calls if not turn.failed], limit)


def _counted(run: Trajectory, turns: Sequence[ModelCall], limit: float) -> _Spent:
    over = [_turn(turn) for turn in turns[int(limit) :][:1]]
    return _Spent(len(turns), over[0] if over else None, missing_fact(run, "model_calls"))


def _tool_calls(run: Trajectory, limit: float) -> _Spent:
    calls = in_time(call for call in run.tool_calls if call.ran)
    over = [at(call) for call in calls[int(limit) :][:1]]
    return _Spent(len(calls), over[0] if over else None, lacks_calls(run))


def _tokens(run: Trajectory, limit: float) -> _Spent:
    def spent(turn: ModelCall) -> Iterator[int]:
        yield from (count for count in (turn.tokens.input, turn.tokens.output) if count is not None)

    total, over = 0.0, None
    for turn in run.model_calls:
        total += sum(spent(turn))
        over = over or (_turn(turn) if total > limit else None)
    whole = [count for count in (run.tokens.input, run.tokens.output) if count is not None]
    if sum(whole) > total:
        total = float(sum(whole))
        over = over or (Evidence(span_id=run.root_span_id, pointer="/tokens") if total > limit else None)
    lack = None if len(whole) == 2 else "the tokens of a model call were not recorded"
    return _Spent(total, over, lack)


def _seconds(run: Trajectory, limit: float) -> _Spent:
    taken = max(0, run.end_ns - run.start_ns) / 1e9
    late = [call for call in in_time(run.tool_calls) if (call.end_ns - run.start_ns) / 1e9 > limit]
    place = at(late[0], "it ended after the limit") if late else Evidence(span_id=run.root_span_id)
    timed = run.start_ns or run.end_ns
    return _Spent(taken, place if taken > limit else None, None if timed else "the times were not recorded")


def _usd(run: Trajectory, limit: float) -> _Spent:
    if run.cost_usd is None:
        return _Spent(0, None, "the trace carries no cost")
    over = Evidence(span_id=run.root_span_id, pointer="/cost_usd") if run.cost_usd > limit else None
    return _Spent(run.cost_usd, over, None)


def _turn(turn: ModelCall) -> Evidence:
    return Evidence(span_id=turn.span_id, pointer=f"/model_calls/{turn.index}")


def _number(value: float) -> str:
    return f"{value:.10g}"


_SPENT = {
    "model_calls": _model_calls,
    "tool_calls": _tool_calls,
    "steps": _steps,
    "tokens": _tokens,
    "seconds": _seconds,
    "usd": _usd,
}
