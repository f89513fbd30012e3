"""A run frozen out of a real MLflow server is the run that was sent to it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from redfirst.replay.scenario import load

from .conftest import ROOT, Programs, Started, environment_of, surroundings

INCIDENT = ROOT / "tests" / "fixtures" / "imports" / "shop_incident.otlp.pb"
TRACE = "fd04b1e5eaeb9190adaac27e194a4435"


@pytest.fixture(scope="module")
def mlflow(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with an empty database."""
    folder = tmp_path_factory.mktemp("mlflow")
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    command = [environment_of("mlflow", "bin/python"), "-m", "mlflow", "server", "--host", "127.0.0.1"]
    store = [
        "--backend-store-uri",
        f"sqlite:///{folder / 'db.sqlite'}",
        "--default-artifact-root",
        str(folder),
    ]
    started = Started.of(
        [*command, "--port", str(port), "--workers", "1", *store],
        cwd=folder,
        env=surroundings(
            programs.notes,
            HOME=str(folder),
            MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false",
            MLFLOW_DISABLE_TELEMETRY="true",
        ),
        log=folder / "log",
        quiet=True,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 150
        while not answers(f"{url}/health"):
            assert time.monotonic() < deadline, (folder / "log").read_text()[-2000:]
            time.sleep(0.3)
        yield url
    finally:
        started.end()


def answers(url: str) -> bool:
    """Whether something answers there."""
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


def test_what_mlflow_gives_back_freezes_to_the_same_scenario(mlflow: str, tmp_path: Path) -> None:
    """Sent over OTLP, read through its API by the link of its page: fixtures, turns, state and clock are the same."""
    headers = {"Content-Type": "application/x-protobuf", "x-mlflow-experiment-id": "0"}
    with urllib.request.urlopen(
        urllib.request.Request(f"{mlflow}/v1/traces", data=INCIDENT.read_bytes(), headers=headers), timeout=30
    ) as answer:
        assert answer.status == 200
    (tmp_path / "rules.yaml").write_text(
        "schema: redfirst.rules/1\nrules:\n  - {kind: require_before, id: verify, call: cancel, needs: verify}\n"
    )
    (tmp_path / "redfirst.yaml").write_text("rules: rules.yaml\n")
    link = f"{mlflow}/#/experiments/0/traces?selectedEvaluationId=tr-{TRACE}"
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
