"""The day that the demonstration is about: a bookshop's agent in a process of its own, its spans in a file or sent."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from redfirst.collector_processor.commands.demo_wire import SERVE, Wire
from redfirst.evaluators import RedfirstError

TRACES = "traces.jsonl"
SHOP = "bookshop"
FIXED = "bookshop.agent:make"
_SECONDS = 120
CONFIGURATION = f"""\
# The agent that redfirst may call and the policy it is judged by.
agents:
  support: {{call: "{FIXED}", input: messages}}
rules: {SHOP}/rules.yaml
"""


def play(folder: Path, wire: Wire | None) -> tuple[Sequence[str], str]:
    """Put the shop and its configuration into the folder and serve the customers; what was printed of each
    conversation, and where its spans are.

    Raises:
        RedfirstError: the day did not end well.
    """
    with resources.as_file(resources.files("redfirst.examples.bookshop")) as source:
        shutil.copytree(source, folder / SHOP, ignore=shutil.ignore_patterns("__pycache__", "py.typed"))
    configuration = CONFIGURATION + (f"traces: [{TRACES}]\n" if wire is None else wire.configuration)
    (folder / "redfirst.yaml").write_text(configuration, "utf-8")
    environment = dict(os.environ)
    if wire is None:
        command, where = ["--spans", TRACES], f"in {TRACES}"
    else:
        wire.start()
        environment |= {"OTEL_EXPORTER_OTLP_ENDPOINT": wire.endpoint, "OTEL_TRACES_EXPORTER": "otlp"}
        command, where = ["--otlp"], f"sent over OTLP to redfirst serve at {wire.endpoint}"
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and example
            [sys.executable, "-m", SHOP, *command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired as problem:
        raise RedfirstError(f"the bookshop did not end within {_SECONDS} s") from problem
    if wire is not None:  # the receiver of its alerts ends with the demonstration
        (folder / "redfirst.yaml").write_text(CONFIGURATION + SERVE, "utf-8")
    if done.returncode != 0:
        raise RedfirstError(f"the bookshop ended with status {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout.splitlines(), where
