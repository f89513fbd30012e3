"""Evaluators of other libraries judge runs as checks do."""

from __future__ import annotations

import json
import subprocess
import sys

from .conftest import HERE, environment_of


def test_evaluators_of_other_libraries_are_mounted() -> None:
    """Each says of three runs what its own documentation says: the first is as wanted, the second is in nothing but
    time, and the third calls more than a reference that allows it."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = environment_of("evals", f"lib/{version}/site-packages")
    done = subprocess.run(
        [sys.executable, HERE / "evals_program.py", packages],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines()]

    assert [{check: outcome for check, (outcome, _) in one.items()} for one in said] == [
        {"says-it": "passed", "quick": "passed", "as-expected": "passed"},
        {"says-it": "failed", "quick": "passed", "as-expected": "failed"},
        {"says-it": "passed", "quick": "passed", "as-expected": "passed"},
    ]
    assert "Contains says False" in said[1]["says-it"][1]
