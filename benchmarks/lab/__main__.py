"""The evaluation lab: ``cd benchmarks && python -m lab [--keep DIR]``.

Twenty requests to the bookshop, one more that is served right by a route of ten times the price, and one with an unwanted
side effect; five runs each, with a healthy agent and with one thing broken at a time. Outcome and trajectory are measured
in every run, and a metric has caught a break when it moved by more than chance (paired per scenario, Student's t, Holm
over the metrics). Seeded: the same table every time. ``--keep`` leaves the runs as JSON lines for ``redfirst reliability``
and ``redfirst compare``. Needs no network.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.noticing import seen
from lab.playing import Run, play
from lab.scenarios import BREAKS, HEALTHY
from lab.tables import answers, hand_in, odd_ones, prices
from redfirst.collector_processor.reliability.tables import as_text


def main() -> int:
    """Play every condition and print the tables. 0 when each break moved some metric."""
    parser = argparse.ArgumentParser(
        prog="lab", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", metavar="DIR", type=Path, help="leave the runs there as JSON lines")
    options = parser.parse_args()
    played = {condition.name: list(play(condition)) for condition in (HEALTHY, *BREAKS)}
    if options.keep is not None:
        keep(options.keep, played)
    found = {one.name: seen(played[HEALTHY.name], played[one.name]) for one in BREAKS}
    for line in as_text(
        [hand_in(played, found), answers(found), prices(played), odd_ones(played[HEALTHY.name])]
    ):
        print(line)
    return 0 if all(one.caught or one.moved for one in found.values()) else 1


def keep(folder: Path, played: Mapping[str, Sequence[Run]]) -> None:
    """One file of JSON lines a condition."""
    folder.mkdir(parents=True, exist_ok=True)
    caps = {one.name: one.step_cap for one in (HEALTHY, *BREAKS)}
    for name, runs in played.items():
        path = folder / f"{re.sub('[^a-z]+', '-', name.lower()).strip('-')}.jsonl"
        with path.open("w", encoding="utf-8") as out:
            for run in runs:
                line = {
                    "task": run.scenario,
                    "trial": run.trial,
                    "passed": run.right and not run.failed,
                    "goal": run.right,
                    "violations": list(run.failed),
                    "tokens": run.tokens,
                    "steps": run.model_calls,
                    "cap": caps[name],
                }
                out.write(f"{json.dumps(line)}\n")
        print(f"wrote {path}", file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(main())
