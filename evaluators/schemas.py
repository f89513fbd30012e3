"""JSON Schemas that came with a trace, and so from anyone: checked against without a fetch and within limits.

The patterns of a schema run on a linear engine, references are followed inside the schema alone, and a schema
whose references multiply beyond ``MOST_STEPS`` is not used.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

import jsonschema_rs

from redfirst.evaluators.trajectory import MISSING

MOST_STEPS = 20_000
"""Subschemas that one check of a value may visit, its references followed."""
DEEPEST = 64
_BELOW = frozenset({"properties", "patternProperties"})
_BELOW_ONE = frozenset(
    {"additionalProperties", "items", "contains", "propertyNames", "unevaluatedProperties"}
)
_NAMED = frozenset({"$defs", "definitions"})
_DATA = frozenset({"const", "enum", "default", "examples"})
_OPEN_API_TYPES = frozenset({"OBJECT", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "NULL"})


@dataclass(frozen=True, slots=True)
class Misfit:
    """One way in which a value does not fit: where, by which keyword, and in words."""

    path: tuple[str, ...]
    keyword: str
    because: str


class UnusableSchema(ValueError):
    """A schema that says nothing that could be checked, or not within the limits."""


class Schema(Protocol):
    """A schema that is ready to use."""

    def misfits(self, value: object) -> list[Misfit]:
        """Everything in the value that does not fit, in the order of the schema.

        Raises:
            UnusableSchema: the value is too deep, or no JSON.
        """
        ...


@functools.lru_cache(maxsize=512)
def _by_identity(held: _Same) -> Schema | UnusableSchema:
    try:
        return _Compiled(held.value)
    except (
        jsonschema_rs.ValidationError,
        jsonschema_rs.ReferencingError,
        ValueError,
        RecursionError,
    ) as error:
        return UnusableSchema(" ".join(str(error).split())[:200])


def schema_of(document: Mapping[str, object]) -> Schema:
    """The schema, ready to use; the same document is prepared once.

    Raises:
        UnusableSchema: it is no schema, refers to another document, or is beyond the limits.
    """
    found = _by_identity(_Same(document))
    if isinstance(found, UnusableSchema):
        raise found
    return found


class _Same:
    """A document that equals itself alone, and lives as long as what was made of it."""

    __slots__ = ("value",)

    def __init__(self, value: Mapping[str, object]) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value


class _Compiled:
    def __init__(self, document: Mapping[str, object]) -> None:
        known = _json_schema(document, 0)
        if not isinstance(known, dict):
            raise UnusableSchema("it is no object")
        self._refers = _refers(known)
        self._document = known
        self._validator = jsonschema_rs.validator_for(
            known,
            retriever=_refused,
            pattern_options=jsonschema_rs.RegexOptions(size_limit=1 << 20),
            validate_formats=False,
        )

    def misfits(self, value: object) -> list[Misfit]:
        if self._refers:
            steps = _Steps(self._document).count(self._document, _depth(value))
            if steps > MOST_STEPS:
                raise UnusableSchema(f"its references multiply beyond {MOST_STEPS} steps")
        try:
            if self._validator.is_valid(value):
                return []
            return [_misfit(error) for error in self._validator.iter_errors(value)]
        except (ValueError, TypeError) as error:
            raise UnusableSchema(" ".join(str(error).split())[:200]) from error


def _misfit(error: jsonschema_rs.ValidationError) -> Misfit:
    keyword = str(error.schema_path[-1]) if error.schema_path else ""
    return Misfit(tuple(map(str, error.instance_path)), keyword, " ".join(error.message.split())[:200])


def _refused(address: str) -> NoReturn:
    raise ValueError(f"it refers to {address[:80]}, and nothing is fetched")


def _json_schema(value: object, depth: int) -> object:
    """The schema with the words of OpenAPI 3.0, which some providers use, in those of JSON Schema."""
    if depth > DEEPEST:
        raise UnusableSchema(f"it is deeper than {DEEPEST} levels")
    if isinstance(value, Mapping):
        out = {
            str(key): item if key in _DATA else _json_schema(item, depth + 1) for key, item in value.items()
        }
        kind = out.get("type")
        if isinstance(kind, str) and kind in _OPEN_API_TYPES:
            out["type"] = kind = kind.lower()
        if out.get("nullable") is True and isinstance(kind, str):
            out["type"] = [kind, "null"]
            if isinstance(allowed := out.get("enum"), list):
                out["enum"] = [*allowed, None]
        return out
    return [_json_schema(item, depth + 1) for item in value] if isinstance(value, list | tuple) else value


def _refers(value: object) -> bool:
    if isinstance(value, Mapping):
        if "$dynamicRef" in value or "$recursiveRef" in value:
            raise UnusableSchema("it refers dynamically")
        return "$ref" in value or any(_refers(item) for item in value.values())
    return isinstance(value, list) and any(map(_refers, value))


def _depth(value: object) -> int:
    if isinstance(value, Mapping):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list | tuple):
        return 1 + max(map(_depth, value), default=0)
    return 1


class _Steps:
    """How many subschemas a value of some depth may be held against, all references followed."""

    def __init__(self, document: Mapping[str, object]) -> None:
        self._document = document
        self._known: dict[tuple[int, int], int] = {}
        self._open: set[tuple[int, int]] = set()

    def count(self, schema: object, depth: int) -> int:
        """The count, or one above the limit. A reference that leads back to itself on the spot asks nothing new."""
        if not isinstance(schema, Mapping) or depth <= 0:
            return 1
        key = (id(schema), depth)
        if key in self._known:
            return self._known[key]
        if key in self._open:
            return 1
        self._open.add(key)
        total = 1
        for inner, deeper in self._inside(schema):
            total += self.count(inner, depth - deeper)
            if total > MOST_STEPS:
                break
        self._open.discard(key)
        self._known[key] = total
        return total

    def _inside(self, schema: Mapping[str, object]) -> Iterator[tuple[object, int]]:
        """The subschemas, and by how much the value that each is held against lies deeper."""
        for key, item in schema.items():
            if key == "$ref" and isinstance(item, str):
                yield _resolved(self._document, item), 0
            elif key in _NAMED or key in _DATA:
                continue
            elif key in _BELOW and isinstance(item, Mapping):
                yield from ((inner, 1) for inner in item.values())
            elif key in _BELOW_ONE or isinstance(item, Mapping):
                yield item, int(key in _BELOW_ONE)
            elif isinstance(item, list):
                yield from ((inner, int(key == "prefixItems")) for inner in item)


def _resolved(document: object, reference: str) -> object:
    """What a reference inside the document points at; nothing where it points elsewhere."""
    found = document
    for part in reference.removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = found.get(name, MISSING)
        elif isinstance(found, Sequence) and not isinstance(found, str) and name.isdigit():
            found = found[int(name)] if int(name) < len(found) else MISSING
        else:
            return MISSING
    return found
