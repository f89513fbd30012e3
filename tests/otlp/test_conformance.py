"""The page says what the tests show."""

from __future__ import annotations

from tests.otlp.conformance import PAGE, page, proofs
from tests.otlp.items import ITEMS


def test_every_item_has_a_test():
    """And every test names items that there are."""
    assert proofs().keys() == ITEMS.keys()


def test_the_page_is_current():
    """`make conformance` writes it."""
    assert PAGE.read_text("utf-8") == page()
