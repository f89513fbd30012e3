"""What the adapters of all frameworks do alike with a call and its recorded answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from redfirst.instrumentation import door
from redfirst.instrumentation.capture import plain


def offer_model(name: str, request: Mapping[str, Any]) -> door.Answer:
    """Offer a model call to whoever stands in the door; an answer is a reply as a vendor's API gives it.

    A call inside one that passed through is the same call, and is not offered again.
    """
    standing = door.interceptor()
    if standing is None or door.passing():
        return door.Door.PASS_THROUGH
    return standing.call(
        door.DoorCall(kind="model", name=name, arguments=plain(request), function=unannotated)
    )


def unannotated() -> Any:
    """Stands for a function whose recorded values no annotation rebuilds."""


def comes_itself(function: Callable[..., Any] | None) -> bool:
    """Whether a tool's function is decorated by ``@tool``, and so comes to the door by itself."""
    return getattr(function, door.ANSWERED, None) == "tool"


def as_promised(value: Any, function: Callable[..., Any]) -> Any:
    """The value as text where the function promises text: instrumentors record text that is JSON as what it says."""
    try:
        returns = get_type_hints(function).get("return")
    except Exception:  # noqa: BLE001 - an annotation that cannot be evaluated promises nothing
        return value
    return json.dumps(value, ensure_ascii=False) if returns is str and not isinstance(value, str) else value


def arguments_of(text: str) -> dict[str, Any] | None:
    """The arguments that a model wrote; ``None`` when they are no JSON object."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
