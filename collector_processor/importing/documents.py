"""The JSON values of a file: one document, or one a line, gzipped or not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from redfirst.collector_processor.importing.formats import BadRecord, Document
from redfirst.evaluators.errors import UnreadableInput
from redfirst.evaluators.otlp import unzipped

SUFFIXES = (".json", ".jsonl", ".ndjson")
"""Names that are read in a directory, with or without ``.gz``. A file named on its own is always read."""
_BOM = b"\xef\xbb\xbf"
_SHOWN = 40


def documents(path: Path) -> Iterator[Document | BadRecord]:
    """Each JSON value, or what is wrong with its line.

    Raises:
        UnreadableInput: the file cannot be read, is empty, or is no JSON at all.
    """
    try:
        body = unzipped(path.read_bytes()).removeprefix(_BOM)
    except OSError as problem:
        raise UnreadableInput(f"cannot be read: {problem.strerror}.") from problem
    if not body.strip():
        raise UnreadableInput("the file is empty.")
    lines = [(number, line) for number, line in enumerate(body.split(b"\n"), 1) if line.strip()]
    if len(lines) > 1 and any(not isinstance(_value(line, number), BadRecord) for number, line in lines[:2]):
        for number, line in lines:
            value = _value(line, number)
            yield value if isinstance(value, BadRecord) else Document(where=f"line {number}", value=value)
        return
    whole = _value(body, 0)
    if isinstance(whole, BadRecord):
        raise UnreadableInput(str(whole))
    yield Document(where="", value=whole)


def _value(text: bytes, number: int) -> object:
    """The JSON value of the text; ``number`` is its line when it is one."""
    at = f"line {number}: " if number else ""
    try:
        value = json.loads(text.decode("utf-8"))
        return _whole(value) if b"\\ud" in text.lower() else value
    except UnicodeDecodeError as problem:
        return BadRecord(f"{at}not UTF-8 (byte 0x{text[problem.start]:02x} at offset {problem.start}).")
    except RecursionError:
        return BadRecord(f"{at}the JSON is nested too deeply.")
    except json.JSONDecodeError as problem:
        line = number or problem.lineno
        near = problem.doc[problem.pos : problem.pos + _SHOWN].split("\n")[0] or "end of text"
        said = problem.msg.removesuffix(" at")
        return BadRecord(f"line {line}: not JSON: {said} at column {problem.colno}, near {near!r}.")
    except ValueError as problem:
        return BadRecord(f"{at}not JSON that can be read: {problem}.")


def _whole(value: object) -> object:
    """The value with half surrogate pairs replaced: JSON can spell them, UTF-8 and so OTLP cannot."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {str(_whole(key)): _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value
