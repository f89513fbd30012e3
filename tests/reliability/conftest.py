"""Result files as a test needs them, and the verbs as a user calls them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from redfirst.collector_processor.cli import main

Write = Callable[..., str]
Ask = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write records as JSON lines and give the path."""

    def to_file(records: Iterable[Mapping[str, Any]], name: str = "results.jsonl") -> str:
        path = tmp_path / name
        path.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf-8")
        return str(path)

    return to_file


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run a verb with --json; its exit code and its one object."""

    def run(*arguments: str) -> tuple[int, dict[str, Any]]:
        code = main([*arguments, "--json"])
        out = capsys.readouterr().out.splitlines()
        assert len(out) == 1
        found: dict[str, Any] = json.loads(out[0])
        return code, found

    return run


def trials(passes: Iterable[int], of: int) -> list[dict[str, Any]]:
    """Tasks of so many trials each, of which these pass."""
    return [
        {"task": f"t{task}", "trial": trial, "passed": trial < count}
        for task, count in enumerate(passes)
        for trial in range(of)
    ]
