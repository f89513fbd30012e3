"""An agent finds nothing of its grader and reaches nobody, by whatever program it looks or calls."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from redfirst.replay.landlock import Locked
from redfirst.replay.playing import INCIDENT, job
from redfirst.replay.runner import Execution, execute
from redfirst.replay.scenario import load
from redfirst.replay.stop import StopKind

from .conftest import Place

HERE = Path(__file__).parent
SEEN = "import sys; from redfirst.replay.landlock import lock; print(lock([sys.argv[1]], network=False))"


@pytest.fixture(scope="session")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the kernel here closes."""
    folder = tmp_path_factory.mktemp("closed")
    done = subprocess.run([sys.executable, "-c", SEEN, folder], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def needs(kernel: str, what: str) -> None:
    if f"{what}=True" not in kernel:
        pytest.skip(f"this kernel's Landlock closes no {what}")


def run(place: Place, factory: str) -> Execution:
    shutil.copy(HERE / "mischief.py", place.project.root)
    folder = load(place.scenario)
    return execute(
        job(folder, f"mischief:{factory}", place.project, turns=folder.model, sources=INCIDENT), hash_seed=1
    )


def noted(execution: Execution) -> str:
    """What the agent found, by its own account."""
    return str(json.loads((execution.output.strip().splitlines() or ["null"])[-1]))


@pytest.mark.parametrize("factory", ["grepping", "reading_natively", "reading_in_a_fork"])
def test_what_reads_beside_python_finds_nothing(
    place: Place, kernel: str, factory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """grep, C and a process of its own all look for the check that judges; the same look finds it when nothing is closed."""
    needs(kernel, "files")
    monkeypatch.setenv("SNOOP_IN", str(place.scenario))

    assert noted(run(place, factory)) == "nothing"

    sys.path.insert(0, str(HERE))
    try:
        import mischief  # type: ignore[import-not-found]

        assert mischief.LOOKS[factory](str(place.scenario)) != "nothing"
    finally:
        sys.path.remove(str(HERE))


def test_what_reads_by_python_is_named(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends without a verdict, whatever the kernel closes."""
    monkeypatch.setenv("SNOOP_IN", str(place.scenario))

    assert run(place, "walking").stop is StopKind.GRADER_READ


@pytest.fixture
def listening() -> Iterator[tuple[int, list[object]]]:
    """A port on this machine, and who came."""
    came: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        over = threading.Event()

        def accept() -> None:
            while not over.is_set():
                try:
                    caller, where = server.accept()
                    caller.close()
                    came.append(where)
                except TimeoutError:
                    continue

        thread = threading.Thread(target=accept)
        thread.start()
        yield server.getsockname()[1], came
        over.set()
        thread.join()


def test_a_program_that_the_agent_starts_reaches_nobody(
    place: Place, kernel: str, listening: tuple[int, list[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The port is there, and is not reached."""
    needs(kernel, "tcp")
    port, came = listening
    monkeypatch.setenv("CALL_AT", str(port))

    assert noted(run(place, "calling_out")) == "nothing"
    assert not came

    socket.create_connection(("127.0.0.1", port)).close()


def test_the_report_says_what_is_closed(place: Place, kernel: str) -> None:
    """By the kernel, or by the audit hook alone."""
    closed = run(place, "walking_past").closed

    assert closed == Locked(files="files=True" in kernel, tcp="tcp=True" in kernel).said()


def test_without_a_lock_the_report_names_the_hook() -> None:
    """And with a part of it that part."""
    assert Locked().said() == "closed by the audit hook alone"
    assert Locked(files=True).said() == "closed by the kernel, too: the scenario's files"
    assert os.sep not in Locked(files=True, tcp=True).said()
