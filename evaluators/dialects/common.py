"""What all dialects record alike: errors, sessions, token numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from redfirst.evaluators.dialects.values import first_text, is_count, number
from redfirst.evaluators.span import Span, StatusCode
from redfirst.evaluators.trajectory import Gap, Tokens

CONTROL_FLOW = (
    "ParentCommand",
    "GraphBubbleUp",
    "GraphInterrupt",
    "NodeInterrupt",
    "CallDeferred",
    "ApprovalRequired",
)
"""Exceptions by which frameworks steer, not fail."""
_PARKING = ("GraphInterrupt", "NodeInterrupt", "CallDeferred", "ApprovalRequired")

Attributes = Mapping[str, object]


def error_of(span: Span, *, failed: bool | None = None) -> dict[str, object]:
    """The error fields of ``SpanFacts``: whether, what, of which type, or an interrupt that is no error."""
    if failed is None:
        unsaid = span.status is StatusCode.UNSET and bool(span.attributes.get("error.type"))
        failed = span.status is StatusCode.ERROR or unsaid
    if not failed:
        return {}
    exception: Mapping[str, object] = next((e.attributes for e in span.events if e.name == "exception"), {})
    kind = first_text(exception.get("exception.type"), span.attributes.get("error.type"))
    names = f"{kind or ''} {span.status_message}"
    if any(
        name in names.replace("(", " ").replace(":", " ").replace(".", " ").split() for name in CONTROL_FLOW
    ):
        return {"interrupted": any(name in names for name in _PARKING)}
    message = first_text(exception.get("exception.message"), span.status_message, kind) or "error"
    return {"failed": True, "error": message, "error_type": kind}


def tokens_of(attributes: Attributes, **names: Iterable[str]) -> Tokens:
    """Token numbers by the first name that carries one; none where names of one number contradict each other.

    No call is free of tokens: 0 in and 0 out is what frameworks write when the answer came without a count.
    """
    found: dict[str, int] = {}
    for field, keys in names.items():
        for key in keys:
            if key not in attributes or (value := number(attributes[key])) is None:
                continue
            if found.setdefault(field, value) != value:
                del found[field]
                break
    counted = [found[field] for field in ("input", "output") if field in found]
    return Tokens(**found) if any(counted) or not counted else Tokens()


def contradictions(
    attributes: Attributes, span_id: str, tokens: Tokens, **names: Iterable[str]
) -> tuple[Gap, ...]:
    """Why numbers are missing that were recorded under several names, each with another value."""
    gaps = []
    for field, keys in names.items():
        if getattr(tokens, field) is not None:
            continue
        said = {key: number(attributes[key]) for key in keys if key in attributes}
        if len(said) > 1 and len(set(said.values()) - {None}) > 1:
            because = "attributes contradict each other: " + ", ".join(
                f"{key}={value}" for key, value in said.items()
            )
            gaps.append(Gap(fact=f"tokens.{field}", because=because, span_id=span_id))
    return tuple(gaps)


def first(attributes: Attributes, *keys: str) -> object:
    """The value of the first key that is there."""
    for key in keys:
        if key in attributes:
            return attributes[key]
    return None


def begins_any(attributes: Attributes, prefix: str) -> bool:
    """Whether some key begins so. Most do not, and one search in all of them together says that."""
    return f"\n{prefix}" in "\n" + "\n".join(attributes) and any(key.startswith(prefix) for key in attributes)


def flattened(attributes: Attributes, prefix: str) -> list[dict[str, object]]:
    """The records behind ``prefix.<i>.<key>``, in the order of their numbers; numbers may have gaps."""
    lead = f"{prefix}."
    if lead not in "\n".join(attributes):
        return []
    found: dict[int, dict[str, object]] = {}
    for key in [key for key in attributes if key.startswith(lead)]:
        index, dot, rest = key[len(lead) :].partition(".")
        if dot and is_count(index):
            found.setdefault(int(index), {})[rest] = attributes[key]
    return [found[index] for index in sorted(found)]
