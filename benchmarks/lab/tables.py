"""What is handed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.noticing import Seen, mean
from lab.playing import METRICS, SHARES, Run
from lab.scenarios import DEAR, SCENARIOS, SEEDS, SIDE
from redfirst.collector_processor.reliability.tables import Table
from redfirst.collector_processor.reliability.words import amount


def hand_in(played: Mapping[str, Sequence[Run]], found: Mapping[str, Seen]) -> Table:
    """Which metric caught which break."""
    rows = []
    for name, metric in METRICS.items():
        cells = []
        for condition, runs in played.items():
            value = mean([metric(run) for run in runs])
            shown = f"{100 * value:.0f} %" if name in SHARES else amount(round(value, 2))
            cells.append(f"{shown} {_mark(name, found.get(condition))}")
        rows.append((name, *cells))
    return Table(
        title=f"Which metric caught which break: {len(SCENARIOS)} scenarios × {len(SEEDS)} runs a column",
        header=("mean over runs", *(f"{name}  " for name in played)),
        rows=rows,
        notes=[
            "* moved by more than chance: paired per scenario, p < .05 after Holm over the metrics",
            "~ moved in runs of the same seeds, but in too few scenarios to tell it from chance",
        ],
    )


def _mark(name: str, found: Seen | None) -> str:
    if found is None:
        return " "
    return "*" if name in found.caught else "~" if name in found.moved else " "


def answers(found: Mapping[str, Seen]) -> Table:
    """The same the other way round: for each break what noticed it, and what noticed nothing at all."""
    rows = [
        (f"{name}:", ", ".join(one for one in METRICS if one in seen_of.caught) or "nothing beyond chance")
        for name, seen_of in found.items()
    ]
    silent = [name for name in METRICS if not any(name in one.caught | one.moved for one in found.values())]
    return Table(rows=[*rows, ("never moved:", ", ".join(silent) or "none")], left=frozenset({0, 1}))


def prices(played: Mapping[str, Sequence[Run]]) -> Table:
    """Tokens of all runs for each right outcome, and which checks failed."""
    rows = []
    for name, runs in played.items():
        right = sum(run.right for run in runs)
        strict = sum(run.right and not run.failed for run in runs)
        paid = sum(run.tokens for run in runs)
        price = [amount(paid / wins) if wins else "no success" for wins in (right, strict)]
        failed = sum(bool(run.failed) for run in runs)
        rows.append((name, f"{right} of {len(runs)}", f"{failed} of {len(runs)}", *price))
    return Table(
        title="What a right outcome costs, failures paid for as well",
        header=("", "right", "violated", "tokens per right", "and clean"),
        rows=rows,
    )


def odd_ones(runs: Sequence[Run]) -> Table:
    """The two scenarios with a right answer and something wrong, beside the same requests served well."""
    rows = []
    for odd in (DEAR, SIDE):
        mine, plain = ([run for run in runs if run.scenario == name] for name in (odd.name, odd.task.id))
        rows.append(
            (
                f"{odd.name} ({odd.task.id})",
                f"{sum(run.right for run in mine)} of {len(mine)}",
                f"×{mean([run.tokens for run in mine]) / mean([run.tokens for run in plain]):.1f}",
                f"×{mean([run.tool_calls for run in mine]) / mean([run.tool_calls for run in plain]):.1f}",
                ", ".join(sorted({check for run in mine for check in run.failed})) or "none",
            )
        )
    return Table(
        title="Right outcome, and yet: beside the same request served well",
        header=("scenario", "right", "tokens", "tool calls", "checks that failed"),
        rows=rows,
        left=frozenset({0, 4}),
    )
