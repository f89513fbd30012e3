"""Conditions are true, false or unknown, and unknown is never either of the others."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redfirst.evaluators import MISSING
from redfirst.evaluators.canonical import equal, key_text
from redfirst.evaluators.conditions import OPERATORS, parse_condition, parse_where
from redfirst.evaluators.kleene import Truth, all_of, any_of, negated
from redfirst.evaluators.paths import (
    ABSENT,
    call_path,
    look_into_call,
    look_up,
    opened,
    parse_path,
    show_path,
)
from redfirst.evaluators.patterns import LONGEST_SUBJECTS, compile_pattern
from redfirst.evaluators.testing import call

truths = st.sampled_from([True, False, None])


@pytest.mark.parametrize(
    ("left", "right", "both", "either"),
    [
        (True, True, True, True),
        (True, False, False, True),
        (True, None, None, True),
        (False, False, False, False),
        (False, None, False, None),
        (None, None, None, None),
    ],
)
def test_kleenes_tables(left: Truth, right: Truth, both: Truth, either: Truth) -> None:
    """False beats unknown in a conjunction, true beats unknown in a disjunction."""
    assert all_of((left, right)) is all_of((right, left)) is both
    assert any_of((left, right)) is any_of((right, left)) is either


@given(st.lists(truths))
@settings(deadline=None)
def test_de_morgan(values: list[Truth]) -> None:
    """Not all of them is any of their opposites."""
    assert negated(all_of(values)) is any_of(negated(value) for value in values)


@pytest.mark.parametrize(
    ("condition", "value", "truth"),
    [
        ("a", "a", True),
        ("a b", " a  b ", True),
        ("a", "A", False),
        (True, True, True),
        (True, False, False),
        (True, "true", None),
        (True, 1, None),
        (True, None, False),
        (None, None, True),
        (None, "x", False),
        (249, "249.00", True),
        ("249.00", 249, True),
        ("249.00", "249.0", True),
        ("249.00", "249.01", False),
        ("7", 7, True),
        (7, " 7 ", True),
        (7, "007", None),
        ("7", "007", False),
        ("+7", 7, None),
        (-0.0, "-0.00", True),
        (1, True, None),
        ("1", True, None),
        ({"eq": {"a": [1, "2.0"]}}, {"a": ["1", 2]}, True),
        ({"eq": {"a": 1}}, {"a": "x"}, None),
        ({"eq": {"a": 1}}, {"b": 1}, False),
        ([1], [1, 2], False),
        ({"gt": 5}, "007", None),
        (1, 1.0, True),
        (1, "one", None),
        (1, [1], None),
        ([1, 2], [1, 2], True),
        ([1, 2], (2, 1), False),
        ({"eq": {"a": 1}}, {"a": 1.0}, True),
        ({"eq": {"a": 1}}, {"a": 2}, False),
        ({"eq": 1}, float("nan"), None),
        ({"ne": 1}, 2, True),
        ({"ne": 1}, "x", None),
        ({"gt": 100}, 100, False),
        ({"gt": 100}, "249.00", True),
        ({"gt": "100"}, "99.5", False),
        ({"gt": 100}, True, None),
        ({"gt": 100}, "much", None),
        ({"gt": 100}, None, None),
        ({"ge": 100}, 100.0, True),
        ({"lt": 1}, 0, True),
        ({"le": 0.1}, 0.1, True),
        ({"ge": 1, "lt": 3}, 2, True),
        ({"ge": 1, "lt": 3}, 3, False),
        ({"ge": "2026-01-01"}, "2026-11-20", True),
        ({"ge": "2026-01-01"}, 5, None),
        ({"in": ["a", "b"]}, "b", True),
        ({"in": ["a", "b"]}, "c", False),
        ({"in": [1, "b"]}, "c", None),
        ({"not_in": ["a"]}, "b", True),
        ({"matches": "(?i)cancel"}, "Please CANCEL", True),
        ({"matches": "^x"}, "ax", False),
        ({"matches": "x"}, 5, None),
        ({"matches": "x"}, "x" * (LONGEST_SUBJECTS[0] + 1), None),
        ({"matches": ".*a.*b"}, "x" * (LONGEST_SUBJECTS[2] + 1), None),
        ({"exists": True}, None, True),
        ({"exists": False}, 1, False),
        ({"exists": True}, ABSENT, False),
        ({"exists": False}, ABSENT, True),
        ({"exists": False}, MISSING, None),
    ],
)
def test_a_condition_has_three_answers(condition: object, value: object, truth: Truth) -> None:
    """Another type is unknown; money as text compares by its number."""
    assert parse_condition(condition).holds(value) is truth


@pytest.mark.parametrize("operator", sorted(set(OPERATORS) - {"exists"}))
@pytest.mark.parametrize("value", [ABSENT, MISSING])
def test_nothing_is_concluded_from_what_is_not_there(operator: str, value: object) -> None:
    """An absent or unread value is unknown to every operator but exists, ne and not_in included."""
    wanted = [1] if operator in ("in", "not_in", "subset_of") else "1"

    assert parse_condition({operator: wanted}).holds(value) is None


@pytest.mark.parametrize(
    ("condition", "what"),
    [
        ({"gte": 1}, "use one of eq, ne, gt, ge"),
        ({}, "empty condition"),
        ({"exists": 1}, "true or false"),
        ({"in": 1}, "a list"),
        ({"in": []}, "a list"),
        ({"gt": True}, "a number"),
        ({"gt": [1]}, "a number"),
        ({"matches": 1}, "a regular expression"),
        ({"matches": "("}, "no regular expression"),
    ],
)
def test_a_wrong_condition_says_what_is_wrong(condition: object, what: str) -> None:
    """The message names the operator and what it takes."""
    with pytest.raises(ValueError, match=what.replace("(", r"\(")):
        parse_condition(condition)


def test_conditions_are_told_in_words() -> None:
    """A condition can stand in a sentence."""
    where = parse_where(
        {
            "args.amount": {"gt": 100, "le": 200},
            "result.ok": True,
            "result.kind": {"matches": "^a"},
            "result.id": {"exists": True},
            "result.no": {"exists": False},
        },
        call_path,
    )

    assert str(where) == (
        "args.amount is more than 100 and at most 200 and result.id is present and result.kind is matching ^a"
        " and result.no is absent and result.ok is true"
    )


def test_conditions_stand_under_paths() -> None:
    """A where that is no mapping, or has a wrong path, is refused."""
    with pytest.raises(ValueError, match="conditions by path"):
        parse_where(["args.x"], call_path)
    with pytest.raises(ValueError, match="does not begin with"):
        parse_where({"arg.x": 1}, call_path)


@pytest.mark.parametrize(
    "text",
    [
        "(a+)+$",
        "(a*)*",
        "(?:a|a)*$",
        "((ab?)c){2,}",
        r"(\w+\s)*",
        "([a-z]+)+",
        r"(a)\1",
        "(?P<x>a)(?P=x)",
        "(a)?(?(1)b|c)",
        "(?x)a b",
        ".*.*.*.*x",
        "a{1,}b+c*d{0,999}",
        "a" * 201,
    ],
)
def test_a_pattern_that_may_hang_is_refused(text: str) -> None:
    """Repetition inside repetition and its relatives never run on foreign text."""
    with pytest.raises(ValueError, match="pattern"):
        compile_pattern(text)


@pytest.mark.parametrize(
    "text",
    [
        "(?i)cancel|refund",
        "(?:please )?cancel",
        r"^A-\d+$",
        "(ab)+",
        r"(\d{4})+-",
        "[(+*|]+",
        "(?P<id>A-[0-9]{1,6})",
        "(?i:x)(?=y)y",
        "a+?b*+",
        "(a|b)c",
        "(a|b)?c",
        r"\(a+\)+",
        ".*a.*b",
        "a*a*a*b",
    ],
)
def test_a_plain_pattern_is_accepted(text: str) -> None:
    """What people write in rules goes through, and is quick on the longest subject."""
    began = time.perf_counter()

    pattern = compile_pattern(text)
    pattern.found_in("a" * pattern.longest_subject)

    assert time.perf_counter() - began < 5


@given(st.lists(st.text("ab.*~/01", max_size=4), min_size=1))
@settings(deadline=None)
def test_a_path_names_its_keys(parts: list[str]) -> None:
    """Writing a path and reading it gives back the keys, dots and stars in them included."""
    assert list(parse_path(show_path(parts))) == parts


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("args..x", "empty part"),
        ("orders.x", "does not begin"),
        ("status.x", "does not begin"),
        ("result_of.x", "needs"),
    ],
)
def test_a_path_begins_with_something_a_call_has(text: str, what: str) -> None:
    """A path that cannot lead anywhere is refused when the rule is loaded."""
    with pytest.raises(ValueError, match=what):
        call_path(text)


def test_absence_and_ignorance_differ() -> None:
    """A key that is not in a recorded object is absent; a text or an unread value may hide anything."""
    assert look_up({"a": [1, {"b": 2}]}, ("a", "1", "b")) == 2
    assert look_up({"a": [1]}, ("a", "1")) is ABSENT
    assert look_up({"a": [1]}, ("a", "x")) is ABSENT
    assert look_up({"a": None}, ("a", "b")) is ABSENT
    assert look_up({}, ("a", "b")) is ABSENT
    assert look_up({"a": "cut…"}, ("a", "b")) is MISSING
    assert look_up(MISSING, ("a",)) is MISSING


def test_a_call_is_looked_into() -> None:
    """Arguments, results (also as JSON text) and the fields of a call are in reach."""
    one = call("get", id="7", result='{"verified": true}', agent="desk")
    seen = {
        path: look_into_call(one, call_path(path)) for path in ("args.id", "result.verified", "agent", "name")
    }

    assert seen == {"args.id": "7", "result.verified": True, "agent": "desk", "name": "get"}
    assert look_into_call(one, ("result",)) == '{"verified": true}'
    assert look_into_call(one, ("error",)) is None
    assert look_into_call(one, ("effect",)) is MISSING
    assert look_into_call(call("get", args=None), call_path("args.id")) is MISSING
    assert look_into_call(call("get", status="tool_error"), call_path("result.id")) is MISSING


def test_text_that_only_looks_like_json_stays_text() -> None:
    """A cut result is not guessed at."""
    assert opened('{"a": 1') == '{"a": 1'
    assert opened("[1]") == [1]
    assert opened("7") == "7"


scalars = (
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.sampled_from(["7", "7.0", "007"])
)
nested = st.recursive(
    scalars | st.text("a01 .-", max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


@given(nested, nested)
@settings(deadline=None)
def test_values_share_a_key_exactly_when_they_are_equal(left: object, right: object) -> None:
    """Grouping and comparing know one equality."""
    assert (key_text(left) == key_text(right)) is (equal(left, right) is True)
    assert equal(left, right) is equal(right, left)


@pytest.mark.parametrize(
    ("one", "other"), [(120, "120.00"), (0.5, "0.50"), (10**30, "1" + "0" * 30), (0, "-0"), (1e22, 10**22)]
)
def test_a_number_and_its_numeral_are_one_key(one: object, other: object) -> None:
    """Money as text and money as a number are the same money, however long."""
    assert key_text(one) == key_text(other)
    assert equal(one, other) is True


def test_what_is_no_number_has_no_order_among_numbers() -> None:
    """A float that is none compares with nothing."""
    assert equal(float("inf"), 1) is None
    assert key_text(float("inf")) == '"inf"'
    assert key_text({2, 1}) == "[1,2]"
