"""Outputs of model calls that no span carries, read back from what the next call was given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from redfirst.evaluators.dialects.messages import one_output
from redfirst.evaluators.handoffs import agent_name
from redfirst.evaluators.structure import Node, Tree
from redfirst.evaluators.trajectory import Message

NOTE = "output: read from the messages the next call was given"


def completed(tree: Tree, models: Sequence[Node]) -> list[Node]:
    """The model calls in order, each missing output filled from the next call of the same agent whose
    input begins with this call's input and goes on with an assistant's message."""
    out: list[Node] = []
    for place, node in enumerate(models):
        facts = node.facts
        if facts.output is None and facts.input and not facts.failed:
            mine = agent_name(tree, node)
            later = next((n for n in models[place + 1 :] if agent_name(tree, n) == mine), None)
            said = _continuation(facts.input, later.facts.input) if later is not None else None
            if said is not None:
                facts = replace(facts, output=said, notes=(*facts.notes, NOTE))
        out.append(node if facts is node.facts else Node(node.span, facts))
    return out


def _continuation(before: tuple[Message, ...], after: tuple[Message, ...] | None) -> Message | None:
    """What the assistant said between the two inputs; None when the second does not continue the first."""
    if after is None or len(after) <= len(before) or after[: len(before)] != before:
        return None
    added = after[len(before) :]
    return one_output(added[: _leading(added)])


def _leading(messages: tuple[Message, ...]) -> int:
    return next((n for n, message in enumerate(messages) if message.role != "assistant"), len(messages))
