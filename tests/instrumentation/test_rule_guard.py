"""Rules that are asked before a call: what is refused, what is let through, and what the trace says of it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from redfirst.evaluators import CallStatus, ConfigurationError, RedfirstError
from redfirst.evaluators.otlp import decode
from redfirst.evaluators.reading import read_runs
from redfirst.instrumentation import CallRefused, Guard, agent, configure, current_run, faults, model, tool
from redfirst.instrumentation import memory as memories
from redfirst.instrumentation.otlp_file import OtlpFileExporter
from redfirst.instrumentation.rule_guard import Guard as RuleGuard

RULES = """
schema: redfirst.rules/1
rules:
  - id: verified
    kind: require_before
    call: cancel
    needs: {tool: verify, where: {result.ok: true}}
    same: [args.customer]
  - {id: once, kind: max_calls, call: cancel, max: 2}
  - {id: small, kind: forbid, call: {tool: refund, where: {args.amount: {gt: 100}}}}
  - {id: consent, kind: approval, call: wire, same: [args.id]}
  - {id: open-shop, kind: forbid, call: {tool: buy, where: {state.open: false}}}
  - {id: closed-ticket, kind: require_after, call: open_ticket, needs: close_ticket}
  - {id: ends, kind: termination, ends: completed}
"""


@pytest.fixture
def rules(tmp_path: Path) -> Iterator[Path]:
    """The file; runs are forgotten again afterwards."""
    path = tmp_path / "rules.yaml"
    path.write_text(RULES, "utf-8")
    yield path
    memories.Switch.on = False


@pytest.fixture
def made() -> list[str]:
    """The calls that were really made."""
    return []


def shop(guard: Any, made: list[str]) -> dict[str, Callable[..., Any]]:
    """The tools, guarded and not."""

    @tool(effect="read")
    def verify(customer: str, ok: bool = True) -> dict[str, bool]:
        return {"ok": ok}

    @tool(effect="write", guard=guard)
    def cancel(customer: str, note: int = 0) -> str:
        made.append(f"cancel {customer}")
        return "cancelled"

    @tool(effect="write", guard=guard)
    def refund(amount: object = None) -> str:
        made.append("refund")
        return "refunded"

    @tool(effect="write", guard=guard)
    def wire(id: int) -> str:  # noqa: A002 - the tool's own word
        made.append("wire")
        return "wired"

    @tool(effect="write", guard=guard)
    def buy() -> str:
        made.append("buy")
        return "bought"

    @tool(guard=guard)
    def open_ticket() -> str:
        made.append("open_ticket")
        return "opened"

    return {name: one for name, one in locals().items() if name not in ("guard", "made")}


def in_a_run(work: Callable[[], Any]) -> Any:
    """Do it as an agent."""
    return agent(name="support")(lambda request: work())("please")


def test_a_call_that_completes_a_violation_is_not_made(spans: Any, rules: Path, made: list[str]) -> None:
    """It raises the rule and the reason; the span says that it was denied, and by which rule."""
    tools = shop(rules, made)

    with pytest.raises(CallRefused) as caught:
        in_a_run(lambda: (tools["verify"]("C-9"), tools["cancel"]("C-1")))

    assert made == []
    assert isinstance(caught.value, RedfirstError)
    assert (caught.value.tool, caught.value.rule) == ("cancel", "verified")
    assert str(caught.value) == (
        "cancel was refused by rule verified: cancel (customer C-1) ran without an earlier verify of the same"
        " customer C-1; verify was called for C-9"
    )
    attributes = spans.attributes("execute_tool cancel")
    assert attributes["redfirst.tool.refused_by"] == "verified"
    assert "without an earlier verify" in attributes["redfirst.tool.refused_because"]
    assert attributes["error.type"] == "CallRefused"
    assert not faults()


def test_a_call_that_is_in_order_is_made(spans: Any, rules: Path, made: list[str]) -> None:
    """The same rules pass what the run so far licenses, and count on."""
    tools = shop(rules, made)

    def work() -> None:
        tools["verify"]("C-1")
        assert tools["cancel"]("C-1") == "cancelled"
        assert tools["cancel"]("C-1", 1) == "cancelled"
        with pytest.raises(CallRefused, match="once"):
            tools["cancel"]("C-1", 2)
        with pytest.raises(CallRefused, match="once"):
            tools["cancel"]("C-1", 3)

    in_a_run(work)

    assert made == ["cancel C-1", "cancel C-1"]


def test_a_need_that_failed_meets_nothing(spans: Any, rules: Path, made: list[str]) -> None:
    """What the verification answered counts, not that it was called."""
    tools = shop(rules, made)

    with pytest.raises(CallRefused):
        in_a_run(lambda: (tools["verify"]("C-1", ok=False), tools["cancel"]("C-1")))


def test_a_refusal_may_be_an_answer(spans: Any, rules: Path, made: list[str]) -> None:
    """With ``refusal="answer"`` the model is told, and the loop goes on."""
    tools = shop(Guard(rules, refusal="answer"), made)

    assert in_a_run(lambda: tools["refund"](101)) == {
        "error": "refund was refused by rule small: refund (amount 101) was called where args.amount is more than 100,"
        " which is forbidden"
    }
    assert made == []


def test_what_cannot_be_told_is_let_through_unless_told_otherwise(
    spans: Any, rules: Path, made: list[str]
) -> None:
    """A refund without an amount: allowed by default, refused where the guard says so."""
    assert in_a_run(lambda: shop(rules, made)["refund"]()) == "refunded"
    assert in_a_run(lambda: shop(Guard(rules, on_unknown="refuse"), made)["refund"](5)) == "refunded"
    with pytest.raises(CallRefused, match="cannot be told"):
        in_a_run(lambda: shop(Guard(rules, on_unknown="refuse"), made)["refund"]("much"))

    assert made == ["refund", "refund"]


def test_what_only_the_end_of_a_run_can_tell_is_not_asked(spans: Any, rules: Path, made: list[str]) -> None:
    """A ticket that is not yet closed is no violation, and neither is a run that has not ended."""
    assert in_a_run(shop(rules, made)["open_ticket"]) == "opened"
    assert in_a_run(shop(Guard(rules, on_unknown="refuse"), made)["open_ticket"]) == "opened"
    with pytest.raises(CallRefused, match="open-shop"):
        in_a_run(shop(Guard(rules, on_unknown="refuse"), made)["buy"])


def test_events_and_states_are_heard(spans: Any, rules: Path, made: list[str]) -> None:
    """What the agent reported about its run counts at once."""
    tools = shop(rules, made)

    def work() -> None:
        with pytest.raises(CallRefused, match="consent"):
            tools["wire"](1)
        current_run().event("approval", id=1)
        assert tools["wire"](1) == "wired"
        current_run().state({"open": False})
        with pytest.raises(CallRefused, match="open-shop"):
            tools["buy"]()
        current_run().state({"open": True})
        assert tools["buy"]() == "bought"

    in_a_run(work)


def test_calls_of_one_model_turn_are_simultaneous(spans: Any, rules: Path, made: list[str]) -> None:
    """The model asked for both without seeing the verification; code that calls both is in order."""
    tools = shop(rules, made)

    @model
    def chat(messages: list[Any]) -> dict[str, Any]:
        wanted = [
            {"id": str(n), "function": {"name": name, "arguments": "{}"}}
            for n, name in enumerate(messages[0]["ask"])
        ]
        return {"role": "assistant", "content": None, "tool_calls": wanted}

    def work(*asked: str) -> None:
        chat([{"role": "user", "content": "cancel", "ask": asked}])
        tools["verify"]("C-1")
        tools["cancel"]("C-1")

    with pytest.raises(CallRefused, match="at the same time"):
        in_a_run(lambda: work("verify", "cancel"))
    in_a_run(lambda: work("cancel"))

    assert made == ["cancel C-1"]


def test_an_earlier_conversation_is_heard(spans: Any, rules: Path, made: list[str]) -> None:
    """The messages that the first model call is given hold what was verified before."""
    tools = shop(rules, made)
    earlier = [
        {
            "role": "assistant",
            "tool_calls": [{"id": "1", "function": {"name": "verify", "arguments": '{"customer": "C-1"}'}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": '{"ok": true}'},
        {"role": "user", "content": "cancel it"},
    ]

    @model
    def chat(messages: list[Any]) -> dict[str, Any]:
        return {"role": "assistant", "content": "well"}

    in_a_run(lambda: (chat(earlier), tools["cancel"]("C-1")))
    with pytest.raises(CallRefused):
        in_a_run(lambda: (chat(earlier), tools["cancel"]("C-2")))
    broken = [
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "verify", "arguments": "{"}}]},
        *earlier[1:],
    ]
    in_a_run(lambda: (chat(broken), tools["cancel"]("C-3")))

    assert made == ["cancel C-1", "cancel C-3"]


def test_a_failed_call_is_seen_as_failed(spans: Any, rules: Path, made: list[str]) -> None:
    """By its exception, or by what it answered."""
    tools = shop(rules, made)

    @tool(name="verify")
    def broken(customer: str) -> None:
        raise ValueError("no")

    @tool(name="verify")
    def wrong(customer: str) -> dict[str, str]:
        return {"error": "no such customer"}

    def work() -> None:
        for attempt in (broken, wrong):
            with contextlib.suppress(ValueError):
                attempt("C-1")
            with pytest.raises(CallRefused, match="tool_error"):
                tools["cancel"]("C-1")

    in_a_run(work)


def test_outside_of_a_run_only_the_call_itself_counts(spans: Any, rules: Path, made: list[str]) -> None:
    """What came before is not known there: no need is missing for certain, and a limit on an argument holds."""
    tools = shop(rules, made)
    strict = shop(Guard(rules, on_unknown="refuse"), made)

    assert tools["cancel"]("C-1") == "cancelled"
    with pytest.raises(CallRefused, match="small"):
        tools["refund"](101)
    with pytest.raises(CallRefused, match="the trace is incomplete"):
        strict["cancel"]("C-1")


def test_async_tools_and_inner_agents_are_guarded(spans: Any, rules: Path, made: list[str]) -> None:
    """An inner agent belongs to the run of the one that called it."""

    @tool
    async def verify(customer: str) -> dict[str, bool]:
        return {"ok": True}

    @tool(effect="write", guard=rules)
    async def cancel(customer: str) -> str:
        made.append(customer)
        return "cancelled"

    @agent
    async def inner(customer: str) -> str:
        return await cancel(customer)

    @agent
    async def outer(customer: str, check: bool) -> str:
        if check:
            await verify(customer)
        return await inner(customer)

    assert asyncio.run(outer("C-1", True)) == "cancelled"
    with pytest.raises(CallRefused):
        asyncio.run(outer("C-1", False))
    assert made == ["C-1"]


def test_a_call_beside_this_one_counts_as_tried(spans: Any, rules: Path, made: list[str]) -> None:
    """Of three cancellations at once, in threads of one context each, the third is one too many."""
    inside, leave = threading.Semaphore(0), threading.Event()

    @tool(effect="write", guard=rules)
    def cancel(customer: str, n: int) -> None:
        made.append(customer)
        inside.release()
        leave.wait(10)

    @tool
    def verify(customer: str) -> dict[str, bool]:
        return {"ok": True}

    def work() -> None:
        verify("C-1")
        threads = [
            threading.Thread(target=contextvars.copy_context().run, args=(cancel, "C-1", n)) for n in range(2)
        ]
        for thread in threads:
            thread.start()
        assert inside.acquire(timeout=10)
        assert inside.acquire(timeout=10)
        try:
            with pytest.raises(CallRefused, match="once"):
                cancel("C-1", 3)
        finally:
            leave.set()
            for thread in threads:
                thread.join(10)

    in_a_run(work)
    assert made == ["C-1", "C-1"]


def test_a_run_that_is_not_sampled_is_guarded(rules: Path, made: list[str]) -> None:
    """The guard does not look at spans."""
    configure(provider=TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False))
    tools = shop(rules, made)

    with pytest.raises(CallRefused):
        in_a_run(lambda: tools["cancel"]("C-1"))
    in_a_run(lambda: (tools["verify"]("C-1"), tools["cancel"]("C-1")))
    assert made == ["cancel C-1"]


def test_a_fault_of_the_guard_is_counted(
    spans: Any, rules: Path, made: list[str], faults_swallowed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lets the call through, unless the guard refuses what it does not know."""

    def broken(*_: object) -> None:
        raise OSError("broken")

    monkeypatch.setattr(RuleGuard, "_judged", broken)
    assert in_a_run(lambda: shop(rules, made)["refund"](500)) == "refunded"
    assert faults() == {"ask the guard": 1}
    with pytest.raises(CallRefused, match="the guard failed"):
        in_a_run(lambda: shop(Guard(rules, on_unknown="refuse"), made)["refund"](500))


def test_the_trace_says_denied(rules: Path, made: list[str], tmp_path: Path) -> None:
    """A scored run has the refused call as denied, so that no rule takes it for one that was made."""
    path = tmp_path / "spans.jsonl"
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(OtlpFileExporter(path)))
    configure(provider=provider)
    tools = shop(Guard(rules, refusal="answer"), made)
    in_a_run(lambda: tools["refund"](101))
    provider.shutdown()

    found = decode(path.read_bytes())
    (run,) = read_runs(found.spans, found.logs)

    (call,) = run.tool_calls
    assert call.status is CallStatus.DENIED
    assert call.error is not None
    assert call.error.startswith("refused by rule small: refund (amount 101)")
    assert not call.ran


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"on_unknown": "maybe"}, "on_unknown is allow or refuse"),
        ({"refusal": "shrug"}, "refusal is raise or answer"),
    ],
)
def test_a_wrong_option_is_refused(rules: Path, options: dict[str, Any], what: str) -> None:
    """Where the tool is decorated, before anything runs."""
    with pytest.raises(ConfigurationError, match=what):
        Guard(rules, **options)


def test_wrong_rules_are_refused_where_the_tool_is_decorated(tmp_path: Path) -> None:
    """A file that is not there, or says what no rule says."""
    with pytest.raises(ConfigurationError, match="cannot be read"):
        tool(guard=tmp_path / "none.yaml")(lambda: 1)
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("schema: redfirst.rules/1\nrules: [{id: a, kind: forbit, call: x}]\n", "utf-8")
    with pytest.raises(ConfigurationError, match=r"wrong\.yaml:2: unknown kind forbit"):
        tool(guard=wrong)


def test_nothing_is_remembered_without_a_guard(spans: Any) -> None:
    """A process without one pays a look at a flag."""
    memories.Switch.on = False
    seen: list[object] = []

    in_a_run(lambda: seen.append(memories.current()))

    assert seen == [None]
