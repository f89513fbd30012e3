"""What a model was asked, in the form its recording is found by.

Our own decorators record a request exactly as the wrapped function was given it. Other instrumentations
record facts of it, each in its own words and leaving something out. ``FACTS`` is the form that both a
recording of theirs and a call at the door can be brought to: roles, texts, calls and answers, tools,
parameters; call ids by the place of their call in the conversation, so that they may be made up afresh.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redfirst.evaluators import Message, ModelCall, Span, semconv
from redfirst.evaluators.canonical import digest, same
from redfirst.evaluators.dialects.messages import messages_of
from redfirst.evaluators.dialects.values import unpacked

Json = Any

FACTS = "facts"
"""``request.form`` of a turn that another instrumentation recorded."""
PARAMETERS = (
    "temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "stop", "seed", "tool_choice",
    "frequency_penalty", "presence_penalty", "reasoning_effort",
)  # fmt: skip
"""What a request is compared by beside messages, tools and model, under the names of OpenAI's API."""
_GENAI = {
    "gen_ai.request.temperature": "temperature",
    "gen_ai.request.top_p": "top_p",
    "gen_ai.request.top_k": "top_k",
    "gen_ai.request.max_tokens": "max_tokens",
    "gen_ai.request.stop_sequences": "stop",
    "gen_ai.request.seed": "seed",
    "gen_ai.request.frequency_penalty": "frequency_penalty",
    "gen_ai.request.presence_penalty": "presence_penalty",
}
_OF_THE_RESPONSE = "openinference.instrumentation.openai_agents"
"""A scope whose model and parameters are those that the answer names, not those that were asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request: what it is found by, and its messages to be shown."""

    keys: Mapping[str, Json]
    messages: Sequence[Json]

    def fits(self, recorded: Mapping[str, Json]) -> bool:
        """Whether this is the recorded request."""
        return (
            self.stale(recorded) is None
            and recorded.get("messages") == self.beside(recorded).keys["messages"]
        )

    def beside(self, recorded: Mapping[str, Json]) -> Asked:
        """The request without the system prompt, where the recording has ``system: false``: it was not recorded."""
        if recorded.get("system", True) or not _instructed(self.messages):
            return self
        keys = {**self.keys, "messages": self.keys["messages"][1:]}
        return Asked(keys=keys, messages=self.messages[1:])

    def stale(self, recorded: Mapping[str, Json]) -> tuple[str, str, str] | None:
        """What beside the messages changed since the recording, was and is; what was not recorded did not."""
        for key, what in (
            ("model", "the model"),
            ("tools", "the tools offered"),
            ("rest", "the model's parameters"),
        ):
            if recorded.get("form") == FACTS and key not in recorded:
                continue
            was, now = recorded.get(key), self.keys.get(key)
            if was != now:
                return what, str(was), str(now)
        given = self.keys.get("parameters", {})
        for name, value in recorded.get("parameters", {}).items():
            if not same(value, given.get(name)):
                return f"the model's parameter {name}", str(value), str(given.get(name))
        return None


def asked(arguments: Mapping[str, Json]) -> Asked:
    """The arguments of a model call as our own decorators record them: by digests of what it was given."""
    messages = arguments.get("messages", arguments.get("input"))
    listed = messages if isinstance(messages, list) else [messages]
    rest = {k: v for k, v in arguments.items() if k not in ("messages", "input", "tools", "model")}
    keys = {
        "model": arguments.get("model"),
        "tools": digest(arguments.get("tools"))[:16],
        "rest": digest(rest)[:16],
        "messages": [digest(message)[:16] for message in listed],
    }
    return Asked(keys=keys, messages=listed)


def asked_in_facts(arguments: Mapping[str, Json]) -> Asked:
    """The arguments of a model call by their facts."""
    listed = facts(messages_of(dict(arguments)) or ())
    keys = {
        "form": FACTS,
        "model": arguments.get("model"),
        "tools": _tools(arguments.get("tools") or ()),
        "parameters": {name: arguments[name] for name in PARAMETERS if arguments.get(name) is not None},
        "messages": [digest(message)[:16] for message in listed],
    }
    return Asked(keys=keys, messages=listed)


def recorded_in_facts(call: ModelCall, span: Span | None) -> Asked | None:
    """What another instrumentation recorded of a request; ``None`` when it recorded no messages.

    A key that its convention does not record is left out, and is not compared.
    """
    if call.input_messages is None:
        return None
    listed = facts(call.input_messages)
    keys: dict[str, Json] = {"form": FACTS, "messages": [digest(message)[:16] for message in listed]}
    if span is not None and span.scope == _OF_THE_RESPONSE and not _instructed(listed):
        keys["system"] = False
    if call.tools is not None:
        keys["tools"] = _tools(call.tools)
    if span is not None and span.scope != _OF_THE_RESPONSE:
        keys |= _parameters(span.attributes)
    return Asked(keys=keys, messages=listed)


def _instructed(messages: Sequence[Json]) -> bool:
    return bool(messages) and messages[0]["role"] == "system"


def _parameters(attributes: Mapping[str, object]) -> dict[str, Json]:
    given = unpacked(attributes.get(semconv.OI_INVOCATION_PARAMETERS))
    if isinstance(given, Mapping):
        found: dict[str, Json] = {"parameters": {name: given.get(name) for name in PARAMETERS}}
        model = given.get("model") or given.get("model_name")
        return found | ({"model": model} if isinstance(model, str) else {})
    if semconv.REQUEST_MODEL in attributes:
        return {
            "model": attributes[semconv.REQUEST_MODEL],
            "parameters": {name: attributes.get(key) for key, name in _GENAI.items()},
        }
    return {}


def facts(messages: Iterable[Message]) -> list[dict[str, Json]]:
    """A conversation by its facts; what one side said in several messages is one."""
    out: list[dict[str, Json]] = []
    places: dict[str, int] = {}
    calls = 0
    for message in messages:
        said: dict[str, Json] = {"role": message.role, "text": message.content or None}
        if message.role == "tool":
            said["text"] = _answered(message.content)
            said["answers"] = places.get(message.tool_call_id or "")
        for wanted in message.tool_calls:
            places[wanted.call_id or ""] = calls
            calls += 1
            # a call without arguments is recorded as an empty object, an empty text or as nothing
            arguments = (wanted.raw_arguments or {}) if wanted.arguments is None else dict(wanted.arguments)
            said.setdefault("calls", []).append({"name": wanted.name, "arguments": arguments})
        if out and out[-1]["role"] == said["role"] == "assistant":
            said = _joined(out.pop(), said)
        out.append(said)
    return out


def _answered(content: str | None) -> Json:
    """What a tool answered: white space and order of keys are the serialiser's, blocks of text around it a protocol's."""
    found = unpacked(content)
    if not (isinstance(found, list) and found and all(_is_text(block) for block in found)):
        return found
    texts = [unpacked(block["text"]) for block in found]
    return texts[0] if len(texts) == 1 else texts


def _is_text(block: object) -> bool:
    return isinstance(block, Mapping) and isinstance(block.get("text"), str) and "type" in block


def _joined(one: Mapping[str, Json], other: Mapping[str, Json]) -> dict[str, Json]:
    texts = [said["text"] for said in (one, other) if said["text"]]
    calls = [*one.get("calls", ()), *other.get("calls", ())]
    joined: dict[str, Json] = {"role": "assistant", "text": "\n".join(texts) or None}
    return joined | ({"calls": calls} if calls else {})


def _tools(offered: Iterable[Mapping[str, object]]) -> str:
    """The tools by name, description and schema of their arguments, as one digest."""
    return digest([_tool(tool) for tool in offered])[:16]


def described(offered: Iterable[Mapping[str, object]]) -> dict[str, Json]:
    """The tools by name: name, description and schema of the arguments of each; what has no name is left out."""
    found = [_tool(tool) for tool in offered]
    return {tool["name"]: tool for tool in found if isinstance(tool.get("name"), str)}


def _tool(tool: Mapping[str, object]) -> Json:
    inside = tool.get("function")
    body = inside if isinstance(inside, Mapping) else tool
    if not isinstance(body.get("name"), str):
        return tool
    schemas = (body.get(key) for key in ("parameters", "input_schema", "inputSchema"))
    schema = next((found for found in schemas if found is not None), None)
    return {
        "name": body["name"],
        "description": body.get("description") or None,
        "parameters": json.loads(schema) if isinstance(schema, str) else schema,
    }
