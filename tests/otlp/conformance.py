"""The page of what the receiver does: ``python -m tests.otlp.conformance`` writes it (``make conformance``).

Each line is an item and the tests that show it, in the tests' own words, so that the page cannot say more than they do.
"""

from __future__ import annotations

import importlib
import inspect
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.otlp.items import ITEMS, PAYLOAD, TRANSPORT

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "conformance.md"
MODULES = (
    "tests.otlp.test_over_http",
    "tests.otlp.test_over_grpc",
    "tests.otlp.test_security",
    "tests.otlp.test_payload",
    "tests.otlp.test_stored",
    "tests.otlp.test_exporters",
    "tests.otlp.test_service",
    "tests.collector_processor.test_headers",
    "tests.service.test_restart",
)
_HEAD = """# What the receiver does with OTLP

Made by `make conformance` from the tests that show it; a test compares the two. Each item is one thing that an OTLP
receiver has to do, by the protocol (1.11.0) or by what happened to others; below it stand the tests, in their own words.
Run them with `pytest tests/otlp`.
"""


def proofs() -> dict[int, list[tuple[str, str]]]:
    """For each item the tests that show it: name and sentence."""
    found: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for module in MODULES:
        for name, test in _tests(module):
            sentence = " ".join((inspect.getdoc(test) or "").split())
            for item in test.proves:
                found[item].append((f"{module.replace('.', '/')}.py::{name}", sentence))
    return found


def _tests(module: str) -> Iterator[tuple[str, object]]:
    for name, test in vars(importlib.import_module(module)).items():
        if name.startswith("test_") and hasattr(test, "proves"):
            yield name, test


def page() -> str:
    """The page as it should stand."""
    found = proofs()
    parts = [_HEAD]
    for title, items in (("Transport and encoding", TRANSPORT), ("Payload", PAYLOAD)):
        parts.append(f"\n## {title}\n")
        for number in items:
            parts.append(f"\n{number}. **{_capital(ITEMS[number].title)}** ({ITEMS[number].source})\n")
            parts.extend(_lines(found[number]))
    return "".join(parts)


def _lines(tests: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, sentence in tests:
        yield f"   - {sentence} [`{name.rpartition('::')[2]}`](../{name.partition('::')[0]})\n"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:] if text[:1].isalpha() else text


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
