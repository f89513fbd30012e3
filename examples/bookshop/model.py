"""The two models of the example: a scripted one, and any OpenAI-compatible endpoint."""

from __future__ import annotations

import hashlib
import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .habits import DEFECTS, Habits
from .planner import Planner
from .toolbox import Say, Step
from .transcript import Message


@dataclass(frozen=True, slots=True)
class ScriptedModel:
    """A deterministic function of messages, tools, error texts and seed to a chat completion."""

    seed: int
    defect: str | None = None
    """A key of ``habits.DEFECTS``; a healthy model has none."""

    def __call__(self, messages: list[Message], tools: list[dict[str, Any]], model: str) -> dict[str, Any]:
        """The next turn of the conversation, in the shape of an OpenAI chat completion."""
        habits = DEFECTS[self.defect] if self.defect else Habits()
        steps = Planner(messages, tools, self.seed, habits).steps()
        return _completion(steps, messages, tools, model)


def _completion(
    steps: Sequence[Step], messages: list[Message], tools: list[dict[str, Any]], model: str
) -> dict[str, Any]:
    text = " ".join(step.text for step in steps if isinstance(step, Say))
    calls = [
        {
            "id": f"call_{len(messages)}_{place}",
            "type": "function",
            "function": {"name": step.tool, "arguments": json.dumps(dict(step.arguments))},
        }
        for place, step in enumerate(steps)
        if not isinstance(step, Say)
    ]
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = calls
    asked, said = json.dumps([messages, tools]), json.dumps(message)
    read, written = len(asked) // 4, len(said) // 4
    return {
        "id": f"chatcmpl-{hashlib.sha256(asked.encode()).hexdigest()[:16]}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
    }


class EndpointError(RuntimeError):
    """The endpoint did not give a completion."""


@dataclass(frozen=True, slots=True)
class HttpModel:
    """An OpenAI-compatible endpoint, asked over HTTP."""

    base_url: str
    """Up to and including ``/v1``."""
    model: str
    key: str = ""
    seed: int | None = None
    timeout: float = 60.0

    def __call__(self, messages: list[Message], tools: list[dict[str, Any]], model: str) -> dict[str, Any]:  # noqa: ARG002 - the endpoint's own name is asked for
        """One ``POST …/chat/completions``.

        Raises:
            EndpointError: the endpoint refused or could not be reached.
        """
        body: dict[str, Any] = {"model": self.model, "messages": messages, "tools": tools}
        if self.seed is not None:
            body["seed"] = self.seed
        request = urllib.request.Request(  # noqa: S310 - chat_over_http lets only http and https through
            f"{self.base_url.rstrip('/')}/chat/completions",
            data=json.dumps(body).encode(),
            headers={"content-type": "application/json", "authorization": f"Bearer {self.key}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as response:  # noqa: S310 - as above
                completion: dict[str, Any] = json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                why = error.read(500).decode(errors="replace")
            raise EndpointError(f"{self.base_url} answered {error.code}: {why}") from error
        except urllib.error.URLError as error:
            raise EndpointError(f"{self.base_url} cannot be reached: {error.reason}") from error
        return completion


def chat_over_http(base_url: str, model: str, key: str = "", *, seed: int | None = None) -> HttpModel:
    """The model behind an OpenAI-compatible endpoint, for example ``http://localhost:11434/v1``."""
    if not base_url.startswith(("http://", "https://")):
        raise ValueError(f"base_url must begin with http:// or https://; got {base_url!r}")
    return HttpModel(base_url, model, key, seed)
