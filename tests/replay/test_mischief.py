"""A proof comes from an execution that was watched from its beginning to its end, or there is none."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from redfirst.evaluators import ConfigurationError
from redfirst.replay.project import load_project
from redfirst.replay.proof import prove
from redfirst.replay.report import Refusal, Report

from .conftest import Place

HERE = Path(__file__).parent


@pytest.fixture
def prey(place: Place) -> Place:
    """The bad agent's incident, in which the argument ``note`` is not compared."""
    shutil.copy(HERE / "mischief.py", place.project.root)
    path = place.scenario / "scenario.yaml"
    text = path.read_text()
    ignoring = text.replace(
        "  cancel:\n    effect: write\n", "  cancel:\n    effect: write\n    match: {ignore: [note]}\n"
    )
    assert ignoring != text
    path.write_text(ignoring + "proof:\n  timeout: 20.0\n")
    return place


def proof_of(prey: Place, factory: str) -> Report:
    return prove(prey.scenario, prey.project, agent=f"mischief:{factory}")


@pytest.mark.parametrize(
    ("factory", "refusal", "words"),
    [
        ("writing_spans", Refusal.UNSEEN_CALL, "more than the replay answered it"),
        ("out_of_the_door", Refusal.UNSEEN_CALL, "called for real or not at all"),
        ("forging", Refusal.CHILD_DIED, "no result"),
        ("leaving_a_fork", Refusal.CHILD_DIED, "status 9"),
        ("worked_by_another_process", Refusal.AGENT_NOT_CALLED, "without calling an instrumented agent"),
        ("trying_for_ever", Refusal.OFF_TAPE, "Not on tape: lookup"),
    ],
)
def test_what_was_not_seen_to_happen_proves_nothing(
    prey: Place, factory: str, refusal: Refusal, words: str
) -> None:
    """Spans without calls, results from elsewhere and work of other processes are refused, and soon."""
    began = time.monotonic()

    report = proof_of(prey, factory)

    assert report.refusal is refusal, report.because
    assert words in report.because
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    "factory",
    ["returning_twice", "printing", "running_on", "waiting", "streaming", "asynchronously_streaming"],
)
def test_an_agent_of_any_habit_is_executed_to_its_end(prey: Place, factory: str) -> None:
    """A second return, a flood of output, a daemon, an event loop or a stream changes nothing of the proof."""
    report = proof_of(prey, factory)

    assert report.proven, report.because


@pytest.mark.parametrize("factory", ["unseeded", "as_class_attributes", "local_time", "sorted_threads"])
def test_chance_and_local_time_are_frozen(prey: Place, factory: str) -> None:
    """An unseeded ``Random`` and the time zone are functions of the scenario; patched functions bind to no object.
    What threads bring may be put in order."""
    report = proof_of(prey, factory)

    assert report.proven, report.because


@pytest.mark.parametrize(
    ("factory", "named"),
    [
        ("monotonic", "clock time.monotonic in mischief"),
        ("file_time", "the time of a file, os.stat in mischief"),
        ("process_id", "the process id"),
        ("folder", "the working folder"),
        ("temporary", "the working folder"),
        ("addressed", "the address of an object"),
        ("variable", "alone was changed: environment variable HOME."),
        ("machine", "alone was changed: the machine, socket.gethostname."),
        ("drawn_by_the_kernel", "the machine's /proc/sys/kernel/random/uuid"),
        ("racing_threads", "alone was changed: the order in which concurrent calls are answered."),
        ("racing_tasks", "alone was changed: the order in which concurrent calls are answered."),
    ],
)
def test_what_is_not_frozen_is_found_and_named(prey: Place, factory: str, named: str) -> None:
    """Sources that may stand still for a second, or on one machine, are run in two of them."""
    report = proof_of(prey, factory)

    assert report.refusal is Refusal.NONDETERMINISTIC, report.because
    assert named in report.because


@pytest.mark.parametrize("factory", ["today", "switched_by_variable"])
def test_what_does_not_reach_an_event_is_named_in_the_proof(prey: Place, factory: str) -> None:
    """Code that uses a source and does the same whatever it says is proven; a reader is told what was used."""
    named = {
        "today": "the output of subprocess 'date'",
        "switched_by_variable": "environment variable HOME in mischief",
    }
    report = proof_of(prey, factory)

    assert report.proven, report.because
    assert named[factory] in next(step.said for step in report.steps if step.name == "S4")
    assert named[factory] in (prey.scenario / "proof.json").read_text()


def test_the_program_date_tells_the_frozen_clock(prey: Place) -> None:
    """Of the day of the incident; what it is asked to convert it converts."""
    path = prey.scenario / "scenario.yaml"
    path.write_text(re.sub(r"start: .*", "start: '2025-02-03T04:05:06Z'", path.read_text()))

    report = proof_of(prey, "today")

    assert report.proven, report.because
    called = [line for line in report.red.execution.events if '"cancel"' in line] if report.red else []
    assert "2025-02-03 04:05 then 2020-01-01" in called[0]


def test_a_variable_that_the_project_sets_is_the_same_everywhere(prey: Place) -> None:
    """It is given to every replay, and no longer a source of chance."""
    (prey.project.root / "redfirst.yaml").write_text(
        'agents:\n  shop: {call: "shop:bad", environment: {HOME: /srv/agent}}\n'
    )
    report = prove(prey.scenario, load_project(prey.project.root), agent="mischief:variable")

    assert report.proven, report.because
    assert report.red is not None
    assert not report.red.execution.unfrozen
    assert any('"note":"/srv/agent"' in line for line in report.red.execution.events)


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        (
            "needing",
            "missing 1 required positional argument: 'argument'. Name a factory: it is called without arguments",
        ),
        ("nothing", "gave NoneType, which is not a function"),
        ("later", "a factory is a plain function"),
        ("leaving", "SystemExit: not today"),
        ("absent", "has no attribute 'absent'"),
    ],
)
def test_a_factory_that_makes_no_agent_is_a_configuration_error(
    prey: Place, factory: str, words: str
) -> None:
    """One line that names the reference and what it gave."""
    with pytest.raises(ConfigurationError, match=f"agent mischief:{factory}: it cannot be made") as problem:
        proof_of(prey, factory)
    assert words in str(problem.value)
    assert "\n" not in str(problem.value)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_an_interrupt_leaves_no_process_and_no_half_file(prey: Place) -> None:
    """Ctrl-C ends the agent, what it started, and the command; the scenario is as it was."""
    (prey.project.root / "slow.py").write_text(
        "import subprocess, time\nfrom shop import make\n"
        "def agent():\n"
        "    def extra(tools):\n"
        "        subprocess.Popen(['sleep', '61.25'])\n"
        "        print('begun', file=open(__file__ + '.begun', 'w'))\n"
        "        time.sleep(60)\n"
        "    return make(extra=extra)\n"
    )
    before = {path.name: path.read_bytes() for path in prey.scenario.iterdir()}
    command = subprocess.Popen(
        [sys.executable, "-m", "redfirst.collector_processor.cli", "prove", "--agent", "slow:agent"],
        cwd=prey.project.root,
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    until = time.monotonic() + 20
    while not (prey.project.root / "slow.py.begun").exists() and time.monotonic() < until:
        time.sleep(0.05)
    command.send_signal(signal.SIGINT)

    assert command.wait(10) == 130
    assert not running("61.25")
    assert {path.name: path.read_bytes() for path in prey.scenario.iterdir()} == before


def running(word: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            said = entry.read_bytes()
        except OSError:
            continue
        if word.encode() in said and str(os.getpid()) != entry.parent.name:
            found.append(entry.parent.name)
    return found
