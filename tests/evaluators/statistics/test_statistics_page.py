"""The page on statistics says what the code does."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

SOURCES = Path(os.environ.get("REDFIRST_SOURCES", Path(__file__).parents[3]))
PAGE = (SOURCES / "docs" / "statistics.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_runs(example: str) -> None:
    """Their assertions hold."""
    names: dict[str, Any] = {}
    exec(example, names)

    assert "assert" in example


def test_every_module_has_its_section() -> None:
    """A number that no page explains is one that nobody can trust."""
    modules = {path.stem for path in (SOURCES / "evaluators" / "statistics").glob("[!_]*.py")}
    headings = " ".join(re.findall(r"^## (.*)$", PAGE, re.MULTILINE))

    assert len(modules) == 10
    assert modules == set(re.findall(r"`(\w+)`", headings))
