"""``python -m bookshop`` as a newcomer types it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import bookshop
import pytest
from bookshop.tasks import conversations

from redfirst.evaluators.otlp import decode_traces
from redfirst.evaluators.reading import read_runs

HERE = Path(bookshop.__file__).parent.parent


def run(*arguments, folder, **variables):
    """The module's output, run in a folder of its own."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("BOOKSHOP_", "OTEL_"))
    }
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "bookshop", *arguments],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(HERE)} | variables,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_one_request_is_answered_and_recorded(tmp_path):
    """The answer on stdout, the spans in ``bookshop.jsonl``."""
    assert (
        run("Where is order A-1001?", folder=tmp_path) == "Order A-1001 is shipped, going to 3 Mill Lane.\n"
    )
    assert len(read_runs(decode_traces((tmp_path / "bookshop.jsonl").read_bytes()))) == 1


@pytest.mark.parametrize("seed", [0, 7])
def test_a_day_is_played_and_every_run_of_it_recorded(tmp_path, seed):
    """One line and one run for each conversation."""
    lines = run("--seed", str(seed), "--spans", "day.jsonl", folder=tmp_path).splitlines()
    runs = read_runs(decode_traces((tmp_path / "day.jsonl").read_bytes()))

    assert len(lines) == len(runs) == len(conversations(seed))
    assert {one.agent_version for one in runs} == {"1.4.0", "1.5.0", "1.5.1", "1.5.2"}


def test_an_endpoint_that_is_down_is_one_line_after_the_answer(tmp_path):
    """No traceback; the spans that were lost are counted."""
    with pytest.raises(subprocess.CalledProcessError) as failed:
        run(
            "Where is order A-1001?",
            "--otlp",
            folder=tmp_path,
            OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9",
            OTEL_EXPORTER_OTLP_TIMEOUT="1",
        )

    assert failed.value.stdout == "Order A-1001 is shipped, going to 3 Mill Lane.\n"
    assert failed.value.stderr == ("bookshop: 4 of 4 spans were not delivered; does the endpoint listen?\n")
