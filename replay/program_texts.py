"""What a program says itself, its tools and its system prompt, when values in it were replaced by pseudonyms.

A replay's program says it with the values. So the recording is found by what was said, while nothing of it is kept but
the digest that there is anyway.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from redfirst.replay.pseudonyms import Pseudonyms
from redfirst.replay.recording import Recording

Json = Any

_INSTRUCTING = ("system", "developer")


def as_the_program_says(made: Recording, raw: Recording, pseudonyms: Pseudonyms) -> list[str]:
    """Have the turns of a recording with pseudonyms found by the tools and the system prompt as they are in the code.

    Of a value that stands in the system prompt and in what the run was given nobody can tell whether the code says it
    or passed it on: such a prompt is found with its pseudonym, and the note that is given back says so.
    """
    given = json.dumps([raw.request, raw.state, {k: v.model_dump(mode="json") for k, v in raw.tools.items()}])
    unsure = False
    turns: list[Mapping[str, Json]] = []
    for turn, before in zip(made.turns, raw.turns, strict=True):
        request, said = turn.get("request"), before.get("request")
        if not isinstance(request, Mapping) or not isinstance(said, Mapping):
            turns.append(turn)
            continue
        found = {**request, **({"tools": said["tools"]} if "tools" in request and "tools" in said else {})}
        if _prompt(raw) is not None and request["messages"][:1] != said["messages"][:1]:
            if _passed_on(str(_prompt(raw)), given, pseudonyms):
                unsure = True
            else:
                found["messages"] = [*said["messages"][:1], *request["messages"][1:]]
        turns.append({**turn, "request": found})
    made.turns = turns
    if not unsure:
        return []
    return [
        "the system prompt holds a value that is replaced and that the run was given too; if the agent's code says it "
        "itself, no recorded turn will be found: leave it out of redaction: then"
    ]


def _prompt(raw: Recording) -> Json | None:
    """The system prompt of the first turn, where its request has one."""
    new = (raw.turns[0].get("request") or {}).get("new") if raw.turns else None
    first = new[0] if new else None
    return first if isinstance(first, Mapping) and first.get("role") in _INSTRUCTING else None


def _passed_on(prompt: str, given: str, pseudonyms: Pseudonyms) -> bool:
    return any(value in prompt and json.dumps(value)[1:-1] in given for value in pseudonyms.of)
