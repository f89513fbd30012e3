"""YAML that means what it looks like: text in, plain data and line numbers out, and back.

Scalars mean what ``yaml_scalars`` says; keys are always text. Refused: duplicate keys, merge keys, tags,
several documents, an empty document, and what is too large, too deep or multiplied by aliases.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import yaml

from redfirst.evaluators.errors import ConfigurationError
from redfirst.evaluators.yaml_scalars import resolve
from redfirst.evaluators.yaml_writer import dump

__all__ = ["DEEPEST", "LONGEST_TEXT", "MOST_NODES", "Document", "dump", "load", "nearest", "read"]

LONGEST_TEXT = 4_000_000
DEEPEST = 64
MOST_NODES = 200_000
"""Of a document with its aliases written out."""

Path = tuple[str | int, ...]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Document:
    """A document and where each of its values stands."""

    data: object
    source: str
    lines: dict[Path, int]

    def line_of(self, where: Sequence[str | int]) -> int:
        """The line of a value. Parts that are no keys of the document (names of variants) are passed over."""
        path: Path = ()
        for part in where:
            if (*path, part) in self.lines:
                path = (*path, part)
        return self.lines[path]

    def fault(self, where: Sequence[str | int], what: str) -> ConfigurationError:
        """The error that says ``source:line: what``."""
        return ConfigurationError(f"{self.source}:{self.line_of(where)}: {what}")


def load(text: str, source: str = "<text>") -> object:
    """The data of a document.

    Raises:
        ConfigurationError: the text is no YAML, or YAML that this module refuses.
    """
    return read(text, source).data


def read(text: str, source: str = "<text>") -> Document:
    """The document, with line numbers.

    Raises:
        ConfigurationError: the text is no YAML, or YAML that this module refuses.
    """
    if len(text) > LONGEST_TEXT:
        raise ConfigurationError(
            f"{source}:1: {len(text)} characters; the limit is {LONGEST_TEXT}, so split it"
        )
    try:
        text.encode()
        return _Reader(source).read(yaml.parse(text, Loader=_LOADER))
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise ConfigurationError(
            f"{source}:{line}: a lone surrogate, which is no character; remove it"
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ConfigurationError(
            f"{source}:{line}: no YAML: {error.problem or error.context}; correct it"
        ) from error
    except yaml.YAMLError as error:
        raise ConfigurationError(
            f"{source}:1: no YAML: {' '.join(str(error).split())}; correct it"
        ) from error


@dataclass(slots=True)
class _Open:
    """A container whose end has not come."""

    value: dict[str, object] | list[object]
    path: Path
    anchor: str | None
    line: int
    key: str | None = None
    nodes: int = 1
    height: int = 1


@dataclass(slots=True)
class _Anchored:
    value: object
    nodes: int
    height: int


@dataclass(slots=True)
class _Reader:
    """Builds the data from parse events without recursion, so that depth is counted before it is spent."""

    source: str
    stack: list[_Open] = field(default_factory=list)
    anchors: dict[str, _Anchored] = field(default_factory=dict)
    lines: dict[Path, int] = field(default_factory=dict)
    root: list[object] = field(default_factory=list)

    def read(self, events: Iterator[yaml.Event]) -> Document:
        for event in events:
            line = event.start_mark.line + 1 if event.start_mark else 1
            match event:
                case yaml.DocumentStartEvent() if self.root:
                    raise self._fault(line, "a second document; keep one document in a file")
                case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                    self._begin(event, line)
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    self._end()
                case yaml.ScalarEvent():
                    self._scalar(event, line)
                case yaml.AliasEvent():
                    self._alias(event, line)
                case _:
                    pass
        if not self.root:
            raise self._fault(1, "the document is empty; write at least one key")
        return Document(self.root[0], self.source, self.lines)

    def _fault(self, line: int, what: str) -> ConfigurationError:
        return ConfigurationError(f"{self.source}:{line}: {what}")

    def _begin(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent, line: int) -> None:
        if event.tag is not None and event.tag != "!":
            raise self._fault(line, f"tag {event.tag} is not supported; remove it")
        if self._awaits_key():
            raise self._fault(line, "a key that is a list or a mapping; write it as text")
        if len(self.stack) >= DEEPEST:
            raise self._fault(line, f"nested more than {DEEPEST} deep; make it flatter")
        path = self._place(line)
        empty: dict[str, object] | list[object] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self.stack.append(_Open(empty, path, event.anchor, line))

    def _end(self) -> None:
        done = self.stack.pop()
        if done.anchor is not None:
            self.anchors[done.anchor] = _Anchored(done.value, done.nodes, done.height)
        self._add(done.value, done.nodes, done.height, done.line)

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        if event.tag not in (None, "!", "tag:yaml.org,2002:str"):
            raise self._fault(line, f"tag {event.tag} is not supported; remove it")
        plain = event.tag is None and event.style in (None, "") and event.implicit[0]
        if self._awaits_key():
            self._key(event.value, plain, line)
            value: object = event.value
        else:
            self._place(line)
            value = self._resolved(event.value, line) if plain else event.value
            self._add(value, 1, 0, line)
        if event.anchor is not None:
            self.anchors[event.anchor] = _Anchored(value, 1, 0)

    def _alias(self, event: yaml.AliasEvent, line: int) -> None:
        anchored = self.anchors.get(str(event.anchor))
        if anchored is None:
            raise self._fault(
                line, f"alias *{event.anchor} stands before or inside what it names; write it out"
            )
        if self._awaits_key():
            raise self._fault(line, "an alias as a key; write the key out")
        if len(self.stack) + anchored.height > DEEPEST:
            raise self._fault(line, f"nested more than {DEEPEST} deep; make it flatter")
        self._place(line)
        self._add(copy.deepcopy(anchored.value), anchored.nodes, anchored.height, line)

    def _key(self, key: str, plain: bool, line: int) -> None:
        holder = self.stack[-1]
        if key == "<<" and plain:
            raise self._fault(line, "merge keys (<<) are not supported; write the keys out")
        if key in holder.value:
            raise self._fault(line, f"key {key!r} stands here twice; remove one")
        holder.key = key
        self.lines[(*holder.path, key)] = line

    def _awaits_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].value, dict) and self.stack[-1].key is None

    def _place(self, line: int) -> Path:
        """The path of the value that comes next. A value in a mapping stands at its key's line."""
        if not self.stack:
            path: Path = ()
        elif isinstance(self.stack[-1].value, list):
            path = (*self.stack[-1].path, len(self.stack[-1].value))
        else:
            path = (*self.stack[-1].path, str(self.stack[-1].key))
        self.lines.setdefault(path, line)
        return path

    def _add(self, value: object, nodes: int, height: int, line: int) -> None:
        if not self.stack:
            self.root.append(value)
            return
        holder = self.stack[-1]
        holder.nodes += nodes
        holder.height = max(holder.height, height + 1)
        if sum(one.nodes for one in self.stack) > MOST_NODES:
            raise self._fault(line, f"more than {MOST_NODES} values, aliases written out; make it smaller")
        if isinstance(holder.value, list):
            holder.value.append(value)
        else:
            holder.value[str(holder.key)] = value
            holder.key = None

    def _resolved(self, text: str, line: int) -> object:
        try:
            return resolve(text)
        except ValueError as error:
            raise self._fault(line, f"{error}; quote it to keep it as text") from error


def nearest(word: object, known: Sequence[str]) -> str:
    """The known word that was probably meant, or all of them: for the end of an error message."""
    close = difflib.get_close_matches(str(word), known, n=1)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"
