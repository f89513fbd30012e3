"""``redfirst sensitivity`` says which check noticed which break, in a table or in JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from redfirst.collector_processor.cli import main

SOURCES = Path(os.environ.get("REDFIRST_SOURCES", Path(__file__).parents[2]))
HAPPY = Path(__file__).parents[1] / "fixtures" / "otlp" / "pydantic-ai__native-v1__happy.otlp.pb"
"""Two calls: verify_identity, then get_order."""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(
        "schema: redfirst.rules/1\n"
        "rules:\n"
        "  - {id: verify, kind: require_before, call: get_order, needs: verify_identity}\n"
        "  - {id: few, kind: max_calls, call: get_order, max: 1}\n"
        "  - {id: paid, kind: forbid, call: refund, after: get_invoice}\n"
        "tests:\n"
        "  - {steps: [get_order, get_order], expect: {few: failed}}\n",
        encoding="utf-8",
    )
    return path


def test_the_table_fits_and_names_what_was_not_tried(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever reads it sees the score, the breaks by check, and the rule that had no place."""
    assert main(["sensitivity", str(HAPPY), "--rules", str(rules)]) == 0
    out, err = capsys.readouterr()

    assert all(len(line) <= 80 for line in out.splitlines())
    assert "score 1.000" in out
    (dropped,) = [line.split() for line in out.splitlines() if line.startswith("drop_need")]
    assert dropped == ["drop_need", "verify", "1", "1", "0", "0", "0"]
    unplaced = out[out.index("no break had a place for") :].split()
    assert "paid" in unplaced
    assert "nothing tells verify with drop_order" in out
    assert "1 run(s) in 1 file(s)" in err


def test_json_is_one_object_a_line_with_a_summary(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every row adds up, and the summary is the last line."""
    assert main(["sensitivity", str(HAPPY), "--rules", str(rules), "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    rows = [line for line in lines if line["what"] == "row"]
    summary = lines[-1]

    assert all(
        row["mutants"] == row["killed"] + row["by_others"] + row["inconclusive"] + row["survived"]
        for row in rows
    )
    breaks = [row for row in rows if row["expected"] == "killed"]
    assert summary["what"] == "summary"
    assert summary["killed"] + summary["survived"] == sum(row["mutants"] for row in breaks)
    assert (summary["score"], summary["equivalents_killed"]) == (1, 0)
    (raised,) = [line for line in lines if line["what"] == "rule" and line["operator"] == "limit_up"]
    assert (raised["check"], raised["by_test"]) == ("few", "line 7")


def test_without_runs_or_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing to plant is no score; a missing rules file is a mistake."""
    assert main(["sensitivity", str(tmp_path)]) == 0
    assert "no break had a place: 0 of 0" in capsys.readouterr().out
    assert main(["sensitivity", str(tmp_path), "--rules", str(tmp_path / "none.yaml")]) == 2
