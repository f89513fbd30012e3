"""A slice of ``benchmarks/soak.py``, and how it tells growth from noise."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import soak
from ingest_goals import goals
from soak_slope import slope


@pytest.mark.parametrize("leak", [0.0, 40.0])
def test_a_slope_is_found_among_noise_that_goes_together(leak: float) -> None:
    """Twenty minutes of samples, MiB an hour: the interval holds what was planted, and is not that of independent ones."""
    chance = random.Random(5)
    drift, times, values = 0.0, [], []
    for n in range(2400):
        drift = 0.98 * drift + chance.gauss(0, 0.2)
        times.append(n / 7200)
        values.append(200 + leak * n / 7200 + drift)
    found = slope(times, values, block=1 / 60)

    assert found is not None
    assert found.low < leak < found.high
    assert 1 < found.high - found.low < 30
    assert slope(times[:600], values[:600], block=1 / 60) is None


def test_a_run_that_lacks_a_span_or_a_verdict_is_told() -> None:
    """The claims at the end can fail, each by itself."""

    seen = SimpleNamespace(stored={"a": 20, "b": 19}, flagged={"b"}, states=Counter({"scored": 2}))
    sent = soak.Sent(Counter({"a": 20, "b": 20}), {"a"})
    sample = soak.Sample(
        at=0, service_mib=1, scorers_mib=1, open_runs=0, lag=0, series=9, most_series=1002, journal_mib=1, store_mib=1
    )  # fmt: skip
    rise = soak.Slope(40, 30, 50)
    told = soak.verdicts(sent, seen, [sample], rise, long=True)  # type: ignore[arg-type]
    assert [holds for _, holds, _ in told] == [False] * 4
    assert soak.verdicts(sent, seen, [sample], rise, long=False)[3][1] is None  # type: ignore[arg-type]


def test_a_short_soak_stores_what_was_acknowledged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Flagged runs, late spans and labels without end, at a load that any machine sustains. The slope is not told."""
    code = soak.soaked(tmp_path / "soak", seconds=8, rate=400, fill=600, kept=None)
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])

    assert figures["holds"] == {
        "acknowledged = stored": True,
        "each run judged right": True,
        "series capped": True,
        "memory": None,
    }
    assert code == 3
    assert figures["runs"] > 600


def test_a_goal_is_met_or_not_by_what_was_measured() -> None:
    """Parts that were not measured are not in the table."""
    found = {
        goal.what: goal.met for goal in goals({"memory": [{"open_runs": 10, "mib_per_1000_open_runs": 2.5}]})
    }
    assert found == {"MiB per 1,000 of 10 open runs": False}
    assert next(iter(goals({"loop": [{"spans_per_cpu_second": 30_000}]}))).met
