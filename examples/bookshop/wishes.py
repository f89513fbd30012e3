"""What a customer's text asks for, found by pattern: the scripted model's understanding of English."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .transcript import Message

_ORDER = re.compile(r"\bA-\d{4}\b")
_CLAUSE = re.compile(
    r"[.?!;](?:\s|$)|\n|,? and (?=(?:please|also|cancel|refund|send|ship|change|set|where|tell|give)\b)", re.I
)
_AMOUNT = re.compile(r"(\d+(?:\.\d\d)?) ?(?:EUR|euros?)", re.I)
_KINDS = (
    ("cancel", re.compile(r"\bcancel\b", re.I)),
    ("refund", re.compile(r"\brefund\b|\bmoney back\b", re.I)),
    ("quantity", re.compile(r"\b(?P<value>\d) cop(?:y|ies)\b", re.I)),
    ("address", re.compile(r"\b(?:send|ship|deliver)\b.*?\bto (?P<value>\d+ [A-Z][\w ]+)", re.I)),
    ("credit", re.compile(r"\bcredit\b", re.I)),
    ("status", re.compile(r"\bwhere\b|\bstatus\b|\bwhen\b|\barrive", re.I)),
)


@dataclass(frozen=True, slots=True)
class Wish:
    """One thing a customer wants of one order."""

    kind: str
    """``status``, ``cancel``, ``refund``, ``quantity``, ``address`` or ``credit``."""
    order_id: str
    value: str = ""
    """The new quantity or address, or the amount of a refund; empty when the text gives none."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who the customer says they are."""

    customer_id: str | None
    postcode: str | None


def caller(messages: Sequence[Message]) -> Caller:
    """Customer id and postcode as last stated by the customer."""
    said = " \n ".join(_said(messages))
    ids = re.findall(r"\bC-\d+\b", said)
    postcodes = re.findall(r"postcode(?: is)?:? *(\d[\d ]{3,5}\d)\b", said, re.I)
    return Caller(ids[-1] if ids else None, postcodes[-1] if postcodes else None)


def wishes(messages: Sequence[Message]) -> list[Wish]:
    """What the last message asks for; when it asks for nothing, what the one before it asked for.

    "It" and "that order" mean the order named last.
    """
    found: list[Wish] = []
    named: str | None = None
    for text in _said(messages):
        asked: list[Wish] = []
        for clause in _CLAUSE.split(text):
            orders = list(dict.fromkeys(_ORDER.findall(clause)))
            named = orders[-1] if orders else named
            for kind, pattern in _KINDS:
                if match := pattern.search(clause):
                    value = _value(kind, match, clause)
                    targets = orders or ([named] if named else [])
                    asked.extend(Wish(kind, order_id, value) for order_id in targets)
                    break
        found = asked or found
    return found


def _value(kind: str, match: re.Match[str], clause: str) -> str:
    if kind == "refund":
        amount = _AMOUNT.search(clause)
        return amount.group(1) if amount else ""
    return (match.groupdict().get("value") or "").strip()


def _said(messages: Sequence[Message]) -> Iterator[str]:
    return (str(message["content"]) for message in messages if message["role"] == "user")
