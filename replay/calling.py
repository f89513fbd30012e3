"""How the agent is made and called: plain function, coroutine, or a stream that is read to its end."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Json = Any


def load(reference: str, options: Mapping[str, Json] | None = None) -> Callable[..., Any]:
    """The agent that ``module:factory`` makes, called with these keyword arguments.

    Raises:
        TypeError: the factory does not take them, or what it gave cannot be called.
    """
    module, _, factory = reference.partition(":")
    made: Any = importlib.import_module(module)
    for part in factory.split("."):
        made = getattr(made, part)
    given = dict(options or {})
    refused = [name for name in given if not _takes(made, name)]
    if refused:
        raise TypeError(f"{factory} takes no {refused[0]}; let it: def {factory}(*, {refused[0]}=…)")
    agent: Any = made(**given)
    if inspect.iscoroutine(agent):
        agent.close()
        raise TypeError(f"{factory} is asynchronous; a factory is a plain function that returns the agent")
    if not callable(agent):
        raise TypeError(f"{factory}() gave {type(agent).__name__}, which is not a function of the request")
    called: Callable[..., Any] = agent
    return called


def _takes(factory: Callable[..., Any], name: str) -> bool:
    parameters = inspect.signature(factory).parameters
    return name in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def converse(agent: Callable[..., Any], request: Mapping[str, Json], hears: Callable[[int], bool]) -> object:
    """Call the agent with its request, then with each later turn of the user's that it ``hears``.

    An agent that takes text keeps the conversation itself: it is called again, in the same process. One that takes
    messages is given the request, its own answers and the user's turns.
    """
    answer = call(agent, request)
    said = list(request.get("messages", ()))
    for turn in request.get("later", ()):
        if not hears(turn["turn"]):
            break
        if "messages" not in request:
            answer = call(agent, {"text": turn["content"]})
            continue
        said += [{"role": "assistant", "content": answer}, {"role": "user", "content": turn["content"]}]
        answer = call(agent, {"messages": list(said)})
    return answer


def call(agent: Callable[..., Any], request: Mapping[str, Json]) -> object:
    """Call the agent with its request and bring what it begins to its end."""
    if "arguments" in request:
        answer = agent(**request["arguments"])
    else:
        answer = agent(request["messages"] if "messages" in request else request["text"])
    if inspect.isgenerator(answer):
        return _joined(list(answer))
    if inspect.isasyncgen(answer):
        return _run(_drained(answer))
    return _run(_awaited(answer)) if inspect.isawaitable(answer) else answer


def _run(work: Any) -> object:
    import asyncio

    return asyncio.run(work)


async def _awaited(answer: Awaitable[object]) -> object:
    return await answer


async def _drained(answer: Any) -> object:
    return _joined([part async for part in answer])


def _joined(parts: list[object]) -> object:
    """A stream of text is its text."""
    return "".join(map(str, parts)) if all(isinstance(part, str) for part in parts) else parts
