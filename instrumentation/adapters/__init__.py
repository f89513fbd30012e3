"""The door for frameworks' own tools and models: in a replay they are answered as decorated functions are.

Replay calls ``install`` in the agent's process before it imports the agent. A framework's classes are
adapted when, and only when, the agent imports them; nothing here imports a framework, and in production
nothing here runs.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

ADAPTED = {
    "langchain_core.language_models.chat_models": "redfirst.instrumentation.adapters.langchain:models",
    "langchain_core.tools.base": "redfirst.instrumentation.adapters.langchain:tools",
    "openai.resources.chat.completions.completions": "redfirst.instrumentation.adapters.openai_client:completions",
    "openai.resources.responses.responses": "redfirst.instrumentation.adapters.openai_client:responses",
    "mcp.client.session": "redfirst.instrumentation.adapters.mcp_client:sessions",
    "pydantic_ai.toolsets.function": "redfirst.instrumentation.adapters.pydantic_ai:tools",
    "agents.tool": "redfirst.instrumentation.adapters.openai_agents:tools",
}
"""Module of a framework → the function that adapts it."""


class Unadaptable(Exception):
    """A version of a framework that lacks what its adapter takes hold of."""


def install() -> None:
    """Adapt each framework of ``ADAPTED`` as soon as it is imported, or now where it has been."""
    for name in ADAPTED:
        if name in sys.modules:
            _adapt(sys.modules[name])
    sys.meta_path.insert(0, _Watch())


def hold(owner: Any, *names: str) -> tuple[Any, ...]:
    """The functions of a class or module that an adapter stands before.

    Raises:
        Unadaptable: one of them is not there.
    """
    missing = [name for name in names if not callable(getattr(owner, name, None))]
    if missing:
        raise Unadaptable(
            f"{getattr(owner, '__qualname__', owner.__name__)} has no {missing[0]}; this version cannot be replayed "
            f"through its own calls: wrap the agent's tools and model in @tool and @model."
        )
    return tuple(getattr(owner, name) for name in names)


def _adapt(module: ModuleType) -> None:
    home, _, function = ADAPTED[module.__name__].partition(":")
    getattr(importlib.import_module(home), function)(module)


class _Watch(MetaPathFinder):
    """Finds nothing itself: it has others find a framework's module, and adapts what they load."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in ADAPTED:
            return None
        for finder in sys.meta_path:
            spec = None if isinstance(finder, _Watch) else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader(Loader):
    def __init__(self, inside: Loader) -> None:
        self._inside = inside

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._inside.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._inside.exec_module(module)
        _adapt(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inside, name)  # resources and sources are the real loader's
