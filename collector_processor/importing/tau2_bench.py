"""Result files of τ²-bench (sierra-research/tau2-bench).

A file is ``{"info", "tasks", "simulations": [SimulationRun, …]}``, or one ``SimulationRun``; lines ``{"raw":
SimulationRun, …}`` are read too. The simulated user may call tools of its own: those are its doing, not
the agent's, and are left out with their answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from redfirst.collector_processor.importing.enveloped import enveloped, task_attributes
from redfirst.collector_processor.importing.formats import BadRecord, Document, Place, Record, found
from redfirst.collector_processor.importing.identity import content_id
from redfirst.collector_processor.importing.times import count, nanoseconds
from redfirst.collector_processor.importing.transcript import Entry, Transcript, spans_of
from redfirst.evaluators import semconv
from redfirst.evaluators.dialects.messages import message_of
from redfirst.evaluators.dialects.values import first_text, items_of, mapping, object_of, text
from redfirst.evaluators.span import Span
from redfirst.evaluators.trajectory import Effect, Stop

_STOPS: Mapping[str, Stop] = {
    "user_stop": Stop.COMPLETED,
    "agent_stop": Stop.COMPLETED,
    "max_steps": Stop.STEP_CAP,
    "timeout": Stop.TIME_CAP,
    "too_many_errors": Stop.ERROR,
    "agent_error": Stop.ERROR,
    "context_window_exceeded": Stop.TOKEN_CAP,
    "infrastructure_error": Stop.INFRA,
    "user_error": Stop.INFRA,
}
"""``TerminationReason`` of τ²-bench; ``unexpected_error`` and reasons that are not known stay unknown. A
simulated user that fails is the harness's fault, and says nothing of the agent."""
_CAPS = {"max_steps": "max_steps", "too_many_errors": "max_errors"}
_TRANSFERRED = "###TRANSFER###"
"""How the simulated user says that it was passed to a person."""
_TRANSFER = "transfer_to_human_agents"


class Tau2Bench:
    """τ²-bench results."""

    name = "tau2-bench"

    def claims(self, document: object) -> bool:
        value, _ = enveloped(document)
        if not isinstance(value, Mapping):
            return False
        if isinstance(value.get("simulations"), list):
            return "info" in value or "tasks" in value
        return "termination_reason" in value and ("messages" in value or "ticks" in value)

    def records(self, documents: Sequence[Document]) -> Iterator[Record]:
        for document in documents:
            value, context = enveloped(document.value)
            runs = value.get("simulations") if isinstance(value, Mapping) else None
            if not isinstance(value, Mapping) or not isinstance(runs, list):
                yield Record(where=document.where, value=value, context=context)
                continue
            at = f"{document.where} simulations".strip()
            for place, item in enumerate(runs):
                yield Record(where=f"{at}[{place}]", value=item, context=_of_file(value.get("info")))

    def spans(self, record: Record, place: Place) -> list[Span]:
        value, context = record.value, record.context
        if not isinstance(value, Mapping) or not isinstance(value.get("messages"), list):
            raise BadRecord(f"expected a τ² simulation with a list messages, found {found(value)}")
        entries = _entries(value["messages"], text(context.get("model")))
        if not entries:
            raise BadRecord("messages is empty")
        reason = text(value.get("termination_reason")) or ""
        reward = object_of(value.get("reward_info")) or {}
        run = Transcript(
            trace_id=content_id(value, place.copy),
            entries=entries,
            harness=True,
            agent=text(context.get("agent")),
            session=text(value.get("id")),
            tools=[tool for item in items_of(context.get("tools")) if (tool := mapping(item)) is not None],
            effects=dict(_effects(reward.get("action_checks"))),
            stop=_stop(reason, entries),
            stop_cap=count(context.get(_CAPS.get(reason, ""))),
            start_ns=nanoseconds(value.get("start_time")),
            end_ns=nanoseconds(value.get("end_time")),
            attributes={
                **task_attributes({**context, **value}, reward=reward.get("reward", context.get("reward"))),
                **({semconv.ENDED_AS: reason} if reason else {}),
            },
        )
        return spans_of(run, place, self.name)


def _of_file(info: object) -> dict[str, object]:
    """What the head of a results file says of all its simulations."""
    head = object_of(info) or {}
    agent = object_of(head.get("agent_info")) or {}
    world = object_of(head.get("environment_info")) or {}
    tools = world.get("tool_defs")
    return {
        "model": agent.get("llm"),
        "agent": agent.get("implementation"),
        "domain": world.get("domain_name"),
        "max_steps": head.get("max_steps"),
        "max_errors": head.get("max_errors"),
        "tools": tools if isinstance(tools, list) else [],
    }


def _entries(messages: list[object], model: str | None) -> list[Entry]:
    entries: list[Entry] = []
    asked = False
    for place, item in enumerate(messages):
        if not isinstance(item, Mapping) or not isinstance(item.get("role"), str):
            raise BadRecord(f"messages[{place}]: expected a message with a role, found {found(item)}")
        if item.get("requestor") == "user":
            continue
        role = item["role"]
        # Before the user has said anything the assistant's text is the harness's greeting.
        greets = role == "assistant" and not asked and not item.get("tool_calls") and not item.get("usage")
        asked = asked or role in ("user", "tool") or (role == "assistant" and not greets)
        if role == "user":
            if item.get("tool_calls") and not item.get("content"):
                continue
            item = {key: part for key, part in item.items() if key != "tool_calls"}
        entries += [
            Entry(
                message=message,
                at_ns=nanoseconds(item.get("timestamp")),
                scripted=greets,
                failed=item.get("error") is True,
                **(_told(item, model) if role == "assistant" and not greets else {}),  # type: ignore[arg-type]  # its own fields
            )
            for message in message_of(item)
        ]
    return entries


def _told(item: Mapping[str, object], model: str | None) -> dict[str, object]:
    """What a message of the model says of its call."""
    usage = object_of(item.get("usage")) or {}
    raw = object_of(item.get("raw_data")) or {}
    counts = {
        semconv.INPUT_TOKENS: count(usage.get("prompt_tokens")),
        semconv.OUTPUT_TOKENS: count(usage.get("completion_tokens")),
    }
    cost = item.get("cost")
    return {
        "model": first_text(raw.get("model"), model),
        "finish": text(raw.get("finish_reason")),
        "usage": {key: said for key, said in counts.items() if said is not None},
        "cost": float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else None,
    }


def _effects(checks: object) -> Iterator[tuple[str, Effect]]:
    """Which of the tools of the expected actions read and which write; older records do not say."""
    for check in checks if isinstance(checks, list) else []:
        said = object_of(check) or {}
        name = text((object_of(said.get("action")) or {}).get("name"))
        if name and said.get("tool_type") in (Effect.READ.value, Effect.WRITE.value):
            yield name, Effect(str(said["tool_type"]))


def _stop(reason: str, entries: Sequence[Entry]) -> Stop:
    """What the harness's reason means for the agent. A user that was transferred ended the run, but it is the
    agent that passed it on."""
    last = entries[-1].message
    if reason == "user_stop" and _TRANSFERRED in (last.content or ""):
        called = any(call.name == _TRANSFER for entry in entries for call in entry.message.tool_calls)
        return Stop.HANDOFF if called else Stop.COMPLETED
    return _STOPS.get(reason, Stop.UNKNOWN)
