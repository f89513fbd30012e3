"""Has the world moved since the recording: the tools an agent offers its model, its system prompt, its model?

The agent is executed on the tape and what it asks its model with first is held against the recorded first
request and the tool definitions on the incident's trace. A proof of red is about the agent that failed and
stands; a scenario whose agent asks otherwise now is *stale* until a person has looked at it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redfirst.evaluators.canonical import canonical_text, digest
from redfirst.replay.asking import FACTS, Asked, asked, asked_in_facts, described
from redfirst.replay.drift_file import Mark, read_mark, write_mark
from redfirst.replay.playing import EVERYTHING, job
from redfirst.replay.project import Project
from redfirst.replay.proving import incident
from redfirst.replay.runner import execute
from redfirst.replay.scenario import Folder, load

Json = Any

INSTRUCTING = ("system", "developer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What was seen of one scenario."""

    scenario: str
    mark: Mark
    unseen: str = ""
    """Why nothing could be compared."""

    @property
    def exit_code(self) -> int:
        """0 nothing moved that was not reviewed, 1 something did, 3 it could not be seen."""
        if self.unseen:
            return 3
        return 1 if self.mark.open else 0


def drift(path: Path, project: Project, *, agent: str | None = None, reviewed: bool = False) -> Drift:
    """Compare the agent as it is now with the recording, and mark the scenario.

    Args:
        path: the scenario's folder.
        project: where agents are configured.
        agent: ``module:factory`` instead of the configured one.
        reviewed: accept what moved: it is stale no longer, until something else moves.

    Raises:
        ConfigurationError: the scenario or the agent's reference is wrong.
        CannotWrite: the mark cannot be put on disk.
    """
    folder = load(path)
    recorded = next((turn["request"] for turn in folder.model if turn.get("request")), None)
    before = read_mark(path)
    if recorded is None:
        return Drift(
            scenario=folder.scenario.id, mark=before, unseen="the recording holds no request of a model"
        )
    one = job(
        folder,
        project.agent(folder.scenario.agent, agent),
        project,
        turns=[*folder.model, *(folder.control or [])],
        sources=EVERYTHING,
    )
    done = execute(one, hash_seed=0, timeout=folder.scenario.proof.timeout)
    if not done.requests:
        raised = "" if done.error is None else f"; it raised {done.error['type']}: {done.error['message']}"
        why = done.stop_message or f"the agent asked no model anything{raised}"
        return Drift(scenario=folder.scenario.id, mark=before, unseen=why)
    mark = _mark(folder, recorded, done.requests[0], before, reviewed=reviewed)
    if mark != before:
        write_mark(path, mark)
    return Drift(scenario=folder.scenario.id, mark=mark)


def _mark(
    folder: Folder,
    recorded: Mapping[str, Json],
    arguments: Mapping[str, Json],
    before: Mark,
    *,
    reviewed: bool,
) -> Mark:
    now = (asked_in_facts if recorded.get("form") == FACTS else asked)(arguments)
    offered = [tool for tool in arguments.get("tools") or () if isinstance(tool, Mapping)]
    moved = [
        *_model(recorded, now),
        *_tools(folder, recorded, now, offered),
        *_prompt(recorded, now.beside(recorded)),
    ]
    keys = {name: now.keys.get(name) for name in ("model", "tools", "rest", "parameters")}
    seen = digest([keys, _instructions(now.messages)])[:16]
    return Mark(moved=tuple(moved), seen=seen, reviewed=seen if reviewed else before.reviewed)


def _model(recorded: Mapping[str, Json], now: Asked) -> Iterable[str]:
    """The model asked for, and its parameters; what was not recorded is not compared."""
    was, is_now = recorded.get("model"), now.keys.get("model")
    if "model" in recorded and was != is_now:
        yield f"the model: {was} → {is_now}"
    if "rest" in recorded and recorded["rest"] != now.keys.get("rest"):
        yield "the model's parameters"
    given = now.keys.get("parameters", {})
    for name, value in sorted(recorded.get("parameters", {}).items()):
        if canonical_text(value) != canonical_text(given.get(name)):
            yield f"the model's parameter {name}: {canonical_text(value)} → {canonical_text(given.get(name))}"


def _tools(
    folder: Folder, recorded: Mapping[str, Json], now: Asked, offered: Sequence[Mapping[str, Json]]
) -> Iterable[str]:
    current = described(offered)
    if "tools" in recorded and recorded["tools"] != now.keys.get("tools"):
        calls = [call for call in incident(folder).model_calls if call.tools is not None]
        before = described(calls[0].tools or ()) if calls else {}
        told = list(_changes(before, current)) if before else []
        yield from told or ["the tools offered"]
    for name in sorted(folder.scenario.tools):
        if current and name not in current:
            yield f"tool {name} has answers in the scenario and is not offered"


def _changes(before: Mapping[str, Json], now: Mapping[str, Json]) -> Iterable[str]:
    for name in sorted({*before, *now}):
        if name not in now:
            yield f"tool {name} is gone"
        elif name not in before:
            yield f"tool {name} is new"
        elif canonical_text(before[name]) != canonical_text(now[name]):
            told = list(_parameters(before[name].get("parameters"), now[name].get("parameters")))
            yield f"tool {name}: {', '.join(told) or 'its description'}"


def _parameters(before: Json, now: Json) -> Iterable[str]:
    old, new = _properties(before), _properties(now)
    for name in sorted({*old, *new}):
        if name not in new:
            yield f"argument {name} is gone"
        elif name not in old:
            yield f"argument {name} is new"
        elif canonical_text(old[name]) != canonical_text(new[name]):
            yield f"argument {name} changed"
    needed, needs = (set(_list(schema, "required")) for schema in (before, now))
    for name in sorted(needs ^ needed):
        if name in old and name in new:
            yield f"argument {name} is {'required' if name in needs else 'optional'} now"


def _properties(schema: Json) -> Mapping[str, Json]:
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _list(schema: Json, key: str) -> list[str]:
    found = schema.get(key) if isinstance(schema, Mapping) else None
    return [str(item) for item in found] if isinstance(found, list) else []


def _prompt(recorded: Mapping[str, Json], now: Asked) -> Iterable[str]:
    """The system prompt, where one was recorded or is given now."""
    before, after = (_instructions(messages) for messages in (recorded.get("new", ()), now.messages))
    if before == after:
        return
    if not before or not after:
        yield f"the system prompt is {'new' if after else 'gone'}"
        return
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    added, removed = (sum(line.startswith(mark) for line in lines) for mark in ("+ ", "- "))
    yield f"the system prompt: {added} line(s) added, {removed} removed"


def _instructions(messages: Iterable[Json]) -> str:
    """The text of the instructions at the head of a conversation."""
    out: list[str] = []
    for message in messages:
        if not isinstance(message, Mapping) or message.get("role") not in INSTRUCTING:
            break
        text = message.get("content", message.get("text"))
        out.append(text if isinstance(text, str) else canonical_text(text))
    return "\n".join(out)
