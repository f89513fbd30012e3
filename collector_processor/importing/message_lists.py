"""Plain lists of messages, as OpenAI's chat API and Anthropic's messages API take them.

A file is one list, a list of lists, an object ``{"messages": […]}`` with perhaps ``system``, ``tools`` and
``model``, or lines of any of these; lines that are messages themselves are one conversation. A list does
not say why it ends, nor whether a call without an answer ran: both stay unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from redfirst.collector_processor.importing.enveloped import enveloped
from redfirst.collector_processor.importing.formats import BadRecord, Document, Place, Record, found
from redfirst.collector_processor.importing.identity import content_id
from redfirst.collector_processor.importing.transcript import Entry, Transcript, spans_of
from redfirst.evaluators.dialects.messages import message_of
from redfirst.evaluators.dialects.values import block_text, first_text, items_of, mapping, text
from redfirst.evaluators.span import Span
from redfirst.evaluators.trajectory import Message

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


class MessageLists:
    """Lists of chat messages."""

    name = "messages"

    def claims(self, document: object) -> bool:
        document, _ = enveloped(document)
        if isinstance(document, Mapping):
            return _is_message(document) or self.claims(document.get("messages"))
        if not isinstance(document, list) or not document:
            return False
        return any(map(_is_message, document)) or any(map(self.claims, document))

    def records(self, documents: Sequence[Document]) -> Iterator[Record]:
        if documents and all(_is_message(document.value) for document in documents):
            yield Record(where="", value=[document.value for document in documents])
            return
        for document in documents:
            value, _ = enveloped(document.value)
            if isinstance(value, list) and not any(map(_is_message, value)):
                for number, item in enumerate(value):
                    yield Record(where=f"{document.where}[{number}]", value=item)
            else:
                yield Record(where=document.where, value=[value] if _is_message(value) else value)

    def spans(self, record: Record, place: Place) -> list[Span]:
        whole = record.value if isinstance(record.value, Mapping) else {"messages": record.value}
        messages = whole.get("messages")
        if not isinstance(messages, list) or not messages:
            raise BadRecord(f"expected a list of messages, found {found(record.value)}")
        run = Transcript(
            trace_id=content_id(record.value, place.copy),
            entries=[*_system(whole.get("system")), *_entries(messages, text(whole.get("model")))],
            harness=False,
            session=first_text(whole.get("conversation_id"), whole.get("session_id")),
            tools=[tool for item in items_of(whole.get("tools")) if (tool := mapping(item)) is not None],
        )
        if not any(entry.message.role == "assistant" and not entry.scripted for entry in run.entries):
            raise BadRecord("no message of the assistant answers another, so there is no run")
        return spans_of(run, place, self.name)


def _is_message(value: object) -> bool:
    """Whether it has the role of a chat message and something said, asked or answered in it."""
    return (
        isinstance(value, Mapping)
        and value.get("role") in _ROLES
        and bool({"content", "tool_calls", "function_call"} & set(value))
    )


def _system(value: object) -> list[Entry]:
    """Anthropic's system prompt, a text or text blocks, stands beside the messages."""
    said = value if isinstance(value, str) else block_text(value)
    return [Entry(message=Message(role="system", content=said))] if said else []


def _entries(messages: list[object], model: str | None) -> list[Entry]:
    entries: list[Entry] = []
    asked = False
    for number, item in enumerate(messages):
        if not isinstance(item, Mapping) or not isinstance(item.get("role"), str):
            raise BadRecord(f"messages[{number}]: expected a message with a role, found {found(item)}")
        for message in message_of(item):
            mine = message.role == "assistant"
            scripted = mine and not asked and not message.tool_calls
            asked = asked or message.role in ("user", "tool") or (mine and not scripted)
            said = first_text(item.get("model"), model) if mine and not scripted else None
            entries.append(Entry(message=message, scripted=scripted, model=said))
    return entries
