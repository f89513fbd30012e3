"""Where the failed checks of a run point: the marks of each call, state, span and part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain

from redfirst.collector_processor.showing.columns import Segment
from redfirst.evaluators.canonical import INTENT, digest
from redfirst.evaluators.trajectory import Trajectory
from redfirst.evaluators.verdict import Outcome, Verdict


class Witnesses:
    """The failed checks that point at each place of a run."""

    def __init__(self, run: Trajectory, verdicts: Iterable[Verdict]) -> None:
        self.calls: dict[int, list[Segment]] = defaultdict(list)
        self.states: dict[int, dict[tuple[str, ...], list[Segment]]] = defaultdict(dict)
        self.parts: dict[str, list[Segment]] = defaultdict(list)
        """By part of the run: its request, its termination, its answer."""
        self.spans: dict[str, list[Segment]] = defaultdict(list)
        self.elsewhere: list[tuple[str, str, Segment]] = []
        """Places without a line of their own: a label, what is said of them, the mark."""
        self.repeats: dict[int, Segment] = {}
        """Of each call that the check on repeats counted: which one it repeats."""
        repeated: set[int] = set()
        spans = chain(
            *((one.span_id for one in part) for part in (run.model_calls, run.handoffs, run.events))
        )
        known = set(spans) - {run.root_span_id}
        by_span = {call.span_id: call.index for call in reversed(run.tool_calls)}
        for verdict in sorted(verdicts, key=lambda one: -one.severity):
            if verdict.outcome is not Outcome.FAILED:
                continue
            mark = (f"◀ {verdict.check}", "red" if verdict.flags else "yellow")
            for item in verdict.evidence:
                place = [part.replace("~1", "/").replace("~0", "~") for part in item.pointer.split("/")[1:]]
                number = int(place[1]) if len(place) > 1 and place[1].isascii() and place[1].isdigit() else -1
                if place[:1] == ["tool_calls"] and 0 <= number < len(run.tool_calls):
                    add_mark(self.calls[number], mark)
                    if verdict.check == "repeats":
                        repeated.add(number)
                elif place[:1] == ["model_calls"] and 0 <= number < len(run.model_calls):
                    add_mark(self.spans[run.model_calls[number].span_id], mark)
                elif place[:1] == ["states"] and 0 < number < len(run.states):
                    add_mark(self.states[number].setdefault(tuple(place[3:]), []), mark)
                elif place[:1] in (["request"], ["termination"], ["answer"]):
                    add_mark(self.parts[place[0]], mark)
                elif not place and item.span_id in by_span:
                    add_mark(self.calls[by_span[item.span_id]], mark)
                elif not place and item.span_id in known:
                    add_mark(self.spans[item.span_id], mark)
                else:
                    label = "absent" if place == ["tool_calls"] else "witness"
                    self.elsewhere.append((label, item.note or verdict.because, mark))

        first: dict[tuple[str, str], int] = {}
        for call in run.tool_calls if repeated else ():
            intent = call.name, digest(call.arguments, INTENT)
            if call.index in repeated:
                told = f"repeat of #{first[intent] + 1}" if intent in first else "same answer again"
                self.repeats[call.index] = (told, "yellow")
            if call.ran:
                first.setdefault(intent, call.index)


def add_mark(marks: list[Segment], mark: Segment) -> None:
    """Add a mark that is not there yet."""
    if mark not in marks:
        marks.append(mark)
