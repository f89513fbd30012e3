"""Chat messages in every shape they are recorded in, into ``Message``.

Shapes are told apart by their keys, not by who wrote them: OpenAI chat and responses, Anthropic
content blocks, the GenAI conventions' parts, LangChain dumps, Google contents.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from redfirst.evaluators.dialects.common import first
from redfirst.evaluators.dialects.values import (
    MAPPINGS,
    REDACTED,
    block_text,
    first_text,
    items_of,
    mapping,
    object_of,
    text,
    unpacked,
)
from redfirst.evaluators.trajectory import Message, RequestedCall

ROLES = {
    "human": "user",
    "ai": "assistant",
    "aimessagechunk": "assistant",
    "model": "assistant",
    "function": "tool",
    "developer": "system",
    "messagerole.user": "user",
    "messagerole.assistant": "assistant",
    "messagerole.system": "system",
    "messagerole.tool": "tool",
}
_LANGCHAIN = frozenset({"human", "ai", "system", "tool", "function", "AIMessageChunk"})
_TEXT_PARTS = frozenset({"text", "input_text", "output_text", "refusal"})
_CALL_PARTS = frozenset({"tool_call", "tool_use", "function_call", "tool-call", "toolUse"})
_ANSWER_PARTS = frozenset({"tool_call_response", "tool_result", "function_call_output", "tool-result"})
_BEDROCK = {"toolUse": "tool_use", "toolResult": "tool_result"}
_ID_KEYS = ("id", "call_id", "tool_use_id", "toolUseId", "toolCallId", "tool_call_id")
_DEPTH = 6
_ASKED = ("task", "query", "question", "prompt", "user_prompt", "user_input", "input")
_SAID = ("output", "response")
_PRINTED = re.compile(r"[A-Z]\w*\(\w+=")
_PRINTED_OUTPUT = re.compile(
    r"\w+\((?:final_)?(?:output|result|response)=(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")", re.DOTALL
)


def requested(name: object, arguments: object, call_id: object) -> RequestedCall:
    """A call as the model asked for it; arguments that are no JSON object stay as text."""
    raw = arguments if isinstance(arguments, str) and arguments not in REDACTED else None
    found: object = {} if isinstance(arguments, str) and not arguments.strip() else unpacked(arguments)
    if isinstance(found, str):
        found = unpacked(found)
    return RequestedCall(
        name=name if isinstance(name, str) else "",
        arguments=found if isinstance(found, MAPPINGS) else None,
        raw_arguments=raw,
        call_id=text(call_id),
    )


def messages_of(value: object, depth: int = 0) -> tuple[Message, ...] | None:
    """The messages of a conversation; None when the value is none."""
    return messages_in(unpacked(value), depth)


def messages_in(found: object, depth: int = 0) -> tuple[Message, ...] | None:
    """The messages of a conversation that is unpacked already."""
    if isinstance(found, dict):
        if depth < _DEPTH:
            for key in ("messages", "input", "contents", "new_messages"):
                inner = found.get(key)
                if (
                    isinstance(inner, list | str)
                    and (messages := _messages_inside(inner, depth + 1))
                    and _roles_known(messages)
                ):
                    system = first_text(found.get("system"), found.get("instructions"))
                    return (Message(role="system", content=system), *messages) if system else messages
        single = tuple(message_of(found))
        return single or None
    if not isinstance(found, list) or not found:
        return None
    if len(found) == 1 and isinstance(found[0], list):
        return messages_in(found[0], depth + 1)
    out = [message for item in found if isinstance(item, dict) for message in message_of(item)]
    return tuple(out) or None


def _messages_inside(inner: list[object] | str, depth: int) -> tuple[Message, ...] | None:
    return messages_in(unpacked(inner) if isinstance(inner, str) else inner, depth)


def _roles_known(messages: Iterable[Message]) -> bool:
    return any(message.role in ("user", "assistant", "system", "tool") for message in messages)


def message_of(item: Mapping[str, object]) -> Iterable[Message]:
    """The message or messages one recorded object holds."""
    inner = None if "role" in item and _ENVELOPES.isdisjoint(item) else _inside(item)
    kind = text(item.get("type"))
    if inner is not None:
        yield from message_of({**inner, "type": inner.get("type", kind)})
        return
    if kind in ("function_call", "custom_tool_call"):
        call = requested(
            item.get("name"), item.get("arguments", item.get("input")), item.get("call_id") or item.get("id")
        )
        yield Message(role="assistant", tool_calls=(call,))
        return
    if kind in ("function_call_output", "custom_tool_call_output"):
        yield Message(
            role="tool", content=as_text(item.get("output")), tool_call_id=text(item.get("call_id"))
        )
        return
    role = first_text(item.get("role"), kind if kind in _LANGCHAIN else None)
    if role is None:
        return
    role = ROLES.get(role.lower(), role.lower())
    yield from _with_parts(role, item)


_ENVELOPES = frozenset({"lc", "data"})
"""Keys of an envelope that may have a role beside them."""


def _inside(item: Mapping[str, object]) -> Mapping[str, object] | None:
    """The message inside an envelope."""
    if "lc" in item and isinstance(item.get("kwargs"), Mapping):
        return mapping(item["kwargs"])
    if text(item.get("type")) in _LANGCHAIN and isinstance(item.get("data"), Mapping):
        return mapping(item["data"])
    if "role" not in item and isinstance(item.get("message"), Mapping):
        return mapping(item["message"])
    return None


def _with_parts(role: str, item: Mapping[str, object]) -> Iterable[Message]:
    said: list[str] = []
    calls = [] if _CALL_KEYS.isdisjoint(item) else list(_tool_calls(item))
    answers: list[Message] = []
    content = item.get("content")
    parts = item.get("parts", item.get("contents", item.get("blocks")))
    if content is not None:
        for part in content if isinstance(content, list) else [content]:
            _take(part, said, calls, answers)
    if parts is not None:
        for part in items_of(parts):
            _take(part, said, calls, answers)
    yield from answers
    if answers and not said and not calls:
        return
    yield Message(
        role=role,
        content="\n".join(said) if said else "" if content == "" else None,
        tool_calls=tuple(_once(calls) if len(calls) > 1 else calls),
        tool_call_id=first_text(item.get("tool_call_id"), item.get("id") if role == "tool" else None),
        name=text(item.get("name")),
        failed=role == "tool" and _failed(item),
    )


def _take(part: object, said: list[str], calls: list[RequestedCall], answers: list[Message]) -> None:
    """Sort one content part into texts, requested calls and tool answers."""
    if isinstance(part, str):
        if part in REDACTED:
            return
        call = call_in_repr(part)
        if call:
            calls.append(call)
        else:
            said.append(part)
        return
    if isinstance(part, MAPPINGS):
        _take_part(part, said, calls, answers)


def _take_part(
    part: Mapping[str, object], said: list[str], calls: list[RequestedCall], answers: list[Message]
) -> None:
    kind = text(part.get("type", part.get("kind")))
    for name, meant in _BEDROCK.items() if kind is None else ():
        if kind is None and (inside := mapping(part.get(name))) is not None:
            part, kind = inside, meant
    if (
        kind in _CALL_PARTS
        or ("function_call" in part and isinstance(part["function_call"], Mapping))
        or ("tool_name" in part and {"tool_kwargs", "arguments"} & set(part))
    ):
        body = object_of(part.get("function_call")) or object_of(part.get("function")) or part
        called = first_text(body.get("name"), body.get("toolName"), body.get("tool_name"))
        calls.append(
            requested(called, first(body, "arguments", "input", "args", "tool_kwargs"), _id(part, body))
        )
    elif (
        kind in _ANSWER_PARTS
        or ("function_response" in part and isinstance(part["function_response"], Mapping))
        or _answers(part)
    ):
        body = object_of(part.get("function_response")) or part
        origin = object_of(part.get("origin")) or body
        answers.append(
            Message(
                role="tool",
                content=as_text(first(body, "response", "result", "output", "content")),
                tool_call_id=_id(part, origin),
                name=first_text(body.get("name"), origin.get("tool_name")),
                failed=_failed(part),
            )
        )
    elif kind in _TEXT_PARTS or kind is None:
        inner = first_text(part.get("text"), part.get("content"), part.get("refusal"))
        if inner is not None:
            _take(inner, said, calls, answers)


def _answers(part: Mapping[str, object]) -> bool:
    """A result that carries the call it belongs to."""
    return "result" in part and isinstance(part.get("origin"), Mapping)


def _failed(item: Mapping[str, object]) -> bool:
    """Whether the answer of a tool says of itself that it is an error."""
    marks = (item.get("is_error"), item.get("isError"), item.get("error") if "origin" in item else None)
    return True in marks or item.get("status") == "error"


def _id(part: Mapping[str, object], body: Mapping[str, object]) -> str | None:
    return first_text(*map(part.get, _ID_KEYS), body.get("id"))


_CALL_KEYS = frozenset({"tool_calls", "additional_kwargs", "invalid_tool_calls", "function_call"})


def _tool_calls(item: Mapping[str, object]) -> Iterable[RequestedCall]:
    nested = item.get("additional_kwargs")
    found = items_of(item.get("tool_calls")) or (
        items_of(nested.get("tool_calls")) if isinstance(nested, Mapping) else []
    )
    for call in found:
        if not isinstance(call, MAPPINGS):
            continue
        call = object_of(call.get("tool_call")) or call
        body = object_of(call.get("function")) or call
        yield requested(body.get("name"), first(body, "arguments", "args", "input"), call.get("id"))
    for call in items_of(item.get("invalid_tool_calls")):
        if isinstance(call, Mapping):
            yield requested(call.get("name"), call.get("args"), call.get("id"))
    old = item.get("function_call")
    if isinstance(old, Mapping):
        yield requested(old.get("name"), old.get("arguments"), None)


def _once(calls: list[RequestedCall]) -> Iterable[RequestedCall]:
    """Each call id once: some messages carry their calls in two places."""
    seen: set[str] = set()
    for call in calls:
        if call.call_id is not None and call.call_id in seen:
            continue
        if call.call_id is not None:
            seen.add(call.call_id)
        yield call


def call_in_repr(said: str) -> RequestedCall | None:
    """The call inside the printed form of an SDK's object, such as ``ResponseFunctionToolCall(name=…)``."""
    if "ToolCall(" not in said:
        return None
    head, bracket, _ = said.partition("(")
    if not bracket or not head.isidentifier() or not head.endswith("ToolCall"):
        return None
    try:
        tree = ast.parse(said.strip(), mode="eval").body
        fields = {
            word.arg: ast.literal_eval(word.value)
            for word in (tree.keywords if isinstance(tree, ast.Call) else [])
            if word.arg in ("name", "arguments", "call_id", "id")
        }
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    if not isinstance(fields.get("name"), str):
        return None
    return requested(fields["name"], fields.get("arguments"), fields.get("call_id") or fields.get("id"))


def as_text(value: object) -> str | None:
    """The answer of a tool as the model was shown it."""
    if value is None or isinstance(value, str):
        return value
    if (
        isinstance(value, Mapping)
        and value.get("type") in ("text", "json", "error-text")
        and "value" in value
    ):
        return as_text(value["value"])
    joined = block_text(value)
    if joined is not None:
        return joined
    import json

    return json.dumps(value, ensure_ascii=False, default=str)


def one_output(messages: Iterable[Message] | None) -> Message | None:
    """What the model said, as one message: texts and calls of all its assistant messages."""
    mine = [message for message in messages or () if message.role == "assistant"]
    if not mine:
        return None
    if len(mine) == 1:
        return mine[0]
    said = [message.content for message in mine if message.content]
    calls = _once([call for message in mine for call in message.tool_calls])
    return replace(mine[0], content="\n".join(said) if said else None, tool_calls=tuple(calls))


def spoken(value: object, role: str) -> str | None:
    """The text a value says in that role: a conversation's last message, or a plain text."""
    said = mapping(value)
    if (
        said is not None
        and role == "assistant"
        and (whole := first_text(said.get("raw"), said.get("final_output")))
    ):
        return whole
    messages = messages_of(value)
    if messages is not None:
        last = messages[-1]
        return (
            last_text(messages, role)
            if role == "user"
            else last.content
            if last.role == role and not last.tool_calls
            else None
        )
    found = unpacked(value)
    if isinstance(found, Mapping):
        return first_text(*(found.get(key) for key in (_SAID if role == "assistant" else _ASKED)))
    return _printed(found) if isinstance(found, str) and found and found not in REDACTED else None


def _printed(text: str) -> str | None:
    """The text, or the output inside the printed form of a result: ``RunResult(output='…', …)``."""
    if not _PRINTED.match(text):
        return text
    found = _PRINTED_OUTPUT.match(text)
    try:
        said = ast.literal_eval(found.group("text")) if found else None
    except (ValueError, SyntaxError, MemoryError):
        return None
    return said if isinstance(said, str) and said else None


def last_text(messages: Iterable[Message] | None, role: str) -> str | None:
    """The text of the last message of that role."""
    found = [message.content for message in messages or () if message.role == role and message.content]
    return found[-1] if found else None
