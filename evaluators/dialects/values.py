"""Values as instrumentors wrap them: JSON in strings, arguments in envelopes, results in messages."""

from __future__ import annotations

import ast
import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import orjson

from redfirst.evaluators.trajectory import MISSING

T = TypeVar("T")

_LITERAL_LIMIT = 20_000
_LONGEST_REPEATED = 50_000
_LONGEST_COUNT = 40
_WORD = re.compile(r"[A-Za-z][\w.\- ]{0,63}")
_ENVELOPE_NOISE = frozenset({"sanitize_inputs_outputs"})
"""Switches of a wrapper that some instrumentors record among the arguments of the tool it wraps."""
_ERROR_TEXT = re.compile(r"Error\b|Exception\b|[A-Z]\w*(?:Error|Exception)\b[:(]")


REDACTED = frozenset({"__REDACTED__", "<elided>", "[REDACTED]", "<redacted>", "<REDACTED>"})
"""What OpenInference, Google ADK and collectors write in the place of content that is kept back."""

_DIGITS = bytes(48 if 48 <= byte < 58 else 32 for byte in range(256))
_LONG_NUMBER = b"0" * 19
_DEEP = 400
_FIRST = frozenset('{["-0123456789tfn \t\r\n')
"""What a JSON text can begin with, ``NaN`` and ``Infinity`` apart."""


_SCALARS = (str, int, float)
MAPPINGS = (dict, Mapping)
"""``dict`` first: asking the abstract class takes several times as long."""
_SEQUENCES = (list, tuple)


def plain(value: object) -> object:
    """The value as JSON knows it: lists for tuples, dicts for mappings."""
    if value is None or isinstance(value, _SCALARS):
        return value
    if isinstance(value, MAPPINGS):
        return {str(key): item if isinstance(item, _SCALARS) else plain(item) for key, item in value.items()}
    if isinstance(value, _SEQUENCES):
        return [item if isinstance(item, _SCALARS) else plain(item) for item in value]
    return value


def unpacked(value: object) -> object:
    """The value inside a JSON text, or the value itself when it is no text or the text is no JSON."""
    if not isinstance(value, str):
        return plain(value)
    if value[:1] not in _FIRST and not value.startswith(("NaN", "Infinity")):
        return value
    # orjson is the faster, json the one that keeps long integers, NaN, lone surrogates and its limit of depth.
    try:
        coded = value.encode()
        if len(coded) < len(_LONG_NUMBER) or (
            coded.count(b"[") + coded.count(b"{") < _DEEP and _LONG_NUMBER not in coded.translate(_DIGITS)
        ):
            return orjson.loads(coded)
    except ValueError:
        pass
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def remembered(read: Callable[[object], T]) -> Callable[[object], T]:
    """The same reading, for what stands on many spans alike, as definitions of tools do: an equal text of moderate
    length gives the same object again, so that what is made of it can be kept. Nobody may change it."""
    again = functools.lru_cache(maxsize=64)(read)

    @functools.wraps(read)
    def reading(value: object) -> T:
        return again(value) if isinstance(value, str) and len(value) <= _LONGEST_REPEATED else read(value)

    return reading


repeated = remembered(unpacked)


def container(value: object) -> object:
    """Like ``unpacked``, but only for JSON objects and arrays: the text ``"42"`` stays a text."""
    if isinstance(value, str) and not value.lstrip().startswith(("{", "[")):
        return value
    return unpacked(value)


def cut_off(unread: str) -> bool:
    """Whether a text that was not read as JSON begins as an object or a list of objects: the rest was lost."""
    return unread.lstrip().startswith(('{"', '[{"', '[["', "{'", "[{'"))


def mapping(value: object) -> Mapping[str, object] | None:
    """The JSON object the value is or holds as text."""
    if value is None:
        return None
    found = unpacked(value)
    return found if isinstance(found, dict) else None


def listed(value: object) -> list[object] | None:
    """The JSON array the value is or holds as text."""
    if value is None:
        return None
    found = unpacked(value)
    return found if isinstance(found, list) else None


def items_of(value: object) -> list[object]:
    """The array the value is or holds; one that is there already is not copied, so that it must not be kept."""
    return [] if value is None else value if isinstance(value, list) else listed(value) or []


def object_of(value: object) -> Mapping[str, object] | None:
    """The object the value is or holds; one that is there already is not copied, so that it must not be kept."""
    return value if value is None or isinstance(value, dict) else mapping(value)


def text(value: object) -> str | None:
    """A text that is not empty, or None."""
    return value if isinstance(value, str) and value else None


def is_word(value: str) -> bool:
    """Whether a text can be one word of a vocabulary, known or not, and no debris of another value."""
    return bool(_WORD.fullmatch(value))


def is_count(value: str) -> bool:
    """Whether a text is a count in digits: no sign, and no longer than any count is. Python refuses to read long ones."""
    return len(value) <= _LONGEST_COUNT and value.isascii() and value.isdigit()


def number(value: object) -> int | None:
    """A count, also when it came as a text or as an integral float."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and is_count(value):
        return int(value)
    return None


def first_text(*values: object) -> str | None:
    """The first value that is a text and not empty."""
    for value in values:
        if isinstance(value, str) and value:
            return value
    return None


def literal(value: str) -> object:
    """The value of a Python literal such as ``{'a': 1}``; the text itself when it is none."""
    if len(value) > _LITERAL_LIMIT or not value.lstrip().startswith(("{", "[", "(")):
        return value
    try:
        return plain(ast.literal_eval(value.strip()))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return value


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments by name, or values whose names were not recorded, or neither."""

    named: Mapping[str, object] | None = None
    bare: tuple[object, ...] | None = None


def arguments_of(value: object) -> Arguments:
    """The arguments inside whatever an instrumentor put on its tool span."""
    if value is None or value is MISSING:
        return Arguments()
    found = unpacked(value)
    if isinstance(found, str):
        if found in REDACTED:
            return Arguments()
        found = literal(found)
    if isinstance(found, str) and cut_off(found):
        return Arguments()
    if isinstance(found, MAPPINGS):
        return _from_envelope(found)
    if isinstance(found, list) and not isinstance(value, str):
        return Arguments(bare=tuple(found))
    return Arguments(bare=(found,)) if found != "" else Arguments()


def _from_envelope(found: Mapping[str, object]) -> Arguments:
    if ("args" in found or "kwargs" in found) and set(found) - _ENVELOPE_NOISE <= {"args", "kwargs"}:
        named, positional = found.get("kwargs", {}), found.get("args") or []
        if isinstance(named, Mapping) and isinstance(positional, list):
            if not positional:
                return Arguments(named=named)
            return Arguments(bare=(*positional, *named.values()))
    if "input_str" in found:
        inner = found.get("inputs")
        if isinstance(inner, Mapping):
            return Arguments(named=inner)
        return arguments_of(found["input_str"])
    return Arguments(named=found)


def named_by_schema(
    bare: tuple[object, ...] | None, schema: Mapping[str, object] | None
) -> Mapping[str, object] | None:
    """Bare values with the names of a schema that has just as many properties."""
    properties = (schema or {}).get("properties")
    if not bare or not isinstance(properties, Mapping) or len(properties) != len(bare):
        return None
    return dict(zip((str(key) for key in properties), bare, strict=True))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool gave back, out of its envelope."""

    result: object = MISSING
    error: str | None = None
    call_id: str | None = None


def outcome_of(value: object, depth: int = 0) -> Outcome:
    """The result inside whatever an instrumentor put on its tool span."""
    if value is None or value is MISSING:
        return Outcome()
    found = container(value)
    if isinstance(found, str) and (found in REDACTED or cut_off(found)):
        return Outcome()
    if isinstance(found, MAPPINGS) and depth < 5:
        return _from_message(found, depth)
    if isinstance(found, list) and (joined := block_text(found)) is not None:
        return Outcome(result=container(joined))
    return Outcome(result=found)


_FUNCTION_RESPONSE = frozenset({"id", "name", "response", "will_continue", "scheduling", "parts"})


def _from_message(found: Mapping[str, object], depth: int) -> Outcome:
    inner = (
        found.get("kwargs") if "lc" in found else found.get("data") if found.get("type") == "tool" else None
    )
    if isinstance(inner, Mapping):
        return _from_tool_message(inner)
    if found.get("type") == "tool" and "content" in found:
        return _from_tool_message(found)
    if found.get("type") == "text" and isinstance(found.get("text"), str):
        return Outcome(result=container(found["text"]))
    if "raw_output" in found and "blocks" in found:
        said = found["raw_output"]
        return Outcome(result=container(said), error=str(said) if found.get("is_error") else None)
    if isinstance(found.get("content"), list) and (
        {"isError", "structuredContent"} & set(found) or len(found) == 1
    ):
        said = block_text(found["content"])
        if said is not None:
            return Outcome(result=container(said), error=said if found.get("isError") else None)
    if "output" in found and set(found) <= {"output", "kwargs"}:
        return outcome_of(found["output"], depth + 1)
    if "name" in found and "response" in found and set(found) <= _FUNCTION_RESPONSE:
        inner = found["response"]
        only = isinstance(inner, Mapping) and set(inner) == {"result"}
        said = outcome_of(inner["result"] if only and isinstance(inner, Mapping) else inner, depth + 1)
        return Outcome(said.result, said.error, text(found.get("id")))
    if "toolResult" in found and isinstance(found["toolResult"], Mapping):
        return _from_tool_message(found["toolResult"])
    return Outcome(result=found)


def _from_tool_message(message: Mapping[str, object]) -> Outcome:
    content = message.get("content")
    if isinstance(content, list):
        said = block_text(content)
        content = content if said is None else said
    return Outcome(
        result=container(content),
        error=str(content) if message.get("status") == "error" else None,
        call_id=text(message.get("tool_call_id")),
    )


def block_text(blocks: object) -> str | None:
    """The texts of content blocks as one text; None when they are no such blocks."""
    if not isinstance(blocks, Sequence) or isinstance(blocks, str | bytes) or not blocks:
        return None
    said: list[str] = []
    for block in blocks:
        if (
            isinstance(block, Mapping)
            and isinstance(block.get("text"), str)
            and str(block.get("type", "text")).endswith("text")
        ):
            said.append(block["text"])
        elif (
            isinstance(block, Mapping)
            and isinstance(block.get("content"), str)
            and block.get("type") == "text"
        ):
            said.append(block["content"])
        else:
            return None
    return "\n".join(said)


def error_in_result(result: object) -> str | None:
    """What a result says went wrong, when it says so: a text that begins with an error, or an error field."""
    if isinstance(result, str):
        return result if _ERROR_TEXT.match(result.lstrip(" \t\r\n\"'")) else None
    if isinstance(result, MAPPINGS):
        said = result.get("error")
        if said and not isinstance(said, bool | int | float):
            return said if isinstance(said, str) else json.dumps(plain(said), ensure_ascii=False, default=str)
        if result.get("isError") is True or result.get("is_error") is True or said is True:
            return json.dumps(plain(result), ensure_ascii=False, default=str)
    return None
