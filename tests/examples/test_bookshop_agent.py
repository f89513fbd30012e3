"""The healthy agent: right on every task, whatever the seed; and the care its code takes."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest
from bookshop.agent import APOLOGY, STEP_CAP, make
from bookshop.habits import hasty
from bookshop.model import ScriptedModel
from bookshop.orders import GatewayTimeout, fresh
from bookshop.tasks import HEALTHY, TASKS, conversations, play, task

SEEDS = range(20)
HASTY = next(seed for seed in SEEDS if hasty(seed))
CALM = next(seed for seed in SEEDS if not hasty(seed))


@pytest.mark.parametrize("one", TASKS, ids=lambda one: one.id)
def test_every_task_leaves_the_shop_as_it_should(one, changes):
    """On twenty seeds a healthy agent changes what the task asks for, nothing else, and says so."""
    for seed in SEEDS:
        shop = one.shop()
        before = shop.snapshot()

        answer = make(shop=shop, seed=seed)(list(one.messages))

        assert changes(before, shop) == one.changes, f"seed {seed}"
        assert answer != APOLOGY
        assert ("changed nothing" in answer) == (one.kind == "impossible")


def test_the_five_kinds_of_task_are_there():
    """Plain, mid-workflow, after an edit, with a tool error, impossible."""
    kinds = Counter(one.kind for one in TASKS)

    assert set(kinds) == {"plain", "mid_workflow", "after_edit", "tool_error", "impossible"}
    assert kinds["plain"] >= 3


def test_a_text_is_a_conversation_of_one_message():
    """The agent takes a customer's text as well as messages."""
    agent = make(seed=CALM)

    assert agent("Where is order A-1001?") == agent([{"role": "user", "content": "Where is order A-1001?"}])


def test_a_seed_fixes_the_run():
    """Two runs with one seed answer alike, over a whole day."""
    assert [play(one) for one in conversations(3)] == [play(one) for one in conversations(3)]


def test_the_environment_may_give_the_seed(monkeypatch, record):
    """``BOOKSHOP_SEED`` decides where the call does not."""
    messages = list(task("cancel").messages)
    names = {}
    for seed in (HASTY, CALM):
        monkeypatch.setenv("BOOKSHOP_SEED", str(seed))
        names[seed] = [call.name for call in record(lambda: make()(messages)).tool_calls]

    assert names[HASTY] != names[CALM]


def test_the_guard_stops_a_hasty_model_and_the_model_recovers(record):
    """A cancellation before verification is refused; the refusal says what to do; it is done."""
    run = record(lambda: make(seed=HASTY)(list(task("cancel").messages)))

    executed = [call.name for call in run.tool_calls if call.ran]
    assert executed == ["get_order", "verify_identity", "cancel_order"]
    assert [call.name for call in run.tool_calls if not call.ran] == ["cancel_order"]


def test_an_earlier_requests_verification_does_not_count(record):
    """Somebody else may be typing now: a new request is verified anew."""
    run = record(lambda: make(seed=HASTY)(list(task("cancel-after-status").messages)))

    executed = [call.name for call in run.tool_calls if call.ran]
    assert executed.index("verify_identity") < executed.index("cancel_order")


def test_a_refund_that_timed_out_is_looked_up_before_it_is_sent_again(record):
    """The gateway paid before it fell silent, so nothing is sent twice."""
    run = record(lambda: make(seed=CALM)(list(task("slow-gateway").messages)))

    names = [call.name for call in run.tool_calls]
    assert names[-2:] == ["refund", "get_order"]
    assert names.count("refund") == 1


def test_a_refund_that_was_not_booked_is_sent_again_with_the_same_key(record):
    """Silence before the booking: the second attempt carries the first one's key."""
    shop = fresh()
    agent = make(shop=_Silent(shop), seed=CALM)
    run = record(lambda: agent(list(task("torn-cover").messages)))

    keys = [call.arguments["idempotency_key"] for call in run.tool_calls if call.name == "refund"]
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert str(shop.refunded("A-1005")) == "60.00"


class _Silent:
    """A shop whose gateway does not even receive the first refund."""

    def __init__(self, shop):
        self._shop = shop
        self._silent = True

    def __getattr__(self, name):
        return getattr(self._shop, name)

    def refund(self, *given):
        if self._silent:
            self._silent = False
            raise GatewayTimeout("the payment gateway did not answer")
        return self._shop.refund(*given)


def test_the_cap_ends_only_a_run_that_wants_more(record):
    """A model that never stops is cut at the cap, and the run says so."""
    loops = partial(ScriptedModel, defect="loops_on_lookup")
    firing = next(c.seed for c in conversations() if c.variant == "loops_on_lookup")
    run = record(lambda: make(model=loops, seed=firing)("Where is order A-1001?"))

    assert (run.termination.reason.value, run.termination.cap) == ("step_cap", STEP_CAP)
    assert len(run.model_calls) == STEP_CAP


def test_the_state_is_reported_at_the_start_after_writes_and_at_the_end(record):
    """Two snapshots for a lookup; one more for each write."""
    looked = record(lambda: make(seed=CALM)("Where is order A-1001?"))
    wrote = record(lambda: make(seed=CALM)(list(task("cancel").messages)))

    assert len(looked.states) == 2
    assert [one.state["orders"]["A-1003"]["status"] for one in wrote.states] == [
        "processing",
        *["cancelled"] * 2,
    ]


def test_a_day_holds_every_task_and_every_defect():
    """Some forty conversations, mostly healthy, with a healthy one for every task."""
    day = conversations()

    assert 40 <= len(day) <= 50
    assert {one.task.id for one in day if one.variant == HEALTHY} == {one.id for one in TASKS}
    assert len(day) == len({(one.task.id, one.variant, one.seed) for one in day})
