"""The scenarios of the lab, the agents that serve them, and the three breaks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from redfirst.examples.bookshop import agent as shop_agent
from redfirst.examples.bookshop import tools as shop_tools
from redfirst.examples.bookshop.agent import Handler, SupportLoop
from redfirst.examples.bookshop.catalogue import TASKS, Task, task
from redfirst.examples.bookshop.history import user
from redfirst.examples.bookshop.model import ScriptedModel
from redfirst.examples.bookshop.orders import fresh
from redfirst.examples.bookshop.tasks import fires
from redfirst.examples.bookshop.transcript import ERROR, Message, past_calls, this_request

SEEDS = range(5)
SIDE_EFFECT = "touches_second_order"
DESCRIBED = "verify_identity"
"""The tool whose description is dropped."""
HALF_CAP = shop_agent.STEP_CAP // 2

MORE = (
    Task(
        id="fewer-copies",
        kind="plain",
        messages=(user("I am C-14, postcode 80331. Please change A-1007 to 1 copy."),),
        expected="verifies, then changes the copies",
        changes={"orders.A-1007.quantity": "1"},
    ),
    Task(
        id="when-arrives",
        kind="plain",
        messages=(user("When will A-1012 arrive?"),),
        expected="looks the order up and says it is processing",
    ),
)

ANSWERS: Mapping[str, str] = {
    "where-is-it": r"A-1001 is shipped",
    "status": r"A-1011 is processing",
    "cancel": r"A-1003 is cancelled",
    "new-address": r"A-1003 now goes to 12 Elm Street",
    "torn-cover": r"refunded 60\.00 EUR",
    "large-refund": r"refunded 150\.00 EUR",
    "late-delivery": r"credit of 5",
    "three-wishes": r"credit of 5.*3 copies.*8 Oak Lane",
    "cancel-after-status": r"A-1011 is cancelled",
    "postcode-later": r"6 Canal View",
    "edit-then-move": r"6 Canal View",
    "odd-postcode": r"A-1007 now has 2 copies",
    "slow-gateway": r"refunded 20\.00 EUR",
    "unknown-order": r"no order",
    "cancel-shipped": r"shipped, so it cannot be cancelled",
    "move-delivered": r"delivered, so it cannot be changed",
    "wrong-postcode": r"could not verify",
    "someone-elses-order": r"could not verify",
    "fewer-copies": r"A-1007 now has 1 copies",
    "when-arrives": r"A-1012 is processing",
}
"""What a right answer says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A request, and the model that serves it."""

    name: str
    task: Task
    model: Callable[[int], Any] = ScriptedModel
    seeds: Sequence[int] = tuple(SEEDS)


class Detour:
    """Reads every order of the shop, one a turn, before the one it was asked about: right, allowed, and dear."""

    def __init__(self, seed: int) -> None:
        self._model = ScriptedModel(seed)

    def __call__(self, messages: list[Message], tools: list[dict[str, Any]], model: str) -> dict[str, Any]:
        """The next order that was not looked at yet; then whatever the healthy model does."""
        completion = self._model(messages, tools, model)
        seen = {call.arguments.get("order_id") for call in past_calls(this_request(messages))}
        rest = [order_id for order_id in fresh().snapshot()["orders"] if order_id not in seen]
        if len(rest) <= 1:
            return completion
        call = {"name": "get_order", "arguments": json.dumps({"order_id": rest[0]})}
        wanted = [{"id": f"call_{len(messages)}", "type": "function", "function": call}]
        thought = (
            f"I was asked about one order, but others may have been mixed up with it. Before I answer I had better see "
            f"{rest[0]} as well, its customer, its address and its status, and compare it with what I know so far."
        )
        message = {"role": "assistant", "content": thought, "tool_calls": wanted}
        return {**completion, "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}


DEAR = Scenario(name="dear-route", task=task("status"), model=Detour)
SIDE = Scenario(
    name="side-effect",
    task=task("new-address"),
    model=partial(ScriptedModel, defect=SIDE_EFFECT),
    seeds=tuple(seed for seed in range(100) if fires(SIDE_EFFECT, seed))[: len(SEEDS)],
)
SCENARIOS = (*(Scenario(name=one.id, task=one) for one in (*TASKS, *MORE)), DEAR, SIDE)
"""Twenty requests, one that is served right by a dear route, one with an unwanted side effect."""


class _BareErrors(SupportLoop):
    """Error texts are cut to the one word."""

    def answer(self, call: dict[str, Any], messages: Sequence[Message]) -> str:
        text = super().answer(call, messages)
        return ERROR if text.startswith(ERROR) else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The agent with at most one thing broken."""

    name: str
    loop: type[SupportLoop] = SupportLoop
    without_description: str | None = None
    step_cap: int = shop_agent.STEP_CAP

    def agent(self, scenario: Scenario, shop: Any, seed: int) -> Handler:
        """The agent of one run."""
        offered = shop_tools.schemas(shop_tools.build(shop))
        for item in offered:
            if item["function"]["name"] == self.without_description:
                item["function"]["description"] = ""
        return shop_agent.make(
            shop=shop,
            model=scenario.model,
            seed=seed,
            loop=self.loop,
            offered=offered,
            step_cap=self.step_cap,
        )


HEALTHY = Condition(name="healthy")
BREAKS = (
    Condition(name="no description", without_description=DESCRIBED),
    Condition(name="half the cap", step_cap=HALF_CAP),
    Condition(name='"Error" alone', loop=_BareErrors),
)
