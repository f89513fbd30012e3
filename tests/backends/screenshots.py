"""Pictures of one flagged run in the backends that have a page, for the docs: ``python -m tests.backends.screenshots DIR
[phoenix|mlflow]...``.

Needs Chromium, and the environments of ``deploy/dev/frameworks.sh``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.backends.runs import Run
from tests.backends.servers import MlflowBackend, PhoenixBackend, ask
from tests.frameworks.conftest import Served, environment_of

DRAWN_AFTER = 40
"""Seconds that a page has; a busy machine needs more."""

BACKENDS = {"phoenix": PhoenixBackend, "mlflow": MlflowBackend}

PRESSED = {"phoenix": "", "mlflow": "Assess"}


def picture(url: str, to: Path, word: str) -> None:
    """The page at this address once it has drawn itself."""
    python = environment_of("phoenix", "bin/python")
    subprocess.run(
        [python, Path(__file__).with_name("picture.py"), url, to, str(DRAWN_AFTER), word], check=True
    )


def main(to: Path, names: Sequence[str]) -> None:
    """Start each, send a run, let a service judge it, and take the pictures."""
    folder = Path(tempfile.mkdtemp())
    for name in names or BACKENDS:
        made = BACKENDS[name]
        home = folder / name
        home.mkdir()
        backend = made(home, home / "beyond-loopback")
        backend.start()
        entries = [backend.entry(backend.url)]
        project = home / "project"
        project.mkdir()
        served = Served(
            project,
            {
                **{f"REDFIRST_{port}_PORT": "0" for port in ("GRPC", "HTTP", "PAGE")},
                "REDFIRST_HOME": str(project / "home"),
                "REDFIRST_SETTLE_SECONDS": "0.5",
                "REDFIRST_SINKS": json.dumps(entries),
                "NO_COLOR": "1",
            },
        ).start()
        try:
            run = Run()
            body = run.together()
            backend.take(body)
            ask(f"{served.http}/v1/traces", "POST", body)
            deadline = time.monotonic() + 120
            while backend.scores(run.trace_id).get("redfirst") != ["flagged"]:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{name} was not told of the run")
                time.sleep(0.5)
            time.sleep(3)
            (row,) = ask(f"{served.addresses['page']}/api/runs")["runs"]
            print(name, row["url"], flush=True)
            picture(row["url"], to / f"{name}.png", PRESSED[name])
        finally:
            served.end()
            backend.end()


if __name__ == "__main__":
    os.environ.setdefault("REDFIRST_DEV_ENVS", str(Path.home() / ".cache/redfirst/dev"))
    main(Path(sys.argv[1]), sys.argv[2:])
