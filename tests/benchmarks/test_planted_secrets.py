"""A slice of ``benchmarks/planted_secrets.py``."""

from __future__ import annotations

from pathlib import Path

import planted_secrets


def test_no_planted_secret_is_exported(tmp_path: Path) -> None:
    """Through arguments, results, exceptions, events, names, links, baggage and spans of others."""
    planted, found = planted_secrets.leaks(150, 3, tmp_path / "spans.jsonl")

    assert planted > 1000
    assert not found


def test_equality_survives_so_verdicts_do(tmp_path: Path) -> None:
    """``repeats`` and rules with ``same:`` judge redacted runs as they judge the others."""
    plain = planted_secrets.verdicts(40, 3, tmp_path / "plain.jsonl", redacted=False)
    hidden = planted_secrets.verdicts(40, 3, tmp_path / "hidden.jsonl", redacted=True)

    assert plain == hidden
    assert {outcome for _, outcome, _ in plain} >= {"passed", "failed"}
