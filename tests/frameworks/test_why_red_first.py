"""docs/why-red-first.md, carried out: the commands of the page against a real Phoenix, and the table it prints."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .conftest import ROOT, Programs, beside, environment_of
from .phoenix import Phoenix

PAGE = ROOT / "docs" / "why-red-first.md"
EVALUATORS = ("exact_match", "matches_regex", "precision_micro")


@pytest.fixture(scope="module")
def phoenix(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phoenix]:
    """Phoenix with an empty database."""
    made = Phoenix(
        environment_of("phoenix", "bin/phoenix"), tmp_path_factory.mktemp("phoenix"), programs.notes
    )
    try:
        made.start()
        yield made
    finally:
        made.end()


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the page works in, and redfirst beside it as an environment without it would have it."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    beside(folder, "evaluators", "instrumentation", "examples.bookshop")
    return folder


def commands() -> list[str]:
    """The commands of the page, from the configuration on."""
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line.partition("  #")[0].strip() for line in block.splitlines() if line.strip()]
    return lines[next(n for n, line in enumerate(lines) if line.startswith("printf")) :]


@pytest.fixture(scope="module")
def carry_out(phoenix: Phoenix, programs: Programs, examples: Path) -> Callable[..., tuple[int, str]]:
    """Carries out a command of the page: how it ended and what it printed."""
    python = environment_of("phoenix", "bin/python")
    folder = examples / "examples"

    def done(command: str, link: str = "") -> tuple[int, str]:
        words = [link if word == "LINK" else word for word in shlex.split(command)]
        if words[0] == "python":
            paths = (examples / "site", Path(__file__).parent / "loopback")
            said = programs.run(
                [python, folder / words[1], *words[2:]],
                PYTHONPATH=os.pathsep.join(map(str, paths)),
                PHOENIX_COLLECTOR_ENDPOINT=phoenix.url,
                HOME=str(examples),
            )
            return 0, said
        ran = subprocess.run(
            [sys.executable, "-m", "redfirst.collector_processor.cli", *words[1:]]
            if words[0] == "redfirst"
            else ["sh", "-c", command],
            cwd=folder,
            env={**os.environ, "NO_PROXY": "*", "REDFIRST_HOME": str(examples / "home")},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return ran.returncode, ran.stdout + ran.stderr

    return done


def test_the_scenario_fails_the_agent_that_failed(carry_out: Callable[..., tuple[int, str]]) -> None:
    """The incident is frozen out of Phoenix by the link that the page's program prints, proven, and verified."""
    link, said = "", {}
    for command in commands():
        if "experiment" not in command:
            said[command] = carry_out(command, link)
            link = link or said[command][1].strip()
    freeze, prove, defective, fixed = (end for command, end in said.items() if command.startswith("redfirst"))

    assert (freeze[0], prove[0], defective[0], fixed[0]) == (0, 0, 1, 0), freeze
    assert "request recorded, model recorded, tools recorded, state recorded" in freeze[1]
    assert "PROVEN (recorded)" in prove[1]
    assert defective[1].startswith("RED")
    assert fixed[1].startswith("GREEN")


def test_the_rows_evaluators_pass_on_the_agent_that_failed(carry_out: Callable[..., tuple[int, str]]) -> None:
    """Phoenix' own evaluators give both agents the same full marks."""
    (command,) = (one for one in commands() if "experiment" in one)
    _, said = carry_out(command)
    rows = [json.loads(line) for line in said.splitlines() if line.startswith('{"agent"')]

    assert {row.pop("agent"): row for row in rows} == {
        agent: dict.fromkeys(EVALUATORS, 1.0) for agent in ("defective", "fixed")
    }
