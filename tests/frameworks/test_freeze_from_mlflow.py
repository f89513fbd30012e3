"""A run frozen out of a real MLflow server is the run that was sent to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from redfirst.replay.scenario import load

from .conftest import ROOT, Programs, environment_of
from .mlflow_server import Mlflow

INCIDENT = ROOT / "tests" / "fixtures" / "imports" / "shop_incident.otlp.pb"
TRACE = "fd04b1e5eaeb9190adaac27e194a4435"


@pytest.fixture(scope="module")
def mlflow(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mlflow]:
    """A server with an empty database."""
    made = Mlflow(environment_of("mlflow", "bin/python"), tmp_path_factory.mktemp("mlflow"), programs.notes)
    try:
        made.start()
        yield made
    finally:
        made.end()


def test_what_mlflow_gives_back_freezes_to_the_same_scenario(mlflow: Mlflow, tmp_path: Path) -> None:
    """Sent over OTLP, read through its API by the link of its page: fixtures, turns, state and clock are the same."""
    headers = {"Content-Type": "application/x-protobuf", "x-mlflow-experiment-id": "0"}
    with urllib.request.urlopen(
        urllib.request.Request(f"{mlflow.url}/v1/traces", data=INCIDENT.read_bytes(), headers=headers),
        timeout=30,
    ) as answer:
        assert answer.status == 200
    (tmp_path / "rules.yaml").write_text(
        "schema: redfirst.rules/1\nrules:\n  - {kind: require_before, id: verify, call: cancel, needs: verify}\n"
    )
    (tmp_path / "redfirst.yaml").write_text("rules: rules.yaml\n")
    link = f"{mlflow.url}/#/experiments/0/traces?selectedEvaluationId=tr-{TRACE}"
    for out, words in (("there", [link]), ("here", [TRACE, "--traces", str(INCIDENT)])):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "redfirst.collector_processor.cli",
                "freeze",
                *words,
                "--out",
                out,
                "--json",
            ],
            cwd=tmp_path,
            env={**os.environ, "NO_PROXY": "*", "REDFIRST_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert set(json.loads(done.stdout)["completeness"].values()) == {"recorded"}

    assert load(tmp_path / "there").scenario == load(tmp_path / "here").scenario
    assert load(tmp_path / "there").model == load(tmp_path / "here").model
