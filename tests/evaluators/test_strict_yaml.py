"""YAML that means what it looks like, and comes back as it was."""

import math

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from redfirst.evaluators import ConfigurationError, strict_yaml
from redfirst.evaluators.strict_yaml import dump, load, nearest, read
from redfirst.evaluators.yaml_scalars import resolve

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.text(
    "ab #:-?'\"\\\n\t|>{}[],&*!%@`~.0123456789eE+_", max_size=260
)
data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(params=["CSafeLoader", "SafeLoader"])
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both parsers of PyYAML, because which one is there depends on how it was built."""
    if not hasattr(yaml, request.param):
        pytest.skip("PyYAML was built without libyaml")
    monkeypatch.setattr(strict_yaml, "_LOADER", getattr(yaml, request.param))


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("12", 12),
        ("-3", -3),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        (".inf", math.inf),
        ("no", "no"),
        ("yes", "yes"),
        ("012", "012"),
        ("+49", "+49"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2026-11-20", "2026-11-20"),
        ("'12'", "12"),
        ("! 12", "12"),
        ("!!str 12", "12"),
    ],
)
def test_a_scalar_means_what_it_looks_like(text: str, value: object) -> None:
    """Only true, false, null and decimal numbers are no text."""
    found = load(f"a: {text}")

    assert found == {"a": value}
    assert type(found["a"]) is type(value)  # type: ignore[index]


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "twice"),
        ("", 1, "empty"),
        ("# only a remark\n", 1, "empty"),
        ("a: 1\n---\nb: 2\n", 2, "second document"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", 3, "merge keys"),
        ("a: !!python/name:os.system x\n", 1, "tag"),
        ("a: !!set {b}\n", 1, "tag"),
        ("a: *x\n", 1, "alias"),
        ("a: &x [*x]\n", 1, "alias"),
        ("a: &x b\n*x : c\n", 2, "alias as a key"),
        ("? [a]\n: b\n", 1, "a key that is a list"),
        ("a: [1\nb: 2\n", 2, "no YAML"),
        ("a: \x01\n", 1, "no YAML"),
        ("a: 1\nb: \ud800\n", 2, "surrogate"),
        ("a: " + "9" * 400, 1, "digits"),
        ("a: 1e999\n", 1, "too large"),
        ("[" * 100, 1, "deep"),
        ("a: &x " + "[" * 60 + "]" * 60 + "\nb: [[[[[*x]]]]]\n", 2, "deep"),
    ],
)
def test_what_is_refused_says_where_and_what_to_do(text: str, line: int, what: str) -> None:
    """Every refusal begins with the file and the line, and says what to do."""
    with pytest.raises(ConfigurationError) as caught:
        load(text, "rules.yaml")

    assert str(caught.value).startswith(f"rules.yaml:{line}: ")
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("loader")
def test_a_bomb_of_aliases_is_refused() -> None:
    """Aliases count as what they stand for."""
    bomb = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
        f"{chr(letter)}: &{chr(letter)} [{','.join([f'*{chr(letter - 1)}'] * 9)}]\n"
        for letter in range(98, 106)
    )

    with pytest.raises(ConfigurationError, match="aliases written out"):
        load(bomb)


def test_a_text_beyond_the_limit_is_refused() -> None:
    """Size is checked before anything is read."""
    with pytest.raises(ConfigurationError, match="characters"):
        load("a" * (strict_yaml.LONGEST_TEXT + 1))


def test_an_alias_is_a_copy() -> None:
    """What is changed through one name does not change under the other."""
    found = load("a: &x {n: 1}\nb: *x\nc: &y 5\nd: *y\n")

    assert isinstance(found, dict)
    found["a"]["n"] = 2
    assert found == {"a": {"n": 2}, "b": {"n": 1}, "c": 5, "d": 5}


def test_keys_are_text() -> None:
    """A key is never a number, a truth or null."""
    assert load("1: a\ntrue: b\n? null\n: c\n") == {"1": "a", "true": "b", "null": "c"}


def test_a_place_has_a_line() -> None:
    """A value stands at its key's line; names that are no keys of the document are passed over."""
    document = read("rules:\n  - id: a\n    needs:\n      tool: x\n  - b\n", "r.yaml")

    assert document.line_of(("rules", 0, "needs")) == 3
    assert document.line_of(("rules", 0, "require_before", "needs", "tool", "str")) == 4
    assert document.line_of(("rules", 0, "unknown")) == 2
    assert document.line_of(("rules", 1)) == 5
    assert str(document.fault(("rules", 1), "bad; do better")) == "r.yaml:5: bad; do better"


def test_the_nearest_word_is_named() -> None:
    """A slip of the pen gets one suggestion, anything else the whole list."""
    assert nearest("sevrity", ["severity", "kind"]) == "did you mean severity?"
    assert nearest("zzz", ["severity", "kind"]) == "known: severity, kind"


@given(data)
@settings(deadline=None)
def test_what_is_written_reads_back(value: object) -> None:
    """load(dump(x)) == x, types included."""
    text = dump(value)

    assert repr(load(text)) == repr(value)
    assert dump(value) == text


@given(data)
@settings(deadline=None)
def test_both_parsers_read_the_same(value: object) -> None:
    """What is written means the same to libyaml and to the parser in Python."""
    text = dump(value)
    events = [
        [(type(event).__name__, getattr(event, "value", None)) for event in yaml.parse(text, Loader=parser)]
        for parser in (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    ]

    assert events[0] == events[1]


@given(texts)
@settings(deadline=None)
def test_what_is_written_is_text_to_a_yaml_1_1_reader_too(text: str) -> None:
    """An older reader does not turn a name into a date or a truth."""
    assert yaml.safe_load(dump({"a": text})) == {"a": text}


def test_lines_are_short() -> None:
    """No line is longer than 100 columns, whatever the text."""
    value = {
        "k" * 130: {"long": "word " * 60, "solid": "x" * 400, "quote": '"\\' * 90, "short": ["a b" * 40]}
    }

    text = dump(value)

    assert max(map(len, text.splitlines())) <= 100
    assert load(text) == value


def test_a_long_text_is_broken_between_words() -> None:
    """The space stays before the break, so that a reader sees whole words; a word that is too long is cut."""
    text = dump({"title": f"{'refund ' * 14}limit:", "k": "x" * 120})

    assert text.splitlines() == [
        'title: "' + "refund " * 13 + "\\",
        '  refund limit:"',
        'k: "' + "x" * 95 + "\\",
        "  " + "x" * 25 + '"',
    ]


def test_a_document_reads_like_one_written_by_hand() -> None:
    """Block style, quotes only where needed, literal blocks for text of several lines."""
    value = {
        "id": "refund-1",
        "at": "2026-11-20",
        "yes": "no",
        "sum": "249.00",
        "steps": [{"tool": "get_order", "args": {}}, [1, 2.5], []],
        "text": "Hi,\n\nplease refund.\n",
        "tail": "a\nb",
        "float": 1e16,
        "none": None,
    }

    assert dump(value) == (
        "id: refund-1\n"
        'at: "2026-11-20"\n'
        '"yes": "no"\n'
        'sum: "249.00"\n'
        "steps:\n"
        "  - tool: get_order\n"
        "    args: {}\n"
        "  - - 1\n"
        "    - 2.5\n"
        "  - []\n"
        "text: |\n"
        "  Hi,\n"
        "\n"
        "  please refund.\n"
        "tail: |-\n"
        "  a\n"
        "  b\n"
        "float: 1.0e+16\n"
        "none: null\n"
    )


def test_keys_are_sorted_only_where_asked() -> None:
    """The order of the data is kept unless sorting is asked for."""
    assert dump({"b": 1, "a": (2,)}) == "b: 1\na:\n  - 2\n"
    assert dump({"b": 1, "a": 2}, sort_keys=True) == "a: 2\nb: 1\n"


def test_numbers_without_end_have_a_form() -> None:
    """Infinities and not-a-number are written as YAML has them."""
    assert dump([math.inf, -math.inf, math.nan]) == "- .inf\n- -.inf\n- .nan\n"
    assert math.isnan(resolve(".nan"))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [b"x", {1: 2}, object()])
def test_what_json_does_not_know_is_refused(value: object) -> None:
    """Bytes, objects and keys that are no text are a mistake of the caller."""
    with pytest.raises(TypeError):
        dump({"a": value})


def test_a_lone_surrogate_cannot_be_written() -> None:
    """No YAML can hold half a character."""
    with pytest.raises(ValueError, match="surrogate"):
        dump({"a": "\ud800"})
