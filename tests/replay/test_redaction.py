"""What must not be kept is replaced everywhere, stays equal to itself, and the scenario still proves what it proved."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from redfirst.evaluators import ConfigurationError
from redfirst.evaluators.check import check_from_spec
from redfirst.evaluators.reading import read_trajectory
from redfirst.evaluators.span import Span, SpanEvent, SpanLink
from redfirst.instrumentation import agent, tool
from redfirst.replay.freezing import Draft, FreezeRefused, RecordedRun, freeze
from redfirst.replay.project import Project, load_project
from redfirst.replay.proof import prove
from redfirst.replay.pseudonyms import CannotRedact
from redfirst.replay.recorded_run import redacted
from redfirst.replay.redaction import Redaction
from redfirst.replay.secret_detectors import PERSONAL, SECRETS

from .conftest import CHECKS

Record = Callable[..., RecordedRun]
KEY = Redaction(key=b"k")
NEVER = check_from_spec({"kind": "forbid", "id": "never-pay", "call": "pay"})
CARD, MAIL = "4111 1111 1111 1111", "ann.b@example.org"
SECRET = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0"


def paying(request: str, argument: Callable[[str], object]) -> Callable[[str], str]:
    """An agent that pays with what it makes of the request."""

    @tool(effect="write")
    def pay(to: object, key: str) -> dict[str, object]:
        return {"to": to, "receipt": f"paid by {request}"}

    @agent(name="shop")
    def handle(asked: str) -> str:
        pay(argument(asked), SECRET)
        return f"done for {request}"

    return handle


def frozen(
    recorded: Record, redaction: Redaction, request: str = MAIL, argument: Callable[[str], object] = str
) -> Draft:
    """The draft of a run of that agent."""
    return freeze(recorded(paying(request, argument), request, (NEVER,)), (NEVER,), redaction=redaction)


def texts(draft: Draft) -> str:
    """Everything that would be written, unpacked."""
    bodies = (gzip.decompress(b) if name.endswith(".gz") else b for name, b in draft.files.items())
    return "\n".join(body.decode("utf-8", "replace") for body in bodies)


def test_a_value_is_replaced_by_the_same_pseudonym_wherever_it_stands(recorded: Record) -> None:
    """Request, argument, result inside a longer text: one pseudonym, and the value itself nowhere."""
    draft = frozen(recorded, replace(KEY, personal=("email",)))
    (response,) = draft.scenario.tools["pay"].responses
    made = str(response.when["to"])

    assert re.fullmatch(r"redacted-[0-9a-f]{12}@redacted\.invalid", made)
    assert draft.scenario.request.text == made
    assert response.returns == {"to": made, "receipt": f"paid by {made}"}
    assert MAIL not in texts(draft)
    assert draft.scenario.origin["redacted"] == {"email": 1, "model_api_key": 1}
    assert (draft.scenario.completeness.request, draft.scenario.completeness.tools) == (
        "redacted",
        "redacted",
    )


def test_a_secret_is_found_without_being_asked_for(recorded: Record) -> None:
    """A key of a model's API in an argument is replaced and counted; with ``refuse`` the run is."""
    draft = frozen(recorded, KEY)

    assert SECRET not in texts(draft)
    assert draft.scenario.origin["redacted"] == {"model_api_key": 1}
    with pytest.raises(
        CannotRedact, match=r"a secret \(model_api_key\) stands in span \w+, .*secrets: refuse"
    ) as problem:
        frozen(recorded, replace(KEY, refuse_secrets=True))
    assert problem.value.exit_code == 3


def test_the_same_run_gives_the_same_bytes_and_another_scenario_or_key_other_pseudonyms(
    recorded: Record,
) -> None:
    """Equality is kept inside one scenario and not across."""
    wanted = replace(KEY, personal=("email",))
    run = recorded(paying(MAIL, str), MAIL, (NEVER,))
    one, again = (freeze(run, (NEVER,), redaction=wanted) for _ in range(2))
    other_key = freeze(run, (NEVER,), redaction=replace(wanted, key=b"l"))
    other_run = frozen(recorded, wanted)

    assert one.files == again.files
    requests = {draft.scenario.request.text for draft in (one, other_key, other_run)}
    assert len(requests) == 3


@pytest.mark.parametrize(
    "derive",
    [
        lambda text: text.upper(),
        lambda text: text.partition("@")[0],
        lambda text: text.replace(".", " "),
        lambda text: {"deep": [__import__("hashlib").sha256(text.encode()).hexdigest()]},
    ],
)
def test_an_argument_derived_from_a_replaced_value_is_refused(
    recorded: Record, derive: Callable[[str], object]
) -> None:
    """In replay the code would derive it from the pseudonym, and miss its recording: spelling, part, hash."""
    with pytest.raises(CannotRedact, match="argument to of pay is derived from a value that is replaced"):
        frozen(recorded, replace(KEY, personal=("email",)), argument=derive)


def test_a_longer_text_around_a_value_is_no_derivation(recorded: Record) -> None:
    """It is replaced inside the text, and the code makes the same text of the pseudonym."""
    draft = frozen(recorded, replace(KEY, personal=("email",)), argument=lambda text: f"<{text}>, urgent")

    (response,) = draft.scenario.tools["pay"].responses
    assert response.when["to"] == f"<{draft.scenario.request.text}>, urgent"


@pytest.mark.parametrize(
    ("value", "form"),
    [("2100-4471", r"\d{4}-\d{4}"), ("0044 20 7946", r"0\d{3} \d\d \d{4}"),
     ("1980-02-29", r"19[5-9]\d-\d\d-\d\d"), ("Ann Bee", "redacted-[0-9a-f]{12}")],
)  # fmt: skip
def test_a_pseudonym_keeps_what_code_asks_of_a_value(recorded: Record, value: str, form: str) -> None:
    """Digits stay digits in their places, a date a date."""
    draft = frozen(recorded, replace(KEY, patterns={"customer": re.escape(value)}), request=value)

    assert draft.scenario.request.text != value
    assert re.fullmatch(form, str(draft.scenario.request.text))


def test_a_member_is_replaced_by_its_name_and_a_number_stays_one(recorded: Record) -> None:
    """``keys:`` finds members of any nesting; the number is replaced where it stands in texts, too."""
    draft = frozen(
        recorded,
        replace(KEY, keys=("Account",)),
        request="my account is 7743210",
        argument=lambda _: {"nested": [{"account": 7743210}], "ACCOUNT": {"owner": "Ann Bee"}},
    )
    (response,) = draft.scenario.tools["pay"].responses
    number = response.when["to"]["nested"][0]["account"]

    assert "Ann Bee" not in texts(draft)
    assert isinstance(number, int)
    assert number != 7743210
    assert draft.scenario.request.text == f"my account is {number}"


def test_a_number_with_a_fraction_is_replaced_by_one(recorded: Record) -> None:
    """A place on the map tells where somebody lives."""
    draft = frozen(
        recorded,
        replace(KEY, keys=("latitude",)),
        request="where am I?",
        argument=lambda _: {"latitude": 59.9139, "size": 1e300},
    )
    (response,) = draft.scenario.tools["pay"].responses

    assert re.fullmatch(r"[1-9]\d\.\d{1,4}", str(response.when["to"]["latitude"]))
    assert response.when["to"]["size"] == 1e300
    assert "59.9139" not in texts(draft)


def test_a_value_that_is_the_name_of_a_member_is_replaced(recorded: Record) -> None:
    """State is often kept by customer or address; also in JSON that is indented."""
    kept = {
        "by_mail": {MAIL: {"clientSecret": "correct horse"}},
        "text": '\n {"dbPassword": "battery staple"}',
    }
    draft = frozen(recorded, replace(KEY, personal=("email",)), request="who is it?", argument=lambda _: kept)
    (response,) = draft.scenario.tools["pay"].responses
    (made,) = response.when["to"]["by_mail"]

    assert re.fullmatch(r"redacted-[0-9a-f]{12}@redacted\.invalid", made)
    for value in (MAIL, "correct horse", "battery staple"):
        assert value not in texts(draft)


def test_a_conversation_whose_first_words_are_replaced_is_still_that_run() -> None:
    """Calls of a model alone are one run by their conversation, and its id depends on what was said first."""
    asks = {"role": "user", "parts": [{"type": "text", "content": f"I am {MAIL}"}]}
    wants = {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c", "name": "look", "arguments": {}}],
    }
    hears = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "a lamp"}]}
    ends = {"role": "assistant", "parts": [{"type": "text", "content": "It is a lamp."}]}
    spans = [
        Span(
            trace_id=str(n) * 32,
            span_id=str(n) * 16,
            start_ns=n * 10,
            end_ns=n * 10 + 1,
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.conversation.id": "s-1",
                "gen_ai.input.messages": json.dumps(heard),
                "gen_ai.output.messages": json.dumps([said]),
            },
        )
        for n, (heard, said) in enumerate([([asks], wants), ([asks, wants, hears], ends)], 1)
    ]
    run = read_trajectory(spans)
    incident = RecordedRun(run=run, spans=spans)

    new, _, made = redacted(incident, None, (), replace(KEY, personal=("email",)))

    assert run.trace_ids == ("1" * 32, "2" * 32)
    assert (new.run.run_id, new.run.request) == (run.run_id, f"I am {made.of[MAIL]}")


def test_a_secret_is_found_on_every_surface_of_a_span(recorded: Record) -> None:
    """Span names, status, events and links are written into the trace of the scenario, too."""
    run = recorded(paying(MAIL, str), MAIL, (NEVER,))
    keys = {place: f"sk-{place}-{'a1B2c3D4' * 3}" for place in ("name", "status", "event", "fact", "link")}
    event = SpanEvent(name=f"saw {keys['event']}", time_ns=1, attributes={"fact": keys["fact"]})
    link = SpanLink(trace_id="1" * 32, span_id="2" * 16, attributes={"from": keys["link"]})
    spans = [
        replace(
            span,
            name=f"{span.name} {keys['name']}",
            status_message=keys["status"],
            events=(*span.events, event),
            links=(link,),
        )
        for span in run.spans
    ]

    draft = freeze(replace(run, spans=spans), (NEVER,), redaction=KEY)

    assert draft.scenario.origin["redacted"] == {"model_api_key": len(keys) + 1}
    assert [key for key in (*keys.values(), SECRET) if key in texts(draft)] == []


@pytest.mark.parametrize(
    "written", [json.dumps, str, lambda value: json.dumps(json.dumps(value)), lambda value: value]
)
@pytest.mark.parametrize(
    "held",
    [
        {"password": "hunter2!"},
        {"password": {"value": "hunter2!", "kind": "login"}},
        {"passwords": ["sesame", "hunter2!"]},
        {"api_key": {"live": [{"of": {"shop": "hunter2!"}}]}},
    ],
)
def test_what_stands_anywhere_below_a_secrets_name_is_replaced(
    recorded: Record, held: object, written: Callable[[object], object]
) -> None:
    """In objects and lists, written as JSON, as JSON in JSON or as Python prints it; a short word of letters stays."""
    draft = frozen(recorded, KEY, argument=lambda _: {"login": written(held)})

    assert "hunter2" not in texts(draft)
    assert draft.scenario.origin["redacted"] == {"model_api_key": 1, "secret_key": 1}
    assert ("login" in texts(draft), "sesame" in texts(draft)) == (True, "sesame" in str(held))


def test_a_value_too_short_to_be_told_from_others_is_refused(recorded: Record) -> None:
    """Replacing every "12" would change orders and amounts."""
    with pytest.raises(CannotRedact, match="a value of 2 characters cannot be told from others"):
        frozen(recorded, replace(KEY, patterns={"pin": "12"}), request="pin 12")


def test_redaction_of_what_a_check_fails_on_is_refused(shop: ModuleType, recorded: Record) -> None:
    """A scenario that lost its reason would be green for ever."""
    check = check_from_spec(
        {
            "kind": "forbid",
            "id": "no-open",
            "call": {"tool": "cancel", "where": {"result.status": "cancelled"}},
        }
    )
    run = recorded(shop.bad(), checks=(check,))

    with pytest.raises(FreezeRefused, match="fails no-open by a value that is replaced"):
        freeze(run, (check,), redaction=replace(KEY, patterns={"word": "cancelled"}))


def test_a_redacted_scenario_is_proven_by_execution(
    project: Project, shop: ModuleType, recorded: Record
) -> None:
    """The agent works on pseudonyms and fails as it failed on the values."""
    folder = project.root / "scenarios" / "cancelled"
    draft = freeze(recorded(shop.bad()), CHECKS, redaction=replace(KEY, patterns={"word": "please"}))
    draft.write(folder)

    assert "please" not in texts(draft)
    assert prove(folder, project).proven


POSITIVE = {
    "private_key": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    "aws_access_key": "AKIA" + "IOSFODNN7EXAMPLE",
    "github_token": "ghp_" + "a" * 36,
    "gitlab_token": "glpat-" + "a" * 20,
    "slack_token": "xoxb-" + "1234567890-ab",
    "model_api_key": SECRET,
    "google_api_key": "AIza" + "b" * 35,
    "stripe_key": "sk_live_" + "c" * 24,
    "jwt": "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK",
    "bearer_token": "0123456789abcdef.XY",
    "password_in_url": "hunter22",
    "card": "4111 1111 1111 1111",
    "iban": "DE89 3704 0044 0532 0130 00",
}
AROUND = {"bearer_token": "Authorization: Bearer {}", "password_in_url": "postgres://me:{}@db/x"}


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_each_detector_finds_its_kind_and_nothing_in_plain_text(name: str) -> None:
    """The value alone, without what stands around it. Numbers: Visa's test card; the IBAN of ISO 13616's examples."""
    said = AROUND.get(name, "it is {} here").format(POSITIVE[name])

    assert list(SECRETS[name](said)) == [POSITIVE[name]]
    assert (
        list(
            SECRETS[name](
                "order A-1003 of 2026-11-20, 4111 1111 1111 1112, DE88 3704 0044 0532 0130 00, task-list"
            )
        )
        == []
    )


def test_a_long_word_holds_no_detector_up() -> None:
    """Of a file's bytes in hexadecimal each place is looked at once."""
    word = "ab" * 250_000

    for name, detector in {**SECRETS, **PERSONAL}.items():
        assert list(detector(word)) == [], name


def test_personal_data_is_found_by_form() -> None:
    """Addresses with their domain, numbers with their country."""
    said = "ann.b@example.org or +45 20 12 34 56, order 12345678"

    assert list(PERSONAL["email"](said)) == ["ann.b@example.org"]
    assert list(PERSONAL["phone"](said)) == ["+45 20 12 34 56"]


def test_the_key_is_made_once_and_kept_for_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same project gives the same pseudonyms tomorrow; the variable goes before the file."""
    monkeypatch.setenv("REDFIRST_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("REDFIRST_REDACTION_KEY", raising=False)
    first, second = (load_project(tmp_path).redaction().key for _ in range(2))

    assert first == second
    assert len(first) == 64
    assert (tmp_path / "home" / "redaction.key").stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("REDFIRST_REDACTION_KEY", "mine")
    assert load_project(tmp_path).redaction().key == b"mine"
    monkeypatch.delenv("REDFIRST_REDACTION_KEY")
    (tmp_path / "home" / "redaction.key").write_bytes(b"")
    with pytest.raises(ConfigurationError, match="key of the pseudonyms is empty"):
        load_project(tmp_path).redaction()


@pytest.mark.parametrize(
    ("said", "wrong"),
    [("{patterns: {a: '('}}", "a is no regular expression"), ("{patterns: {a: 'x*'}}", "a matches the empty text"),
     ("{personal: [name]}", "redaction.personal.0")],
)  # fmt: skip
def test_settings_that_cannot_be_meant_are_refused(tmp_path: Path, said: str, wrong: str) -> None:
    """With the line they stand in."""
    (tmp_path / "redfirst.yaml").write_text(f"redaction: {said}\n")

    with pytest.raises(ConfigurationError, match=wrong):
        load_project(tmp_path)


CLERK = """
from redfirst.instrumentation import agent, model, tool

OFFERED = [{"name": "close", "description": "Closes an account, as that of C-1234.", "parameters": {}}]


def make():
    @tool(effect="write")
    def close(customer: str) -> str:
        return f"closed {customer}"

    @model
    def ask(messages, tools):
        asked = messages[-1]
        wanted = {"id": "c0", "name": "close", "arguments": {"customer": asked["content"]}}
        return {"content": "closed", "tool_calls": [wanted] if asked["role"] == "user" else []}

    @agent(name="shop")
    def handle(request: str) -> str:
        messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": request}]
        while True:
            reply = ask(messages, OFFERED)
            if not reply["tool_calls"]:
                return reply["content"]
            messages.append({"role": "tool", "content": close(**reply["tool_calls"][0]["arguments"])})

    return handle
"""


@pytest.mark.parametrize(
    ("prompt", "noted", "proven"),
    [
        ('"Accounts are written like C-1234."', False, True),
        ('f"You serve {request}."', True, True),
        ('"Accounts are written like C-7777."', True, False),
    ],
)
def test_what_the_code_says_itself_is_found_though_a_value_in_it_is_replaced(
    project: Project, recorded: Record, prompt: str, noted: bool, proven: bool
) -> None:
    """The tools offered hold an example of what is replaced, and so does the prompt: the code goes on to say both. Where
    the value is the customer's too, nobody can tell where the prompt has it from, and the draft says that."""
    text = CLERK.replace("PROMPT", prompt)
    (project.root / "clerk.py").write_text(text, encoding="utf-8")
    there: dict[str, Callable[[], Callable[[str], str]]] = {}
    exec(text, there)
    checks = (*CHECKS, check_from_spec({"kind": "forbid", "id": "never-close", "call": "close"}))
    run = recorded(there["make"](), "C-7777", checks)
    draft = freeze(run, checks, redaction=replace(KEY, patterns={"customer": r"C-\d{4}"}))
    draft.write(project.root / "scenarios" / "closed")

    assert not {"C-7777", "C-1234"}.intersection(re.findall(r"C-\d{4}", texts(draft)))
    assert any("the system prompt holds a value" in note for note in draft.notes) == noted
    report = prove(project.root / "scenarios" / "closed", project, agent="clerk:make")
    assert report.proven == proven, report.because
