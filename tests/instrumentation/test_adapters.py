"""Adapting frameworks costs nothing until one is imported, and a version that does not fit is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from redfirst.instrumentation.adapters import Unadaptable, hold


def python(code: str, path: Path) -> str:
    """What a fresh interpreter prints that finds modules in this folder first."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(path)!r})\n{code}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_installing_imports_no_framework(tmp_path: Path) -> None:
    """Only the agent decides which frameworks its process loads."""
    told = python(
        "from redfirst.instrumentation import adapters\n"
        "adapters.install()\n"
        "print(sorted({'langchain_core', 'openai', 'agents', 'pydantic_ai'} & set(sys.modules)))",
        tmp_path,
    )

    assert told == "[]\n"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("MINE = 1", "imported\n"),  # many a project has a package that is called agents
        ("class FunctionTool: ...", "agents.tool has no _invoke_function_tool_with_metadata; this version"),
    ],
)
def test_a_version_that_cannot_be_adapted_is_refused_by_name(tmp_path: Path, source: str, told: str) -> None:
    """Nothing of it may reach a live tool unseen; a module that only has its name is let alone."""
    package = tmp_path / "agents"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "tool.py").write_text(source)
    said = python(
        "from redfirst.instrumentation import adapters\n"
        "adapters.install()\n"
        "try:\n"
        "    import agents.tool\n"
        "    print('imported')\n"
        "except adapters.Unadaptable as problem:\n"
        "    print(problem)",
        tmp_path,
    )

    assert said.startswith(told)


def test_what_is_missing_is_named() -> None:
    """The message says what to do instead."""
    with pytest.raises(Unadaptable, match=r"Path has no fly.*@tool and @model"):
        hold(Path, "exists", "fly")
