"""``python -m tests.fuzzing``: mutated bodies in process and over sockets; prints what came of them."""

from __future__ import annotations

import argparse
import json
import secrets
import tempfile
from pathlib import Path

from tests.service.conftest import QUICK, Served

from . import in_process, over_sockets


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("--bodies", type=int, default=1_000_000, help="in this process")
    parser.add_argument("--requests", type=int, default=10_000, help="over HTTP and gRPC to a service")
    parser.add_argument(
        "--seed", type=int, default=None, help="repeats a run; by default another one each time"
    )
    options = parser.parse_args()
    seed = secrets.randbelow(1 << 32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    if options.bodies:
        report("in process", vars(in_process.run(options.bodies, seed)))
    if options.requests:
        with tempfile.TemporaryDirectory(prefix="redfirst-fuzz-") as folder:
            served = Served(Path(folder) / "home", QUICK).start()
            try:
                report("over sockets", vars(over_sockets.run(served, options.requests, seed)))
            finally:
                served.stop()


def report(title: str, figures: dict[str, object]) -> None:
    print(title)
    for name, value in figures.items():
        print(f"  {name:12} {json.dumps(value) if isinstance(value, dict) else value}", flush=True)


if __name__ == "__main__":
    main()
