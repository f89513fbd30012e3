"""Result files of τ-bench (sierra-research/tau-bench) and of collections that keep its records.

A file is a list of ``{"task_id", "trial", "reward", "info": {"task", …}, "traj": [OpenAI chat messages]}``. Lines
``{"raw": record, "model": …}`` are read too. The records of AgentRx's τ-retail set have this shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from redfirst.collector_processor.importing.enveloped import enveloped, task_attributes
from redfirst.collector_processor.importing.formats import BadRecord, Document, Place, Record, found
from redfirst.collector_processor.importing.identity import content_id
from redfirst.collector_processor.importing.transcript import Entry, Transcript, spans_of
from redfirst.evaluators.dialects.messages import message_of
from redfirst.evaluators.dialects.values import first_text, text
from redfirst.evaluators.span import Span
from redfirst.evaluators.trajectory import Stop

STEP_CAP = 30
"""``max_num_steps`` of τ-bench's agents: so many messages of the model. The record does not hold it."""
_STOPPED = "###STOP###"
"""How the simulated user says that it is done."""
_TRANSFER = "transfer_to_human_agents"
"""The one tool that ends a run of the environment."""


class TauBench:
    """τ-bench results."""

    name = "tau-bench"

    def claims(self, document: object) -> bool:
        if isinstance(document, list):
            return bool(document) and any(self.claims(item) for item in document)
        value, _ = enveloped(document)
        return isinstance(value, Mapping) and "traj" in value and "task_id" in value

    def records(self, documents: Sequence[Document]) -> Iterator[Record]:
        for document in documents:
            if not isinstance(document.value, list):
                value, context = enveloped(document.value)
                yield Record(where=document.where, value=value, context=context)
                continue
            for number, item in enumerate(document.value):
                value, context = enveloped(item)
                yield Record(where=f"{document.where}[{number}]", value=value, context=context)

    def spans(self, record: Record, place: Place) -> list[Span]:
        value = record.value
        if not isinstance(value, Mapping) or not isinstance(value.get("traj"), list):
            raise BadRecord(f"expected a τ-bench record with a list traj, found {found(value)}")
        entries = _entries(value["traj"], first_text(record.context.get("model"), value.get("model")))
        info = value.get("info")
        error = text(info.get("error")) if isinstance(info, Mapping) else None
        if not entries and error is None:
            raise BadRecord("traj is empty and info holds no error")
        stop, cap = (None, None) if error is not None else _end(entries)
        run = Transcript(
            trace_id=content_id(value, place.copy),
            entries=entries,
            harness=True,
            stop=stop,
            stop_cap=cap,
            step_cap=STEP_CAP,
            error=error,
            attributes=task_attributes({**record.context, **value}, reward=record.context.get("reward")),
        )
        return spans_of(run, place, self.name)


def _entries(messages: list[object], model: str | None) -> list[Entry]:
    entries: list[Entry] = []
    for number, item in enumerate(messages):
        if not isinstance(item, Mapping) or not isinstance(item.get("role"), str):
            raise BadRecord(f"traj[{number}]: expected a message with a role, found {found(item)}")
        entries += [
            Entry(message=message, model=model if message.role == "assistant" else None)
            for message in message_of(item)
        ]
    return entries


def _end(entries: Sequence[Entry]) -> tuple[Stop, int | None]:
    """Why the run ended. A user that is done and the transfer to a person end it at any step; otherwise
    only the cap does."""
    last = entries[-1].message
    if last.role == "user" and _STOPPED in (last.content or ""):
        return Stop.COMPLETED, None
    said = [entry.message for entry in entries if entry.message.role == "assistant"]
    if said and any(call.name == _TRANSFER for call in said[-1].tool_calls):
        return Stop.HANDOFF, None
    return (Stop.STEP_CAP, STEP_CAP) if len(said) == STEP_CAP else (Stop.UNKNOWN, None)
