"""A mechanical repair: the incident's model turns, cut before the failure, with an answer in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from redfirst.evaluators import Trajectory, Verdict
from redfirst.instrumentation.conversation import read_reply

Json = Any

ANSWER = "I cannot complete this request."


def repaired(
    run: Trajectory, failed: Sequence[Verdict], turns: Sequence[Mapping[str, Json]]
) -> list[dict[str, Json]] | None:
    """Turns that end the run before its first failure; ``None`` when there is no such place."""
    place = _first_failure(run, failed, len(turns))
    if place is None or place >= len(turns):
        return None
    final = _final(turns, place)
    if final is None:
        return None
    return [*map(dict, turns[:place]), {"turn": place + 1, "response": final}]


def _final(turns: Sequence[Mapping[str, Json]], place: int) -> Json | None:
    """An answer in the shape the model gave one in, or else in that of the turn it replaces."""
    for turn in turns:
        reply = read_reply(turn["response"])
        if reply is not None and reply.turn.text is not None and not reply.turn.calls:
            return final_reply(turn["response"], ANSWER)
    return final_reply(turns[place]["response"], ANSWER)


def _first_failure(run: Trajectory, failed: Sequence[Verdict], turns: int) -> int | None:
    accused = {item.span_id for verdict in failed for item in verdict.evidence}
    places: list[int] = []
    for call in run.tool_calls:
        if call.span_id not in accused:
            continue
        asked_by = [n for n, m in enumerate(run.model_calls) if m.index == call.turn]
        before = [n for n, m in enumerate(run.model_calls) if m.end_ns <= call.start_ns]
        places += asked_by or before[-1:]
    if places:
        return min(places)
    return turns - 1 if turns > 0 else None


def final_reply(response: Json, text: str) -> Json | None:
    """The same response saying only this text; ``None`` when its shape is not known."""
    if isinstance(response, str):
        return text
    if not isinstance(response, Mapping):
        return None
    out = deepcopy(dict(response))
    choices = out.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        message = choices[0].get("message")
        if not isinstance(message, dict):
            return None
        message.pop("tool_calls", None)
        message["content"], choices[0]["finish_reason"] = text, "stop"
        return out
    if isinstance(out.get("content"), list):
        out["content"], out["stop_reason"] = [{"type": "text", "text": text}], "end_turn"
        return out
    if "content" in out:
        if "tool_calls" in out:
            out["tool_calls"] = []
        out["content"] = text
        return out
    return None
