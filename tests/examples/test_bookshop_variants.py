"""Each variant does its one thing wrong where it is said to, and only there."""

from __future__ import annotations

import pytest
from bookshop import variants
from bookshop.agent import APOLOGY, make
from bookshop.habits import hasty
from bookshop.model import DEFECTS
from bookshop.tasks import DEFECTIVE, Conversation, fires, play, task

FIRING = {name: next(seed for seed in range(1000) if fires(name, seed)) for name in DEFECTIVE}
HASTY = next(seed for seed in range(100) if hasty(seed))


def defective(name):
    """A conversation in which the defect shows."""
    return Conversation(task(DEFECTIVE[name]), name, FIRING[name])


@pytest.fixture
def calls(record):
    """The executed calls of a conversation, by name."""
    return lambda one: [call.name for call in record(lambda: play(one)).tool_calls if call.ran]


def test_dropped_guard_cancels_unverified(calls):
    """Nothing stops the hasty model."""
    assert calls(defective("dropped_guard")) == ["get_order", "cancel_order"]


def test_retried_refund_pays_twice(record):
    """The second attempt is a second payment."""
    one = defective("retried_refund")
    shop = one.task.shop()
    one.factory(shop=shop, seed=one.seed)(list(one.task.messages))

    assert shop.snapshot()["refunds"]["A-1008"] == {"amount": "40.00", "payments": 2}


@pytest.mark.parametrize("seed", range(20))
def test_early_cap_throws_the_finished_answer_away(record, seed):
    """Everything asked for is done, the model has answered, and the customer gets an apology."""
    one = Conversation(task("three-wishes"), "early_cap", seed)
    run = record(lambda: play(one))

    assert run.answer == APOLOGY
    assert run.model_calls[-1].finish_reason == "stop"
    assert [call.name for call in run.tool_calls].count("update_order") == 2


def test_skips_verification_changes_unverified(calls):
    """The tool that no guard covers."""
    assert calls(defective("skips_verification")) == ["get_order", "update_order"]


def test_loops_on_lookup_ends_at_the_cap(calls):
    """The same lookup, turn after turn."""
    assert calls(defective("loops_on_lookup")) == ["get_order"] * 11


def test_answers_unchecked_calls_nothing(calls):
    """An answer from nowhere."""
    assert calls(defective("answers_unchecked")) == []


def test_refund_over_limit_ends_with_the_right_sum():
    """Too much is refunded without approval, then taken back: only the way there is wrong."""
    one = defective("refund_over_limit")
    shop = one.task.shop()
    one.factory(shop=shop, seed=one.seed)(list(one.task.messages))
    state = shop.snapshot()

    assert state["customers"]["C-13"]["credit"] == "60.00"
    assert state["refunds"]["A-1005"]["amount"] == "180.00"
    assert state["transfers"]["T-1"]["amount"] == "-120.00"
    assert not state["approvals"]


def test_touches_second_order_moves_it_too(changes):
    """An order nobody mentioned goes to the new address as well."""
    one = defective("touches_second_order")
    shop = one.task.shop()
    before = shop.snapshot()
    one.factory(shop=shop, seed=one.seed)(list(one.task.messages))

    assert changes(before, shop) == {f"orders.{key}.address": "12 Elm Street" for key in ("A-1003", "A-1004")}


def test_acts_on_impossible_cancels_what_has_shipped(calls):
    """Verified, looked up, shipped, and cancelled all the same."""
    assert calls(defective("acts_on_impossible")) == ["get_order", "verify_identity", "cancel_order"]


def test_rare_slip_is_rare(calls):
    """About one seed in twenty."""
    assert 0.03 < sum(fires("rare_slip", seed) for seed in range(2000)) / 2000 < 0.07
    assert calls(defective("rare_slip")) == ["get_order", "update_order"]


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_that_does_not_fire_leaves_a_healthy_run(name, record):
    """On the other seeds the variant is the healthy agent, call for call."""
    quiet = next(seed for seed in range(1000) if not fires(name, seed))
    messages = list(task(DEFECTIVE[name]).messages)
    variant, healthy = getattr(variants, name)(seed=quiet), make(seed=quiet)
    ran = [
        [(call.name, call.arguments, call.result) for call in run.tool_calls]
        for run in (record(lambda: variant(messages)), record(lambda: healthy(messages)))
    ]

    assert ran[0] == ran[1]


@pytest.mark.parametrize("name", ["random_token", "asks_date"])
def test_an_argument_from_outside_differs_from_run_to_run(name, record):
    """The write's reference comes from outside the agent."""
    one = Conversation(task("cancel"), name, HASTY)
    references = {
        call.arguments["reference"]
        for _ in range(2)
        for call in record(lambda: play(one)).tool_calls
        if call.name == "cancel_order"
    }

    assert len(references) == 2


def test_raises_ends_the_run_with_the_agents_own_exception(record):
    """The exception reaches the caller unchanged, and stands on the run."""

    def run():
        with pytest.raises(KeyError, match="loyalty_tier"):
            variants.raises(seed=HASTY)(list(task("cancel").messages))

    assert record(run).termination.reason.value == "error"
    assert play(Conversation(task("cancel"), "raises", HASTY)) == "(KeyError: 'loyalty_tier')"


def test_not_called_answers_without_the_agent():
    """The factory's product never runs the loop."""
    assert variants.not_called()("Where is order A-1001?") == "All done!"


def test_off_tape_looks_up_what_nobody_asked_for(record):
    """An extra call, by code, of another order."""
    run = record(lambda: play(Conversation(task("cancel"), "off_tape", HASTY)))

    extra = [call for call in run.tool_calls if call.arguments == {"order_id": "A-1010"}]
    assert extra
    assert all(call.by_code for call in extra)
