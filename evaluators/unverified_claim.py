"""Whether everything the final answer states has a source in the run."""

from __future__ import annotations

from collections.abc import Iterator

from redfirst.evaluators.claims import Claim, claims
from redfirst.evaluators.known import Known, tellable
from redfirst.evaluators.rule_kinds.lacking import lacks_calls, missing_fact, without_absence
from redfirst.evaluators.tool_schemas import Schemas
from redfirst.evaluators.trajectory import MISSING, Trajectory
from redfirst.evaluators.verdict import (
    Evidence,
    Finding,
    Verdict,
    failed,
    inconclusive,
    not_applicable,
    passed,
)

VERSION = 1

_NAMES = {"id": "the id", "number": "the number", "date": "the date"}
_MOST = 20
"""Claims that are told one by one."""


def unverified_claim(run: Trajectory) -> Verdict:
    """Ids, numbers and dates of the final answer with a source ÷ those it states.

    A source is any earlier message, the arguments or the result of any call, or the definition of a tool. A
    number that can be worked out of such numbers has one (``known``).
    """
    if run.answer is None:
        unread = missing_fact(run, "answer")
        return (
            inconclusive(unread)
            if unread
            else without_absence(not_applicable("the run gave no answer"), lacks_calls(run))
        )
    stated = claims(run.answer)
    if not stated:
        return without_absence(not_applicable("the answer states no id, number or date"), lacks_calls(run))
    known = Known()
    known.tell(*tellable(_near(run)))
    rest = known.unfounded(stated)
    if rest:
        known.tell(*tellable(_further(run)))
        rest = known.unfounded(stated)
    good, looked = len(stated) - len(rest), _looked_at(run)
    if not rest:
        said = passed(f"{good} claim(s) in the answer, each found in {looked}", of=(good, good))
        return without_absence(said, lacks_calls(run))
    named = ", ".join(f"{_NAMES[claim.kind]} {claim.text}" for claim in rest[:5])
    named += f" and {len(rest) - 5} more" if len(rest) > 5 else ""
    if lack := lacks_calls(run) or _unread(run):
        return inconclusive(f"where the answer has {named} from cannot be told: {lack}")
    because = f"the answer states {named}, found in none of {looked}"
    return failed(because, findings=[_finding(run, claim) for claim in rest[:_MOST]], of=(good, len(stated)))


def _near(run: Trajectory) -> Iterator[object]:
    """What is at hand: the request, the first model call's messages, every call."""
    yield run.request
    yield from (message.content for message in run.history or ())
    for call in run.tool_calls:
        yield from (call.arguments, call.error, None if call.result is MISSING else call.result)


def _further(run: Trajectory) -> Iterator[object]:
    """What takes longer to read: every message that any model call was given, and what tools say of themselves."""
    said = [message for call in run.model_calls for message in call.input_messages or ()]
    said += [call.output for call in run.model_calls if call.output is not None]
    yield from dict.fromkeys(message.content for message in said if message.content != run.answer)
    yield from Schemas(run).definitions()
    yield from (event.attributes for event in run.events)


def _unread(run: Trajectory) -> str | None:
    """Why a source may be missing."""
    for gap in run.coverage.missing:
        if gap.fact == "request" or gap.fact.startswith(("tool_calls[", "model_calls")):
            return f"{gap.fact} is missing ({gap.because})"
    for call in run.tool_calls:
        if call.ran and (call.arguments is None or (call.result is MISSING and call.error is None)):
            return f"what {call.name} was given or answered was not recorded"
    for model in run.model_calls:
        if any(message.content is None and not message.tool_calls for message in model.input_messages or ()):
            return f"messages of turn {model.index + 1} were not recorded"
    return None


def _looked_at(run: Trajectory) -> str:
    return f"{len(run.model_calls)} turn(s) and {len(run.tool_calls)} call(s)"


def _finding(run: Trajectory, claim: Claim) -> Finding:
    because = f"{_NAMES[claim.kind]} {claim.text} has no source"
    where = Evidence(span_id=run.root_span_id, pointer="/answer", note=because)
    return Finding(subject=f"{claim.kind}|{claim.name}", because=because, evidence=(where,))
