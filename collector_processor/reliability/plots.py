"""The pictures of a summary, each as SVG and PNG. Needs matplotlib (extra ``plots``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from redfirst.collector_processor.extras import need
from redfirst.collector_processor.reliability.budgets import budget_curve
from redfirst.collector_processor.reliability.summary import AMOUNTS, Reliability, Repeated
from redfirst.collector_processor.reliability.tasks import Task
from redfirst.evaluators.errors import RedfirstError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#777777"
"""Told apart with any colour vision (Okabe and Ito 2008)."""
_SIZE = (6.4, 4.0)
_MOST_BARS = 16
_UNITS = {"cost": "$", "tokens": "tokens", "steps": "steps", "seconds": "s"}


def draw_all(found: Reliability, folder: Path) -> Iterator[Path]:
    """Write every picture the summary has numbers for, and give their paths.

    Raises:
        MissingExtra: matplotlib is not installed.
        RedfirstError: the folder cannot be written.
    """
    need("matplotlib", extra="plots", wanted="--plot")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    pictures: Mapping[str, Callable[[Figure, Reliability], bool]] = {
        "pass_k": _pass_k,
        "tasks": _tasks,
        "outcome_trajectory": _quadrants,
        "budget": _budget,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, draw in pictures.items():
            with rc_context(
                {
                    "axes.spines.top": False,
                    "axes.spines.right": False,
                    "axes.titlesize": 11,
                    "axes.titlelocation": "left",
                    "font.size": 10,
                    "svg.hashsalt": "redfirst",  # the same numbers give the same file
                    "svg.fonttype": "none",
                }
            ):
                figure = Figure(figsize=_SIZE, layout="constrained")
                if draw(figure, found):
                    yield from _saved(figure, folder / name)
    except OSError as problem:
        raise RedfirstError(f"--plot {folder}: cannot be written: {problem}.") from problem


def _saved(figure: Figure, stem: Path) -> Iterator[Path]:
    for suffix, metadata in ((".svg", {"Date": None}), (".png", None)):
        path = stem.with_suffix(suffix)
        figure.savefig(path, dpi=150, metadata=metadata)
        yield path


def _pass_k(figure: Figure, found: Reliability) -> bool:
    """pass@k and pass^k with their intervals."""
    series = (
        ("pass@k: one of k passes", found.pass_at, BLUE),
        ("pass^k: all k pass", found.pass_hat, ORANGE),
    )
    if not any(one.value is not None for one in found.pass_hat.values()):
        return False
    axes = figure.subplots()
    for name, values, colour in series:
        _line(axes, name, values, colour)
    drawn = [k for k, one in found.pass_hat.items() if one.value is not None]
    axes.set_xticks(drawn if len(drawn) <= 16 else drawn[:: len(drawn) // 8])
    axes.set_xlim(min(drawn) - 0.3, max(drawn) + 0.3)
    axes.set(ylim=(0, 105), xlabel="k trials of a task", ylabel="% of tasks")
    axes.set_title(f"Success when a task is tried k times ({len(found.tasks)} tasks, {found.trials} runs)")
    axes.legend(frameon=False, loc="best")
    return True


def _line(axes: Axes, name: str, values: Mapping[int, Repeated], colour: str) -> None:
    ks = [k for k, one in values.items() if one.value is not None]
    middle = [100 * value for one in values.values() if (value := one.value) is not None]
    axes.plot(ks, middle, "o-", color=colour, label=name, markersize=4)
    sure = [
        (k, one.interval) for k, one in values.items() if one.value is not None and one.interval is not None
    ]
    if not sure:
        return
    low = [100 * interval.low for _, interval in sure]
    high = [100 * interval.high for _, interval in sure]
    if len(sure) == 1:
        axes.vlines([sure[0][0]], low, high, color=colour, alpha=0.4, linewidth=6)
    else:
        axes.fill_between([k for k, _ in sure], low, high, color=colour, alpha=0.15, linewidth=0)


def _tasks(figure: Figure, found: Reliability) -> bool:
    """How many tasks pass how often."""
    tried = [task for task in found.tasks if task.valid]
    if not tried:
        return False
    from matplotlib.ticker import MaxNLocator

    bars = _bars(tried)
    axes = figure.subplots()
    colours = [GREY, *[BLUE] * (len(bars) - 2), GREY]
    drawn = axes.bar(list(bars), list(bars.values()), width=0.8, color=colours)
    axes.bar_label(drawn, labels=[str(height) if height else "" for height in bars.values()], padding=2)
    axes.set(ylabel="tasks", ylim=(0, max(bars.values()) * 1.15))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    equal = len({task.valid for task in tried}) == 1
    axes.set_xlabel(
        f"trials that passed, of {tried[0].valid}" if equal else "% of a task's trials that passed"
    )
    axes.set_title("Tasks by how often they pass (grey: never, always)")
    return True


def _bars(tasks: Sequence[Task]) -> Mapping[str, int]:
    """How many tasks pass never, how many now and then, how many always: by counts where all tasks were tried equally
    often, else by quarters, for shares of different numbers of trials do not fall on one grid."""
    trials = {task.valid for task in tasks}
    if len(trials) == 1 and (most := trials.pop()) <= _MOST_BARS:
        return {str(passes): sum(task.passes == passes for task in tasks) for passes in range(most + 1)}
    names = ("0", "up to 25", "25–50", "50–75", "75 to <100", "100")
    places = [
        0
        if not task.passes
        else 5
        if task.passes == task.valid
        else min(4, -(-4 * task.passes // task.valid))
        for task in tasks
    ]
    return {name: places.count(place) for place, name in enumerate(names)}


def _quadrants(figure: Figure, found: Reliability) -> bool:
    """Outcome against trajectory."""
    crossed = found.quadrants
    if crossed is None:
        return False
    counts = [
        [crossed.right_clean, crossed.right_violated],
        [crossed.wrong_clean, crossed.wrong_violated],
    ]
    total = sum(map(sum, counts))
    axes = figure.subplots()
    axes.imshow(
        [[count / total for count in row] for row in counts], cmap="Blues", vmin=0, vmax=1, aspect="auto"
    )
    for y, row in enumerate(counts):
        for x, count in enumerate(row):
            share = count / total
            axes.text(
                *(x, y, f"{count}\n{100 * share:.1f} %"),
                ha="center",
                va="center",
                fontsize=14,
                color="white" if share > 0.65 else "black",
            )
    axes.set_xticks([0, 1], ["no violation", "violation"])
    axes.set_yticks([0, 1], ["goal\nreached", "goal\nmissed"])
    axes.tick_params(length=0)
    axes.set_title(f"Outcome and trajectory of {total} runs")
    return True


def _budget(figure: Figure, found: Reliability) -> bool:
    """Success and its price against a budget per run: in dollars, else in tokens, else in steps."""
    runs = [one for task in found.tasks for one in task.trials]
    name, curve = next(
        (
            (name, curve)
            for name in ("cost", "tokens", "steps")
            if (curve := budget_curve(runs, AMOUNTS[name]))
        ),
        ("", ()),
    )
    if len(curve) < 2 or curve[-1].per_success is None:
        return False
    unit = _UNITS[name]
    axes = figure.subplots()
    beside = axes.twinx()
    beside.spines["right"].set_visible(True)
    axes.step(
        [point.budget for point in curve],
        [100 * point.success for point in curve],
        where="post",
        color=BLUE,
    )
    paid = [(point.budget, point.per_success) for point in curve if point.per_success is not None]
    beside.plot([budget for budget, _ in paid], [price for _, price in paid], color=ORANGE, linestyle="--")
    axes.set_xlabel(f"budget of a run ({unit}); a run that is cut off fails")
    axes.set_ylabel("% of runs that pass within it", color=BLUE)
    beside.set_ylabel(f"{unit} per success (dashed)", color=ORANGE)
    axes.set_ylim(0, 105)
    whole = paid[-1][1]  # a budget that hardly any run keeps within makes a success arbitrarily dear
    beside.set_ylim(0, min(4 * whole, 1.1 * max(price for _, price in paid)))
    axes.set_xlim(left=0)
    axes.set_title("What a budget buys")
    return True
