"""MLflow's tracking server in a process of its own: started, read back through its own client, ended."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

from .conftest import Started, surroundings
from .phoenix import free_ports

READ = """
import json, sys
from mlflow import MlflowClient
found = []
for trace in MlflowClient(sys.argv[1]).search_traces(locations=["0"], include_spans=True):
    found.append({
        "metadata": dict(trace.info.trace_metadata), "tags": dict(trace.info.tags), "state": str(trace.info.state),
        "request": trace.info.request_preview, "response": trace.info.response_preview,
        "spans": [{
            "name": span.name, "kind": span.span_type, "inputs": span.inputs, "outputs": span.outputs,
            "tokens": span.attributes.get("mlflow.chat.tokenUsage"), "attributes": dict(span.attributes),
            "parent": span.parent_id,
        } for span in trace.data.spans],
    })
print(json.dumps(found, default=str))
"""


class Mlflow:
    """One server on a free port, with its database in a folder."""

    def __init__(self, python: Path, folder: Path, notes: Path) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self._python, self._folder, self._port = python, folder, port
        self._log = folder / "mlflow.log"
        self._started: Started | None = None
        self._environment = surroundings(
            notes,
            HOME=str(folder),
            MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false",
            MLFLOW_DISABLE_TELEMETRY="true",
            MLFLOW_MODEL_CATALOG_URI="",  # prices, which it would fetch for spans with tokens
        )

    def start(self, *, within: float = 200) -> None:
        """Start it and wait until it answers."""
        store = f"sqlite:///{self._folder / 'mlflow.db'}"
        command = [
            *(self._python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self._port)),
            *("--backend-store-uri", store, "--default-artifact-root", str(self._folder / "artifacts")),
            *("--workers", "1"),
        ]
        self._started = Started.of(
            command, cwd=self._folder, env=self._environment, log=self._log, quiet=True
        )
        deadline = time.monotonic() + within
        while time.monotonic() < deadline and self._started.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=5):
                    return
            except OSError:
                time.sleep(0.5)
        raise AssertionError(f"MLflow is not ready: {self._log.read_text()[-2000:]}")

    @property
    def pid(self) -> int:
        """Of the process that was started."""
        assert self._started is not None
        return self._started.process.pid

    def end(self) -> None:
        """Stop it."""
        if self._started is not None:
            self._started.end()

    def traces(self) -> list[dict[str, Any]]:
        """Every trace, as its own client reads it."""
        done = subprocess.run(
            [self._python, "-c", READ, self.url],
            env=self._environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=200,
        )
        return list(json.loads(done.stdout.splitlines()[-1]))
