"""What passing runs of a kind of task have in common, for tasks that nobody wrote a reference for.

A signature is a kind of task; its support is how many passing runs of that kind called each tool once or more,
twice or more, and so on (a multiset with counts). What a share of them did is asked of every further run,
and what none did is pointed at: a note, never a flag, because a habit is no duty.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from redfirst.evaluators.reference.table import made_calls
from redfirst.evaluators.rule_kinds.conclude import Tally, at
from redfirst.evaluators.rule_kinds.keys import describe
from redfirst.evaluators.rule_kinds.lacking import incomplete, lacks_calls, lacks_names, without_absence
from redfirst.evaluators.trajectory import CallStatus, Trajectory
from redfirst.evaluators.verdict import Evidence, Finding, Verdict, inconclusive, not_applicable

VERSION = 1
By = Literal["request", "first_tools"]
FIRST_TOOLS = 2
RUNS_AT_LEAST = 20
"""Passing runs of a kind from which anything is asked of it, unless the rules file says otherwise."""
LONGEST_SIGNATURE = 200
_VALUES = (
    (re.compile(r"https?://\S+|\S+@\S+\.\S+"), "#"),
    (re.compile(r"\"[^\"]*\"|“[^”]*”"), "#"),
    (re.compile(r"[^\s,;.!?]*\d[^\s,;!?]*"), "#"),
)
"""What differs from request to request of one kind: addresses, what is quoted, words with a digit."""


@dataclass(frozen=True, slots=True)
class Support:
    """How many passing runs of a kind there were, and by tool how many called it at least 1, 2, … times."""

    runs: int
    tools: Mapping[str, tuple[int, ...]]


def signature_of(run: Trajectory, by: By) -> str | None:
    """The kind of task of a run: its request without values, or the first tools called; ``None`` if not recorded."""
    if by == "first_tools":
        if lacks_calls(run) or lacks_names(run):
            return None
        return ", ".join(attempts[0].name for attempts in made_calls(run)[:FIRST_TOOLS]) or "no tool"
    if run.request is None:
        return None
    text = run.request[: 10 * LONGEST_SIGNATURE]
    for pattern, sign in _VALUES:
        text = pattern.sub(sign, text)
    return " ".join(re.findall(r"[^\W_]+|#", text.lower()))[:LONGEST_SIGNATURE] or "no words"


def learn(passing: Iterable[Trajectory], by: By = "request") -> dict[str, Support]:
    """The support of each signature. Runs of which calls, names of calls or the signature are missing teach nothing."""
    runs: Counter[str] = Counter()
    tools: dict[str, dict[str, list[int]]] = {}
    for run in passing:
        signature = signature_of(run, by)
        if signature is None or lacks_calls(run) or lacks_names(run):
            continue
        runs[signature] += 1
        counts = tools.setdefault(signature, {})
        for tool, times in _successes(run).items():
            reached = counts.setdefault(tool, [])
            reached.extend([0] * (times - len(reached)))
            for place in range(times):
                reached[place] += 1
    return {
        signature: Support(count, {tool: tuple(tools[signature][tool]) for tool in sorted(tools[signature])})
        for signature, count in sorted(runs.items())
    }


def learned_data(found: Mapping[str, Support], by: By = "request") -> dict[str, object]:
    """What was learned, as the key ``learned`` of a rules file has it."""
    return {
        "by": by,
        "signatures": [
            {
                "signature": signature,
                "runs": support.runs,
                "tools": {tool: list(counts) for tool, counts in support.tools.items()},
            }
            for signature, support in found.items()
        ],
    }


def _successes(run: Trajectory) -> Counter[str]:
    return Counter(attempts[-1].name for attempts in made_calls(run) if attempts[-1].status is CallStatus.OK)


@dataclass(frozen=True, slots=True)
class Learned:
    """What was learned of each signature, and how much of it counts."""

    by: By
    signatures: Mapping[str, Support]
    share: float
    """The share of passing runs that makes a habit."""
    runs_at_least: int

    def support(self, run: Trajectory) -> Support | Verdict:
        """The support of the run's signature, or the verdict where there is none."""
        signature = signature_of(run, self.by)
        if signature is None:
            why = lacks_calls(run) or lacks_names(run) if self.by == "first_tools" else None
            return inconclusive(f"the kind of task cannot be told: {why or 'the request was not recorded'}")
        found = self.signatures.get(signature)
        if found is None:
            unknown = not_applicable(f"nothing was learned of this kind of task ({signature})")
            return without_absence(unknown, incomplete(run))
        if found.runs < self.runs_at_least:
            few = f"only {found.runs} passing run(s) of this kind of task; {self.runs_at_least} are asked for"
            return without_absence(not_applicable(few), incomplete(run))
        return found


@dataclass(frozen=True, slots=True)
class LearnedRecall:
    """Calls that passing runs of the kind make and this one made ÷ calls that they make."""

    learned: Learned

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run."""
        support = self.learned.support(run)
        if isinstance(support, Verdict):
            return support
        lack = lacks_calls(run) or lacks_names(run)
        tally, sure = Tally(lack=lack), _successes(run)
        perhaps = Counter(one[-1].name for one in made_calls(run) if one[-1].status is CallStatus.UNKNOWN)
        for tool, counts in support.tools.items():
            for times, runs in enumerate(counts, 1):
                if runs < self.learned.share * support.runs:
                    continue
                because = (
                    f"{tool} succeeded {sure[tool]} time(s); in {runs} of {support.runs} passing runs of this"
                    f" kind it did so at least {times} time(s)"
                )
                evidence = Evidence(span_id=run.root_span_id, pointer="/tool_calls", note=because)
                finding = Finding(subject=tool, because=because, evidence=(evidence,))
                if sure[tool] >= times:
                    tally.good += 1
                elif lack or sure[tool] + perhaps[tool] >= times:
                    tally.unknown.append(finding)
                else:
                    tally.violations.append(finding)
        return tally.verdict(
            nothing=f"the {support.runs} passing runs of this kind have no call in common",
            good=f"every call that at least {self.learned.share:.0%} of {support.runs} passing runs made",
        )


@dataclass(frozen=True, slots=True)
class LearnedToolSelection:
    """Calls of tools that some passing run of the kind called ÷ calls made."""

    learned: Learned

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run."""
        support = self.learned.support(run)
        if isinstance(support, Verdict):
            return support
        tally = Tally(lack=lacks_calls(run) or lacks_names(run))
        unnamed = {gap.fact for gap in run.coverage.missing}
        for attempts in made_calls(run):
            call = attempts[-1]
            if f"tool_calls[{call.index}].name" in unnamed:
                continue  # the verdict is open already, by the lack of a name
            if call.name in support.tools:
                tally.good += 1
                continue
            because = f"{describe(call)}: none of {support.runs} passing runs of this kind called {call.name}"
            tally.violations.append(Finding(subject=call.name, because=because, evidence=(at(call),)))
        return tally.verdict(
            nothing="no tool was called",
            good=f"{tally.good} call(s), all of tools that {support.runs} passing runs of this kind called",
        )
