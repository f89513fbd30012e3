"""Numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from redfirst.collector_processor.reliability.estimates import Estimate
from redfirst.evaluators.statistics.proportions import Interval

UNKNOWN = "–"


def percent(value: float | None) -> str:
    """A share in per cent with one decimal; never 0.0 or 100.0 for a share that is not exactly so."""
    if value is None:
        return UNKNOWN
    if 0 < value < 0.0005:
        return "<0.1 %"
    if 0.9995 <= value < 1:
        return ">99.9 %"
    return f"{100 * value:.1f} %"


def points(value: float) -> str:
    """A difference of shares in percentage points, with its sign."""
    return f"{100 * value:+.1f}"


def share_interval(interval: Interval | None) -> str:
    """Both ends in per cent."""
    return UNKNOWN if interval is None else f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def number_interval(interval: Interval | None) -> str:
    """Both ends as amounts."""
    return UNKNOWN if interval is None else f"[{amount(interval.low)}, {amount(interval.high)}]"


def methods(intervals: Iterable[Interval | None]) -> list[str]:
    """How the intervals were found, each method once."""
    names = dict.fromkeys(one.method for one in intervals if one is not None)
    return [name.replace("wilson", "Wilson").replace("t over", "Student's t over") for name in names]


def amount(value: float | None) -> str:
    """Three significant digits, or a whole number with separators."""
    if value is None:
        return UNKNOWN
    if math.isinf(value):
        return "∞"
    if value >= 1000 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def counted(estimate: Estimate) -> str:
    """The runs behind a share."""
    return f"{estimate.passes} of {estimate.of}"


def tally(counts: Mapping[str, int], *, most: int = 6) -> str:
    """Names with their counts, the frequent first."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{name} {count}" for name, count in ranked[:most]]
    rest = sum(count for _, count in ranked[most:])
    return ", ".join([*shown, f"others {rest}"] if rest else shown)
