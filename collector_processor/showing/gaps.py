"""Facts that are missing or were rebuilt, in few words."""

from __future__ import annotations

from collections.abc import Iterable

from redfirst.collector_processor.showing.columns import listed
from redfirst.evaluators.trajectory import Gap


def grouped(gaps: Iterable[Gap]) -> list[tuple[str, str]]:
    """Gaps of one kind on one line: ``result of call #1, 2``."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for gap in gaps:
        head, _, rest = gap.fact.partition("[")
        number, _, part = rest.partition("].")
        groups.setdefault((head if part else gap.fact, part, gap.because), []).append(number)
    out = []
    for (head, part, because), numbers in groups.items():
        what = {"tool_calls": "call #", "model_calls": "turn "}.get(head, f"{head} ")
        known = [str(int(n) + 1) for n in numbers if n.isascii() and n.isdigit()]
        out.append((f"{part} of {what}{listed(known, 30)}" if part and known else head, because))
    return out
