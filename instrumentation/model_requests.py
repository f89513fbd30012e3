"""What a model is asked: messages, tools and the model's name, under the parameters that vendors' clients give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redfirst.instrumentation.conversation import Turn, listed, mapped, read_messages

_MESSAGES = ("messages", "input", "contents", "prompt")
"""OpenAI chat, Anthropic, Bedrock and LiteLLM; OpenAI responses; Google GenAI; a text."""


def model_of(arguments: Mapping[str, Any]) -> str | None:
    """The name of the model asked for."""
    found = arguments.get("model", arguments.get("modelId"))
    return found if isinstance(found, str) else None


def messages_of(request: Mapping[str, Any]) -> tuple[Turn, ...] | None:
    """The messages of a request given as JSON data, the system's first; ``None`` when there are none to be read."""
    key = next((key for key in _MESSAGES if request.get(key) is not None), None)
    turns = None if key is None else read_messages(request[key])
    if turns is None:
        return None
    config = mapped(request.get("config"))
    for system in (
        request.get("system"),
        request.get("instructions"),
        config.get("system_instruction", config.get("systemInstruction")),
    ):
        said = _system(system)
        if said is not None:
            turns = (said, *turns)
    return turns


def _system(value: Any) -> Turn | None:
    if isinstance(value, str):
        return Turn(role="system", text=value)
    blocks = listed(value) or listed(mapped(value).get("parts"))
    texts = [
        block if isinstance(block, str) else block["text"]
        for block in blocks
        if isinstance(block, str) or (isinstance(block, Mapping) and isinstance(block.get("text"), str))
    ]
    return Turn(role="system", text="\n".join(texts)) if texts else None


def definitions_of(request: Mapping[str, Any]) -> list[Any] | None:
    """The tools that the model may ask for, as they were given."""
    for found in (
        request.get("tools"),
        mapped(request.get("toolConfig")).get("tools"),
        mapped(request.get("config")).get("tools"),
    ):
        if isinstance(found, list):
            return found
    return None
