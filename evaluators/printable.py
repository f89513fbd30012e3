"""Text of a trace as it may be shown on a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text in one line without control characters: a value must not be able to move the cursor."""
    return "".join(c if c.isprintable() else "�" if c not in "\n\t" else " " for c in text)
