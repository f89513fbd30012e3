"""Any value of a host's becomes bounded text, and none of them raises."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import enum
import hashlib
import json
import math
import threading
import uuid
from collections import OrderedDict, namedtuple
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any
from unittest.mock import MagicMock

import orjson
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redfirst.instrumentation import capture, tool
from redfirst.instrumentation.capture import bounded, clean, limit_from_environment, plain, to_json, to_text

Point = namedtuple("Point", "x y")  # noqa: PYI024 - the untyped kind is what is tested


class Colour(enum.Enum):
    """An enum."""

    RED = "red"


@dataclasses.dataclass
class Order:
    """With a private field, and one that cannot be copied."""

    order_id: str
    total: Decimal
    _secret: int = 1
    lock: Any = dataclasses.field(default_factory=threading.Lock, repr=False)


class Book(pydantic.BaseModel):
    """A model."""

    title: str
    price: Decimal = Decimal("1.50")


class Handle(pydantic.BaseModel):
    """A model with a field that pydantic cannot write as JSON."""

    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    thing: Any


class Angry:
    """Raises whatever is asked of it."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__


class AngryMapping(Mapping[str, int]):
    """A mapping that breaks when read."""

    def __getitem__(self, key: str) -> int:
        raise OSError(key)

    def __iter__(self) -> Iterator[str]:
        raise OSError("closed")

    def __len__(self) -> int:
        return 1


class Remote:
    """A proxy that would call far away for any attribute."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"called {name}")

    def __repr__(self) -> str:
        return "<remote>"


CIRCLE: list[Any] = [1]
CIRCLE.append(CIRCLE)
DEEP: list[Any] = []
for _ in range(5000):
    DEEP = [DEEP]
DAY = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)
ID = uuid.UUID(int=7)

VALUES: list[tuple[Any, Any]] = [
    (None, None),
    ("text", "text"),
    (math.nan, None),
    (math.inf, None),
    (Decimal("1.10"), "1.10"),
    (DAY, "2026-11-29T12:00:00+00:00"),
    (DAY.date(), "2026-11-29"),
    (ID, "00000000-0000-0000-0000-000000000007"),
    (b"ab\xff", "b'ab\\xff'"),
    ({3, 1, 2}, [1, 2, 3]),
    (frozenset({"b", "a"}), ["a", "b"]),
    (Point(1, 2), [1, 2]),
    (Colour.RED, "red"),
    (OrderedDict(a=1), {"a": 1}),
    ({1: "a", None: "b", False: "c"}, {"1": "a", "null": "b", "false": "c"}),
    ({("a", 1): "x"}, {"('a', 1)": "x"}),
    (Book(title="Emma"), {"title": "Emma", "price": "1.50"}),
    (Handle(thing={Colour.RED: Point(1, 2)}), {"thing": {"red": [1, 2]}}),
    (10**400, 10**400),
    (10**5000, "<integer of 16610 bits>"),
    (range(2), "range(0, 2)"),
    (Remote(), "<remote>"),
    (Angry(), "<Angry that cannot be shown>"),
    ("\ud800", "\ud800"),
    (AngryMapping(), "<AngryMapping>"),
    (CIRCLE, [1, "<circular>"]),
    (Book, repr(Book)),
]


@pytest.mark.parametrize(("value", "said"), VALUES, ids=[type(value).__name__ for value, _ in VALUES])
def test_a_value_is_the_same_json_alone_and_in_bad_company(value: Any, said: Any) -> None:
    """One value that the fast way refuses does not change how its neighbours are written."""
    alone, beside = plain(value), plain({"value": value, "odd": [10**30, "\udfff", Angry()]})

    if isinstance(value, AngryMapping):
        assert "AngryMapping object" in alone
        assert "AngryMapping object" in beside["value"]
    else:
        assert alone == said
        assert beside["value"] == said
    assert beside["odd"] == [10**30, "\udfff", "<Angry that cannot be shown>"]
    assert not isinstance(alone, float) or math.isfinite(alone)


def test_a_dataclass_is_written_with_all_its_fields_and_copies_nothing() -> None:
    """Private fields too; a lock cannot be copied and is only shown."""
    for value in (plain(Order("A-1", Decimal(2))), plain([Order("A-1", Decimal(2)), 10**30])[0]):
        assert {key: value[key] for key in ("order_id", "total", "_secret")} == {
            "order_id": "A-1",
            "total": "2",
            "_secret": 1,
        }
        assert value["lock"].startswith("<unlocked")


def test_nesting_beyond_every_limit_is_cut_off() -> None:
    """Five thousand lists in each other."""
    assert "<nested too deeply>" in to_json(DEEP)


def test_a_mock_or_a_model_that_cannot_be_written_is_shown() -> None:
    """A mock has every attribute; a field that is no JSON leaves the others readable."""
    assert plain({"m": MagicMock(name="m"), "x": 1})["x"] == 1
    found = plain(Handle(thing=Angry()))
    assert found in ({"thing": "<Angry that cannot be shown>"}, "<Handle that cannot be shown>")


def test_a_pydantic_model_that_would_warn_is_written_in_silence() -> None:
    """The host's log is not ours to fill."""
    book = Book(title="Emma")
    book.title = 7  # type: ignore[assignment]

    assert plain(book) == {"title": 7, "price": "1.50"}


json_like = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None))
    | st.binary()
    | st.decimals()
    | st.datetimes()
    | st.builds(Angry),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.integers() | st.tuples(st.text()), inner)
        | st.tuples(inner)
    ),
    max_leaves=20,
)


@given(json_like)
def test_every_value_becomes_json_that_every_reader_takes(value: Any) -> None:
    """No exception, valid JSON (no NaN), valid UTF-8, and reading and writing it again changes nothing."""
    text = to_json(value)
    clean(text).encode()

    def no_constants(name: str) -> None:
        raise AssertionError(name)

    found = json.loads(text, parse_constant=no_constants)
    assert plain(found) == found


@given(st.text(st.characters(codec=None)), st.integers(1, 400))
def test_a_bounded_text_never_exceeds_its_limit_by_more_than_the_marker(text: str, limit: int) -> None:
    """Short texts stay as they are; long ones keep their beginning, and say their length and digest."""
    whole = clean(text)
    kept, note = bounded(text, limit)

    kept.encode()
    if len(whole) <= limit:
        assert (kept, note) == (whole, None)
    else:
        sha = hashlib.sha256(whole.encode()).hexdigest()
        marker = f"…[cut by redfirst: {len(whole)} characters, sha256 {sha}]"
        assert kept.endswith(marker)
        assert whole.startswith(kept.removesuffix(marker))
        assert len(kept) <= max(limit, len(marker))
        assert note == {"length": len(whole), "sha256": sha}


def test_a_huge_value_is_cut_with_marker_and_note_on_the_span(
    spans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The span survives; each cut attribute is named with its whole length and digest."""
    monkeypatch.setattr(capture, "MAX_CHARACTERS", 300)

    @tool(schema={"description": "s" * 1000})
    def look(x: str) -> str:
        return x

    assert look("v" * 50_000) == "v" * 50_000

    found = spans.attributes()
    notes = {note["attribute"]: note for note in json.loads(found["redfirst.truncated"])}
    assert notes.keys() == {
        "tool.parameters",
        "gen_ai.tool.call.arguments",
        "input.value",
        "gen_ai.tool.call.result",
        "output.value",
    }
    assert notes["input.value"]["length"] == 50_008
    assert found["input.value"].startswith('{"x":"vvvv')
    assert found["input.value"].endswith(f"sha256 {notes['input.value']['sha256']}]")
    assert all(len(found[key]) == 300 for key in notes)


@pytest.mark.parametrize(
    ("given_value", "limit"),
    [
        ("", 65536),
        ("1000", 1000),
        (" 1000 ", 1000),
        ("3", 256),
        ("64k", 65536),
        ("-1", 65536),
        ("9" * 9000, 65536),
    ],
)
def test_the_limit_is_read_from_the_environment_and_a_bad_one_breaks_nothing(
    given_value: str, limit: int
) -> None:
    """Importing the library never fails for a misspelt variable."""
    assert limit_from_environment({"REDFIRST_MAX_VALUE_CHARACTERS": given_value}) == limit


def test_text_is_itself_and_everything_else_is_json() -> None:
    """An agent's request and answer."""
    assert to_text("a\ud800") == ("a\\ud800", False)
    assert to_text({"a": 1}) == ('{"a":1}', True)


def test_odd_values_go_through_a_call_untouched(spans: Any) -> None:
    """The object that comes back is the one that went in."""

    @tool
    def echo(value: Any) -> Any:
        return value

    @tool
    async def echo_later(value: Any) -> Any:
        return value

    for value, _ in [*VALUES, (DEEP, None)]:
        assert echo(value) is value
        assert asyncio.run(echo_later(value)) is value
    assert all(span.status.is_ok for span in spans.all())
    assert all(orjson.loads(clean(span.attributes["input.mime_type"].join('""'))) for span in spans.all())
