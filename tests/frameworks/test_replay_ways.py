"""Streams, MCP, hand-offs, agents as tools and approvals of the OpenAI Agents SDK are frozen and proven as they are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import test_replay
from .conftest import HERE, Programs, environment_of
from .model_server import ModelServer, Script
from .test_replay import CANCEL, RULES, Desk, Program, installed  # noqa: F401 - a fixture

OTHER = ("cancel_order", {"order_id": "A-43", "reason": "and that one"})
SCRIPTS = {
    "streamed": Script(request="Cancel A-42, quickly.", turns=([CANCEL],), answer="That is dealt with."),
    "mcp": Script(request="Cancel A-42, soon.", turns=([CANCEL],), answer="That is dealt with."),
    "handoff": Script(
        request="Cancel A-42, please.",
        turns=([("ask_policy", {"input": "What is our policy?"})], [("transfer_to_cancels", {})], [CANCEL]),
        answer="That is dealt with.",
    ),
    "approval": Script(
        request="Cancel A-42, or A-43.", turns=([CANCEL], [OTHER]), answer="One of them is cancelled."
    ),
    # last: what the others say holds its words, too
    "policy": Script(request="What is our policy?", turns=(), answer="Orders may be cancelled."),
}
SETTINGS = """\
agents:
  support_agent: {{call: "support:{way}", input: text}}
rules: rules.yaml
traces: [traces]
"""
WAYS = Program(file="openai_agents_ways.py", mended=("", ""), guarded=("", ""), told="", prompted=("", ""))


@pytest.fixture
def desk(tmp_path: Path, programs: Programs, installed: Path) -> Iterator[Desk]:  # noqa: F811
    python = environment_of("frameworks", "bin/python")
    (tmp_path / "rules.yaml").write_text(RULES, encoding="utf-8")
    shutil.copy(HERE / "programs" / "mcp_desk.py", tmp_path)
    model = ModelServer(SCRIPTS)
    yield Desk(tmp_path, python, WAYS, programs, model, installed)
    model.close()


def proof_of(desk: Desk, way: str, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], dict[str, Any]]:
    """The run as it is scored and its proof, for which no model was asked."""
    monkeypatch.setattr(test_replay, "SCRIPTS", SCRIPTS)
    (desk.folder / "redfirst.yaml").write_text(SETTINGS.format(way=way), encoding="utf-8")
    desk.write()
    run = desk.answer(way, way)
    asked = len(desk.model.requests)
    (scored,) = desk.lines("score", "traces", "--rules", "rules.yaml")
    desk.lines("freeze", run)
    (proof,) = desk.lines("prove", "scenarios")
    assert len(desk.model.requests) == asked
    return scored, proof


@pytest.mark.parametrize("way", ["streamed", "mcp", "handoff", "approval"])
def test_a_fault_of_the_model_is_proven_whichever_way_the_program_goes(
    desk: Desk, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of a stranger is cancelled; executed from its own trace the program does so again."""
    scored, proof = proof_of(desk, way, monkeypatch)

    assert {check for check, *_ in proof["signature"]} == {"verify-before-cancel"}
    assert proof["proven"], proof
    ran = [(call["name"], call["status"]) for call in scored["tool_calls"] if call["name"] == "cancel_order"]
    expected = [("cancel_order", "denied")] * (way == "approval") + [("cancel_order", "ok")]
    assert ran == expected
    if way == "mcp":  # in production, once; the replay asked the server for its tools alone
        assert (desk.folder / "cancelled.txt").read_text().splitlines() == ["A-42"]


OWN_ERROR = """
import asyncio, json
from redfirst.instrumentation import adapters, door

class Failing:
    def call(self, call):
        return door.Failed(RuntimeError("could not be done"), own=OWN)

adapters.install()
from mcp.client.session import ClientSession
door.occupy_process(Failing())
try:
    said = asyncio.run(ClientSession.call_tool(object.__new__(ClientSession), "cancel_order", {}))
    print(json.dumps(said.model_dump(mode="json", by_alias=True)))
except RuntimeError as problem:
    print(json.dumps(str(problem)))
"""


@pytest.mark.parametrize("own", [True, False])
def test_an_error_of_a_servers_tool_is_a_result_and_a_failure_on_the_way_raises(
    desk: Desk, programs: Programs, own: bool
) -> None:
    """As a client of the protocol meets them: what the tool says of itself comes back marked, the rest is raised."""
    text = OWN_ERROR.replace("OWN", str(own))
    said = json.loads(programs.run([desk.python, "-c", text], PYTHONPATH=str(desk.installed)))

    if own:
        assert said["isError"] is True
        assert [block["text"] for block in said["content"]] == ["could not be done"]
    else:
        assert said == "could not be done"
