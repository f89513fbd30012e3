"""The page on reliability says what the commands do."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from redfirst.collector_processor.cli import main
from redfirst.collector_processor.reliability.agent_report import report
from redfirst.collector_processor.reliability.figures import named
from redfirst.collector_processor.reliability.report_tables import report_figures
from redfirst.collector_processor.reliability.results.lines import KEYS
from redfirst.collector_processor.reliability.summary import summarise

from .conftest import trials

PAGE = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text("utf-8")


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every command line of the page that reads files ends with a verdict, not with a mistake."""
    monkeypatch.chdir(tmp_path)
    records = [{**one, "cost": 0.01, "tokens": 100} for one in trials([4, 3, 2, 4, 1], 4)]
    for name in ("results", "before", "after", "pilot"):
        Path(f"{name}.jsonl").write_text("\n".join(map(json.dumps, records)), "utf-8")
    lines = [
        line for line in re.findall(r"^redfirst (.+)$", PAGE, re.MULTILINE) if not line.startswith("report")
    ]

    assert len(lines) == 8
    for line in lines:
        assert main(shlex.split(line, comments=True)) in (0, 1, 3), line


def test_the_example_of_a_line_names_every_key():
    """And no other."""
    example = re.search(r'\{"task".*?\}', PAGE, re.DOTALL)

    assert example is not None
    assert set(json.loads(example[0])) == set(KEYS)


def test_every_figure_is_named():
    """A figure that no page names does not exist for a user."""
    known = {*named(summarise([])), *report_figures(report([], [], agent=None))}
    for figure in known:
        stem = re.sub(r"\[\d+\]", "[k]", figure)
        stem = re.sub(r"\.(low|high)$", "", stem)
        stem = re.sub(r"^ended\..*", "ended.completed", stem)
        stem = re.sub(r"^(tool_calls|tokens|model_calls)\.p95$", r"\1", stem)
        stem = re.sub(r"^(tool_calls)\.median$", r"\1", stem)
        assert f"`{stem}`" in PAGE or f"`{stem}.median`" in PAGE, figure
