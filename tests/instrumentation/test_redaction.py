"""What must not leave does not, on no surface; what was equal stays equal; and every failure closes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult

from redfirst.evaluators.errors import ConfigurationError
from redfirst.instrumentation import (
    Pattern,
    Redaction,
    agent,
    capture,
    configure,
    current_run,
    faults,
    force_flush,
    model,
    provider,
    redaction,
    session,
    tool,
)
from redfirst.instrumentation.fast_spans import FastSpan
from redfirst.instrumentation.otlp_bytes import request
from redfirst.instrumentation.redaction import FAILED, PATTERNS, Redactor


def redactor(**given: Any) -> Redactor:
    return Redactor(Redaction(**given), key=b"k")


def test_a_key_is_taken_out_at_any_depth_in_any_case_and_in_json_inside_texts() -> None:
    """Also where a model wrote the arguments as text."""
    made = redactor(keys=["password"])
    value = {"a": [{"PassWord": "hunter2"}], "text": json.dumps({"password": "hunter2", "n": 1}), "n": 2}

    text, by = made.json(value)
    found = json.loads(text)

    token = made.token("hunter2")
    assert found["a"] == [{"PassWord": token}]
    assert json.loads(found["text"]) == {"password": token, "n": 1}
    assert found["n"] == 2
    assert sorted(by) == ["key PassWord", "key password"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("failed with {'password': 'hunter2', 'n': 1}", "failed with {'password': '@', 'n': 1}"),
        ('cannot send {"Password" : "hunter2"} twice', 'cannot send {"Password" : "@"} twice'),
        ('it said "{\\"password\\": \\"hunter2\\"}"', 'it said "{\\"password\\": \\"@\\"}"'),
        ("login(user='a', password='hunter2')", "login(user='a', password='@')"),
        ("{'password': 'hunter2", "{'password': '@'"),  # cut off
    ],
)
def test_a_key_is_found_inside_texts(text: str, left: str) -> None:
    """As JSON, ``repr`` or an assignment writes it, however often escaped; with the token of the value itself."""
    made = redactor(keys=["password"])

    assert made.text(text)[0] == left.replace("@", made.token("hunter2"))
    assert json.loads(made.json({"t": text})[0]) == {"t": left.replace("@", made.token("hunter2"))}


@pytest.mark.parametrize("secret", ['a"b', "éa", "a\\", "a\nb", "it's", '\\"', "<redacted:", "null and void"])
@pytest.mark.parametrize("write", [repr, json.dumps, lambda value: json.dumps(json.dumps(value)), str])
def test_a_secret_with_quotes_and_escapes_leaves_nothing_behind(secret: str, write: Any) -> None:
    """What stands after it stays where that can be told, and is never the rest of the secret."""
    tail = secret[1:] + "TAIL"
    text = "said " + write({"password": secret[:1] + tail, "n": "after"})

    assert "TAIL" not in redactor(keys=["password"]).text(text)[0]


PIECES = ("password", "'", '"', "=", ": ", "{", "a@b.org", "sk-", "x" * 20, "\\", "é")
SAID = (
    "password='hunter2'",
    "{'Token': 'abc'}",
    'token="abc"',
    "password = 'x",
    "'token'",
    "sk-" + "x" * 20,
    "4111111111111111",
    "token=[98, 99]",
)
TEXTS = st.one_of(
    st.sampled_from((*PIECES, *SAID)), st.lists(st.sampled_from((*PIECES, *SAID)), max_size=5).map("".join)
)
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(-3, 10**17), st.booleans(), st.none()),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(st.one_of(TEXTS, st.sampled_from(["a", "password", "b"])), inside, max_size=3)
    ),
    max_leaves=6,
)


@pytest.mark.parametrize(
    "patterns",
    [["email", "api_key"], ["email", "card"], [Pattern("alone", r"^a@b\.org$", "@")], [r"(?<!\")x{20}"]],
)
@given(value=VALUES | st.dictionaries(st.sampled_from(["a", "b"]), TEXTS, min_size=1))
@example(value={"a": {"password": "hunter2"}})
@example(value={"password": "hunter2"})
@example(value={"a": '{"password": "hunter2"}'})
@example(value={"a": '"password": "hunter2"'})
@example(value={"a": "'password': 'hunter2'"})
@example(value={"a": "token=[98, 99]"})
@example(value={"a": "password='hunter2'"})
@example(value={"a": 4111111111111111})
@example(value={"a": "a@b.org"})
@example(value={"a": "x" * 20})
@example(value="token=[98, 99]")
@example(value="password='hunter2'")
def test_a_value_without_secrets_is_let_through_only_where_the_long_way_finds_none(
    patterns: list[str], value: Any
) -> None:
    """The quick look at most values and the walk through them agree."""
    rules: dict[str, Any] = {"keys": ["password", "token"], "patterns": patterns}
    made, walking = redactor(**rules), redactor(**rules)
    made.json({"a": 1, "b": 2})  # keys that it has met are looked at no more

    quick, found = made.json(value)
    data, by = walking.data(json.loads(capture.to_json(value)))

    assert (json.loads(quick), sorted(found)) == (data, sorted(by))


def test_values_that_are_no_texts_are_taken_out_of_texts_too() -> None:
    """A number, a mapping to the end of the text; nothing is no secret, and a word that only contains the key is none."""
    made = redactor(keys=["pin"])

    assert made.text("x {'pin': 1234, 'n': 1}")[0] == f"x {{'pin': {made.token('1234')}, 'n': 1}}"
    assert "99" not in made.text("x {'pin': {'a': 99}, 'n': 1}")[0]
    assert "99" not in made.text("login pin={'a': 99} n=1")[0]
    assert made.text("x {'pin': None}")[0] == "x {'pin': None}"
    assert made.text("spin='x' the pin is mightier, 'pinned': 'y'")[1] == []


def test_a_number_of_any_size_beside_a_secret_stays_what_it_is() -> None:
    """Where the value is written anew without the secret."""
    value = {"id": 2**70 + 1, "least": -(2**63) - 1, "to": MAIL, "rate": 0.25}

    text, by = redactor(patterns=["email", "card"]).json(value)

    assert by == ["email"]
    assert json.loads(text) == {**value, "to": redactor().token(MAIL)}


def test_a_path_takes_out_one_place_only() -> None:
    """The star stands for any one position."""
    made = redactor(paths=["$.customer.cards[*].number", "$.pin"])
    value = {"customer": {"cards": [{"number": 1, "kind": "x"}], "number": 2}, "pin": "12", "a": {"pin": 3}}

    data, by = made.data(value)

    assert data == {
        "customer": {"cards": [{"number": made.token(1), "kind": "x"}], "number": 2},
        "pin": made.token("12"),
        "a": {"pin": 3},
    }
    assert by == ["path", "path"]


@pytest.mark.parametrize("name", PATTERNS)
def test_each_known_pattern_finds_its_example_and_leaves_plain_words(name: str) -> None:
    """Alone, in a sentence, as a key, and behind a line break that JSON writes with a backslash."""
    made = redactor(patterns=[name])
    example = PATTERNS[name].example
    assert example is not None
    for value in (example, f"it is {example} now", {example: 1}, [f"a\n{example}"]):
        text, by = made.json(value)
        assert example not in text
        assert by == [name]
    plain = {"order": "A-17", "day": "2026-11-30", "amount": 12.5, "text": "two books, please"}
    assert made.json(plain) == (json.dumps(plain, separators=(",", ":")), [])


def test_equal_secrets_stay_equal_and_others_do_not() -> None:
    """By key, by pattern, in whatever value: that is what rules that compare values need."""
    made = redactor(keys=["mail"], patterns=["email"])

    by_key = made.data({"mail": "a@b.org"})[0]["mail"]
    assert by_key == made.text("a@b.org")[0] == made.data(["a@b.org"])[0][0]
    assert by_key != made.data({"mail": "c@b.org"})[0]["mail"]
    assert made.data({"mail": 5})[0] != made.data({"mail": "5"})[0]
    assert made.data({"mail": None})[0] == {"mail": None}  # nothing is no secret
    assert by_key == Redactor(Redaction(patterns=["email"]), key=b"k").text("a@b.org")[0]
    assert by_key != Redactor(Redaction(patterns=["email"]), key=b"other").text("a@b.org")[0]


def test_what_is_redacted_is_not_redacted_again() -> None:
    """A span passes here when it is written and when it is exported; an expression may match what stands there."""
    made = redactor(keys=["id"], patterns=[r"[0-9a-f]{4,}", "email"])

    once = made.json({"id": "x1", "text": "a@b.org and beef"})[0]

    assert made.json(json.loads(once)) == (once, [])
    assert made.text(once) == (once, [])


def test_what_json_readers_stumble_over_is_redacted_all_the_same() -> None:
    """Integers beyond 64 bits, lone surrogates, NaN, what is no JSON at all."""
    made = redactor(keys=["password"], patterns=["email"])
    value = {"n": 10**400, "s": "\ud800 a@b.org", "f": float("nan"), "password": "x" * 9, "o": object}

    text, by = made.json(value)

    assert json.loads(text)["n"] == 10**400
    assert "a@b.org" not in text
    assert sorted(by) == ["email", "key password"]
    assert made.text('{"password": ')[0] == '{"password": '
    assert "hunter2" not in made.text('\n  {"password": "hunter2"}')[0]


def test_a_long_run_of_backslashes_or_letters_holds_nobody_up() -> None:
    """It is gone through once; tried from each of its places this would not come to an end."""
    made = redactor(keys=["password"], patterns=["email", "api_key"])
    text = f"password {chr(92) * 200_000} {'x' * 200_000} a@b.org"

    assert made.text(text)[0] == text.replace("a@b.org", made.token("a@b.org"))


def test_the_key_comes_from_the_environment_or_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same key two processes agree."""
    monkeypatch.setenv(redaction.KEY_VARIABLE, "k")
    assert Redactor(Redaction()).token("x") == redactor().token("x")
    monkeypatch.delenv(redaction.KEY_VARIABLE)
    assert Redactor(Redaction()).token("x") != Redactor(Redaction()).token("x")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"patterns": ["("]}, "no regular expression"),
        ({"patterns": ["a*"]}, "matches the empty text"),
        ({"paths": ["customer.name"]}, "no path"),
        ({"keys": [""]}, "are texts"),
    ],
)
def test_a_redaction_that_says_nothing_is_refused_where_it_is_written(wrong: Any, said: str) -> None:
    """Not found out by what leaks."""
    with pytest.raises(ConfigurationError, match=said):
        Redaction(**wrong)


def test_a_redaction_that_does_not_hold_is_refused() -> None:
    """The self-test plants a value for each rule: here the literal is in no match, so the expression is never tried."""
    broken = Pattern("ticket", r"T-\d+", literal="#", example="T-4711")

    with pytest.raises(ConfigurationError, match=r"does not hold.*pattern ticket"):
        configure(redact=Redaction(patterns=[broken]))
    assert provider.settings.redactor is None


def test_what_cannot_be_redacted_is_left_out_and_counted(
    faults_swallowed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails closed."""
    made = redactor(patterns=["email"])

    def broken(*_: Any) -> Any:
        raise RuntimeError("no memory")

    monkeypatch.setattr(made, "_matched", broken)
    assert made.json("a@b.org")[0] == json.dumps(FAILED)
    assert made.text("a@b.org")[0] == FAILED
    assert made.data(["a@b.org"])[0] == FAILED
    assert faults() == {"redact a value": 3}


SECRET, MAIL = "hunter2-hunter2", "ann@example.org"
CARD = 4111_1111_1111_1111


def test_no_surface_of_a_span_lets_a_secret_through(spans: Any) -> None:
    """Arguments, results, exceptions, events, span names, the request and the reply, the stop reason."""
    configure(provider=provider.settings.provider, redact=Redaction(keys=["password"], patterns=["email"]))

    @tool(name=f"mail {MAIL}")
    def login(password: str, user: str) -> Any:
        trace.get_current_span().add_event("x")
        return {"echo": user, "password": password}

    @tool
    def fail(password: str) -> None:
        raise ValueError(f"wrong password {password} of {MAIL}")

    @model
    def chat(messages: Any, model: str) -> Any:
        arguments = json.dumps({"password": SECRET})
        calls = [{"id": "c", "function": {"name": "login", "arguments": arguments}}]
        return {"model": MAIL, "content": f"ask {MAIL}", "tool_calls": calls}

    @agent
    def handle(text: str) -> str:
        run = current_run()
        run.state({"password": SECRET, MAIL: 1})
        run.event(f"told {MAIL}", by=MAIL)
        run.stop(MAIL)
        login(SECRET, MAIL)
        chat([{"role": "user", "content": f"I am {MAIL}", "password": SECRET}], model=MAIL)
        fail(SECRET)
        return text

    with session(f"chat of {MAIL}", user=MAIL), pytest.raises(ValueError, match=SECRET):
        handle(f"mail {MAIL}")  # the host's own exception is untouched

    sent = encode_spans(spans.all()).SerializeToString()
    assert SECRET.encode() not in sent
    assert MAIL.encode() not in sent
    noted = json.loads(spans.one("execute_tool fail").attributes["redfirst.redacted"])
    assert {note["attribute"] for note in noted} == {
        "gen_ai.tool.call.arguments",
        "input.value",
        "exception.message",
        "session.id",
        "gen_ai.conversation.id",
        "user.id",
    }
    token = provider.settings.redactor.token(SECRET)  # type: ignore[union-attr]
    assert spans.arguments("execute_tool fail") == {"password": token}


def test_spans_of_others_are_redacted_on_their_way_to_our_exporters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, attributes, events, links, status, resource; what is nobody's secret is as it was."""
    exporter = InMemorySpanExporter()
    monkeypatch.setattr(provider, "_otlp_exporter", lambda endpoint: exporter)
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", f"owner={MAIL},place=here")
    configure(
        "shop",
        endpoint="http://127.0.0.1:9/v1/traces",
        redact=Redaction(keys=["password"], patterns=["email", "card"]),
    )

    with trace.get_tracer("other").start_as_current_span(f"GET /{MAIL}") as span:
        span.set_attributes({"url": f"/{MAIL}", "password": SECRET, "n": 4, "list": ["a", MAIL]})
        span.set_attributes({"cards": [4, CARD], "card": CARD})
        span.add_event("e", {"to": MAIL})
        span.add_link(span.get_span_context(), {"to": MAIL})
        span.set_status(trace.StatusCode.ERROR, f"no {MAIL}")

    @tool
    def look(x: int) -> int:
        trace.get_current_span().set_attribute("late", MAIL)
        return x

    look(1)
    assert force_flush()
    theirs, ours = exporter.get_finished_spans()
    sent = encode_spans([theirs, ours]).SerializeToString()
    assert MAIL.encode() not in sent
    assert SECRET.encode() not in sent
    assert theirs.attributes is not None
    assert theirs.attributes["n"] == 4
    token = provider.settings.redactor.token(str(CARD))  # type: ignore[union-attr]
    assert (theirs.attributes["cards"], theirs.attributes["card"]) == ([4, token], token)
    assert theirs.resource.attributes["place"] == "here"
    assert {note["attribute"] for note in json.loads(str(theirs.attributes["redfirst.redacted"]))} >= {
        "url",
        "password",
    }
    assert ours.attributes is not None
    assert ours.attributes["input.value"] == '{"x":1}'


def _assign(span: Any) -> None:
    span._attributes = {**span.attributes, "late": MAIL}


FOREIGN: dict[str, Any] = {
    "one attribute": lambda span: span.set_attribute("late", MAIL),
    "several": lambda span: span.set_attributes({"late": MAIL}),
    "a list": lambda span: span.set_attribute("late", [MAIL]),
    "a number": lambda span: span.set_attribute("late", CARD),
    "an attribute of ours": lambda span: span.set_attribute("input.value", MAIL),
    "a key": lambda span: span.set_attribute("password", SECRET),
    "all of them": _assign,
    "the name": lambda span: span.update_name(f"mail {MAIL}"),
    "the name, as processors do": lambda span: setattr(span, "_name", f"mail {MAIL}"),
    "an event": lambda span: span.add_event("e", {"to": MAIL}),
    "a link": lambda span: span.add_link(span.get_span_context(), {"to": MAIL}),
}


INSTANCE = "12345678-1234-412a-8abc-0123456789ab"


@pytest.mark.parametrize(
    ("instance", "kept"), [(INSTANCE, True), (str(CARD), False), (f"of {INSTANCE}", False)]
)
def test_the_number_that_the_sdk_draws_for_a_process_is_no_card(
    monkeypatch: pytest.MonkeyPatch, instance: str, kept: bool
) -> None:
    """However its digits fall; anything else that a host says there is looked through."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", f"service.instance.id={instance}")

    (span,) = exported_of(monkeypatch, lambda _: tool(lambda: 1)(), patterns=["card"])

    assert (span.resource.attributes["service.instance.id"] == instance) is kept
    assert isinstance(span, FastSpan) is kept


@pytest.mark.parametrize("write", FOREIGN.values(), ids=FOREIGN)
def test_what_others_write_on_a_span_of_ours_is_redacted_on_its_way(
    write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a span that nobody else wrote on goes as it is, without another look at what we wrote."""
    exporter = InMemorySpanExporter()
    monkeypatch.setattr(provider, "_otlp_exporter", lambda endpoint: exporter)
    configure(
        endpoint="http://127.0.0.1:9/v1/traces",
        redact=Redaction(keys=["password"], patterns=["email", "card"]),
    )

    @tool
    def look(x: int) -> int:
        if x:
            write(trace.get_current_span())
        return x

    look(0)
    look(1)

    assert force_flush()
    untouched, written = exporter.get_finished_spans()
    sent = request([written])
    assert not any(text.encode() in sent for text in (MAIL, SECRET))
    assert not any(str(CARD) in str(value) for value in written.attributes.values())
    assert isinstance(untouched, FastSpan)
    assert not isinstance(written, FastSpan)


def test_a_secret_that_is_quoted_elsewhere_or_known_only_now_does_not_leave_in_a_span_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A result that quotes what was taken out by its key; a span that had begun when the redaction was given."""
    exporter = InMemorySpanExporter()
    monkeypatch.setattr(provider, "_otlp_exporter", lambda endpoint: exporter)
    configure(endpoint="http://127.0.0.1:9/v1/traces")
    tool(lambda x: x, name="early")(x=MAIL)
    configure(redact=Redaction(keys=["password"], patterns=["email"]))

    tool(lambda password: f"{password} is too short", name="quotes")(password=SECRET)

    assert force_flush()
    assert len(exporter.get_finished_spans()) == 2
    sent = request(exporter.get_finished_spans())
    assert not any(text.encode() in sent for text in (MAIL, SECRET))


@pytest.mark.parametrize("secret", ['a "quoted" one', "back\\slash", "two\nlines", "it's late", "éà ü ö"])
@pytest.mark.parametrize(
    "write", [capture.to_json, json.dumps, repr, lambda text: json.dumps(json.dumps(text))]
)
def test_a_known_secret_is_found_as_others_write_it_into_texts(secret: str, write: Any) -> None:
    """With the token of the secret itself, so that equal is equal still."""
    made = redactor(keys=["password"])
    made.json({"password": secret})

    text, by = made.free_text(f"it was {write(secret)}, they said")

    assert made.token(secret) in text
    assert write(secret) not in text
    assert by == ["known secret"]


def exported_of(monkeypatch: pytest.MonkeyPatch, run: Any, *, sampler: Any = None, **rules: Any) -> list[Any]:
    """What an exporter that ``configure`` added is given of the spans of one batch."""
    exporter = InMemorySpanExporter()
    monkeypatch.setattr(provider, "_otlp_exporter", lambda endpoint: exporter)
    made = TracerProvider(sampler=sampler, shutdown_on_exit=False)
    configure(provider=made, endpoint="http://127.0.0.1:9/v1/traces", redact=Redaction(**rules))
    run(made)
    assert force_flush()
    return list(exporter.get_finished_spans())


def test_an_attribute_of_ours_that_a_key_names_is_taken_out_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are names of attributes, too, of whoever writes them; the first span is as well looked at as the last."""

    def run(_: Any) -> None:
        with session("s-1", user="u-77"):
            for _ in range(2):
                tool(lambda x: x, name="look")(x="hello")

    for span in exported_of(monkeypatch, run, keys=["user.id", "Input.Value"]):
        assert str(span.attributes["user.id"]).startswith("<redacted:")
        assert str(span.attributes["input.value"]).startswith("<redacted:")
        assert span.attributes["session.id"] == "s-1"


def test_a_secret_met_in_the_same_batch_does_not_leave_in_a_later_span(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An attribute of others gave it away only on its way out."""

    def run(made: Any) -> None:
        with made.get_tracer("other").start_as_current_span("theirs") as span:
            span.set_attribute("password", SECRET)
        tool(lambda x: x, name="look")(x=f"it is {SECRET}")

    assert SECRET.encode() not in request(exported_of(monkeypatch, run, keys=["password"]))


def test_what_a_sampler_adds_is_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written on the span, and not by us."""

    class Adds(Sampler):
        def should_sample(self, *given: Any, **named: Any) -> SamplingResult:
            before = named["attributes"] if "attributes" in named else given[4]
            return SamplingResult(Decision.RECORD_AND_SAMPLE, {**(before or {}), "for": MAIL})

        def get_description(self) -> str:
            return "adds"

    (span,) = exported_of(monkeypatch, lambda _: tool(lambda: 1)(), sampler=Adds(), patterns=["email"])
    assert str(span.attributes["for"]).startswith("<redacted:")


def test_a_redacted_span_says_what_was_dropped_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redacting it is no reason to look whole."""

    def run(made: Any) -> None:
        with made.get_tracer("other").start_as_current_span(MAIL) as span:
            for number in range(130):
                span.set_attribute(f"k{number}", number)
                span.add_event(f"e{number}")
                span.add_link(span.get_span_context())

    (span,) = exported_of(monkeypatch, run, patterns=["email"])
    assert (span.dropped_attributes, span.dropped_events, span.dropped_links) == (2, 2, 2)


def test_a_tool_can_name_what_of_its_arguments_must_not_leave(spans: Any) -> None:
    """Wherever that key stands from then on: the model's wish for the call has it, too."""

    @tool(redact=["card", "$.owner.name"])
    def pay(card: str, owner: dict[str, str]) -> str:
        return "ok"

    @model
    def chat(messages: Any) -> Any:
        return {
            "content": None,
            "tool_calls": [{"function": {"name": "pay", "arguments": '{"card": "4711"}'}}],
        }

    pay("4711", {"name": "Ann", "city": "Oslo"})
    chat([])

    assert spans.arguments("execute_tool pay")["owner"]["city"] == "Oslo"
    sent = encode_spans(spans.all()).SerializeToString()
    assert b"4711" not in sent
    assert b"Ann" not in sent
