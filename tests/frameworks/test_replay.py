"""Programs on real frameworks, traced by their own instrumentation, are frozen, proven and run as they are.

Each has a fault in its code and, once that is mended, meets a model that makes a mistake of its own.
"""

from __future__ import annotations

import gzip
import importlib
import importlib.metadata
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from .conftest import HERE, Programs, environment_of
from .model_server import VERIFY, ModelServer, Script
from .recorder import Recorder

CANCEL = ("cancel_order", {"order_id": "A-42", "reason": "changed my mind – à bientôt"})
SCRIPTS = {
    "verified": Script(
        request="I am C-7. Cancel my order A-42.",
        turns=([VERIFY], [CANCEL]),
        answer="It is cancelled.",
        insists=True,
    ),
    "unverified": Script(request="Cancel A-42, quickly.", turns=([CANCEL],), answer="That is dealt with."),
}
RULES = """\
schema: redfirst.rules/1
rules:
  - {id: verify-before-cancel, kind: require_before, call: cancel_order, needs: verify_identity}
  - {id: one-cancellation, kind: max_calls, call: cancel_order, max: 1, same: [args.order_id]}
"""
SETTINGS = """\
agents:
  support_agent: {call: "support:make", input: text}
rules: rules.yaml
traces: [traces]
"""

Change = tuple[str, str]


@dataclass(frozen=True)
class Program:
    """A program and what its owner changes in it."""

    file: str
    mended: Change
    """Cancels once."""
    guarded: Change
    """Does not cancel for a customer who was not verified."""
    told: str
    """Why the recording cannot answer the guarded program."""
    prompted: Change
    """Another system prompt."""


PROGRAMS = {
    "langgraph": Program(
        file="langgraph_support.py",
        mended=('"receipt" not in', '"confirmation" not in'),
        guarded=(
            '        answer = TOOLS[call["name"]].invoke(call)\n        if',
            '        if call["name"] == "cancel_order" and "verify_identity" not in str(state["messages"]):\n'
            '            refused = {"role": "tool", "tool_call_id": call["id"]}\n'
            '            answers.append(refused | {"content": "Error: verify the customer first"})\n'
            "            continue\n"
            '        answer = TOOLS[call["name"]].invoke(call)\n        if',
        ),
        told="took another way",
        prompted=("You help customers", "You help all customers"),
    ),
    "openai-agents": Program(
        file="openai_agents_support.py",
        mended=('"receipt" not in result.final_output', "not result.final_output"),
        guarded=(
            "@function_tool\nasync def cancel_order",
            '@function_tool(is_enabled=lambda context, agent: "verify_identity" in context.context)\n'
            "async def cancel_order",
        ),
        told="the tools offered changed",
        prompted=("You help customers", "You help all customers"),
    ),
    "pydantic-ai": Program(
        file="pydantic_ai_support.py",
        mended=('"receipt" not in result.output', "not result.output"),
        guarded=(
            "@agent.tool\nasync def cancel_order",
            "async def known(context, definition):\n"
            '    return definition if "verified" in str(context.messages) else None\n\n\n'
            "@agent.tool(prepare=known)\nasync def cancel_order",
        ),
        told="the tools offered changed",
        prompted=("You help customers", "You help all customers"),
    ),
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This redfirst as the environment of the frameworks finds it: its rooms and what its distribution says."""
    folder = tmp_path_factory.mktemp("installed")
    (folder / "redfirst").mkdir()
    for room in ("evaluators", "instrumentation", "replay", "collector_processor"):
        (here,) = importlib.import_module(f"redfirst.{room}").__path__  # of the wheel as of the sources
        (folder / "redfirst" / room).symlink_to(here)
    ours = importlib.metadata.distribution("redfirst")  # where it is editable, an egg-info beside the sources
    told = folder / f"redfirst-{ours.version}.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(str(ours.metadata), encoding="utf-8")
    (told / "entry_points.txt").write_text(ours.read_text("entry_points.txt") or "", encoding="utf-8")
    return folder


@dataclass
class Desk:
    """A project folder with a program under test in it."""

    folder: Path
    python: Path
    program: Program
    programs: Programs
    model: ModelServer
    installed: Path
    changes: list[Change] = field(default_factory=list)

    def write(self, *changes: Change, name: str = "support.py") -> None:
        """Put the program there, with these changes."""
        text = (HERE / "programs" / self.program.file).read_text(encoding="utf-8")
        for before, after in changes:
            assert text.count(before) == 1, before
            text = text.replace(before, after)
        (self.folder / name).write_text(text, encoding="utf-8")

    def answer(self, script: str, *words: str) -> str:
        """Run the program in production, with these words before the request; its exports lie in ``traces`` then.

        Its flagged run's id.
        """
        recorder = Recorder()
        try:
            said = self.programs.run(
                [self.python, self.folder / "support.py", *words, SCRIPTS[script].request],
                OPENAI_BASE_URL=self.model.url,
                OPENAI_API_KEY="none",
                OTEL_EXPORTER_OTLP_ENDPOINT=recorder.url,
            )
            assert said.splitlines() == [SCRIPTS[script].answer]
            (self.folder / "traces").mkdir()
            for number, body in enumerate(recorder.received(1)):
                text = gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body
                (self.folder / "traces" / f"{number}.otlp.pb").write_bytes(text)
        finally:
            recorder.close()
        (run,) = self.lines("score", "traces", "--rules", "rules.yaml")
        assert run["flagged"]
        return str(run["trace_id"])

    def redfirst(self, *arguments: str, code: int = 0) -> str:
        """What a command prints that ends with this exit code."""
        done = subprocess.run(
            [self.python, "-m", "redfirst.collector_processor.cli", *arguments],
            cwd=self.folder,
            env={
                **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
                "PYTHONPATH": str(self.installed),
                "OPENAI_BASE_URL": self.model.url,
                "OPENAI_API_KEY": "none",
            },
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def lines(self, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
        """The same of a command with ``--json``."""
        return [json.loads(line) for line in self.redfirst(*arguments, "--json", code=code).splitlines()]


@pytest.fixture(params=PROGRAMS)
def desk(
    request: pytest.FixtureRequest, tmp_path: Path, programs: Programs, installed: Path
) -> Iterator[Desk]:
    python = environment_of("frameworks", "bin/python")
    environment_of("frameworks", "lib/python3.11/site-packages/time_machine")
    (tmp_path / "rules.yaml").write_text(RULES, encoding="utf-8")
    (tmp_path / "redfirst.yaml").write_text(SETTINGS, encoding="utf-8")
    model = ModelServer(SCRIPTS)
    yield Desk(tmp_path, python, PROGRAMS[request.param], programs, model, installed)
    model.close()


def test_a_fault_of_the_code_is_proven_and_its_fix_seen_green(desk: Desk) -> None:
    """The program cancels twice; executing it from its own trace fails so, and the mended program passes."""
    desk.write()
    run = desk.answer("verified")
    asked = len(desk.model.requests)

    (draft,) = desk.lines("freeze", run)
    (proof,) = desk.lines("prove", "scenarios")
    assert {check for check, *_ in proof["signature"]} == {"one-cancellation", "repeats"}
    assert (proof["level"], proof["proven"]) == ("recorded", True), (draft, proof)
    desk.redfirst("run", code=1)
    desk.write(desk.program.mended)
    assert "1 GREEN" in desk.redfirst("run")
    desk.write(desk.program.mended, desk.program.prompted)
    assert "changed" in desk.redfirst("run", code=3)
    assert len(desk.model.requests) == asked


def test_a_fault_of_the_model_is_proven_and_a_guard_in_the_code_seen_green(desk: Desk) -> None:
    """The model cancels for a stranger; the code that lets it fails, and the code that does not passes."""
    desk.write(desk.program.mended)
    run = desk.answer("unverified")
    asked = len(desk.model.requests)

    desk.redfirst("freeze", run)
    (proof,) = desk.lines("prove", "scenarios")
    assert {check for check, *_ in proof["signature"]} == {"verify-before-cancel"}
    assert len(desk.model.requests) == asked
    desk.write(desk.program.mended, name="before.py")
    desk.write(desk.program.mended, desk.program.guarded)
    assert desk.program.told in " ".join(desk.redfirst("run", code=3).split())
    desk.redfirst("prove", "scenarios", "--agent", "before:make", "--control", "support:make")
    live = len(desk.model.requests)
    assert live > asked  # what the guard changes no recording answers
    assert "1 GREEN" in desk.redfirst("run")
    assert len(desk.model.requests) == live


RECOVERS = {
    "langgraph": {"error": "recovers", "timeout": "breaks off"},
    "openai-agents": {"error": "recovers", "timeout": "recovers"},
    "pydantic-ai": {"error": "recovers", "timeout": "breaks off"},
}
"""What becomes of a fault at the first tool: a tool that says that it failed is asked again by the model; the Agents SDK
tells the model of any exception, the others end the run by one that nothing handles."""
HANDLED = ("get_order.handle_tool_error = True", "verify_identity.handle_tool_error = True")


def test_a_fault_is_put_in_where_the_program_and_its_framework_would_meet_it(
    desk: Desk, request: pytest.FixtureRequest
) -> None:
    """Each framework makes of a tool's error what it makes of it in production, and so the agent recovers or not."""
    framework = request.node.callspec.params["desk"]
    desk.write()
    run = desk.answer("verified")
    desk.redfirst("freeze", run)
    desk.write(desk.program.mended, *([HANDLED] if framework == "langgraph" else []))

    found = desk.lines("run", "--draft", "--inject", "error,timeout", code=1)

    assert (found[0]["outcome"], found[0]["inject"]) == ("GREEN", None)
    read = {tuple(one["inject"]): one["recovery"].replace("_", " ") for one in found[1:]}
    assert {kind: read["verify_identity", kind] for kind in ("error", "timeout")} == RECOVERS[framework]
    assert all(one["injected"] for one in found[1:])
    assert len(read) == 4
