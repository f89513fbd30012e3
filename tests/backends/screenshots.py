"""Pictures of one flagged run in the backends that have a page, for the docs: ``python -m tests.backends.screenshots DIR``.

Needs Chromium, and the environments of ``deploy/dev/frameworks.sh``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.backends.runs import Run
from tests.backends.servers import MlflowBackend, PhoenixBackend, ask
from tests.frameworks.conftest import Served

_WAIT_MS = 25_000


def picture(url: str, to: Path, *, size: str = "1500,900") -> None:
    """The page at this address once it has drawn itself."""
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                *(shutil.which("chromium") or "chromium", "--headless=new", "--no-sandbox", "--disable-gpu"),
                *("--hide-scrollbars", f"--user-data-dir={profile}", f"--window-size={size}"),
                *(f"--virtual-time-budget={_WAIT_MS}", f"--screenshot={to}", url),
            ],
            check=True,
            capture_output=True,
            timeout=300,
        )


def main(to: Path) -> None:
    """Start both, send a run, let a service judge it, and take the pictures."""
    folder = Path(tempfile.mkdtemp())
    for made, name in ((PhoenixBackend, "phoenix"), (MlflowBackend, "mlflow")):
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
            (row,) = served.ask("traces", "--json")
            print(name, row["url"], flush=True)
            picture(row["url"], to / f"{name}.png")
        finally:
            served.end()
            backend.end()


if __name__ == "__main__":
    os.environ.setdefault("REDFIRST_DEV_ENVS", str(Path.home() / ".cache/redfirst/dev"))
    main(Path(sys.argv[1]))
