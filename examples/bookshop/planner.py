"""How the scripted model decides its next step, from the conversation, the tools offered, and its habits.

It has no memory of its own. A tool it cannot make out from the description is a tool it does not have;
a rule the prompt does not state is a rule it does not follow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .habits import Habits, draw, hasty
from .toolbox import Say, Step, Toolbox, Want
from .transcript import Message, this_request, verified_customers
from .wishes import Wish, caller, wishes

GOODWILL = 5.0
_WRITES = {
    "cancel": "cancel",
    "refund": "refund",
    "quantity": "update",
    "address": "update",
    "credit": "transfer",
}
_Order = Mapping[str, Any]


class Planner:
    """One decision: all it knows is in the messages and tools of this request."""

    def __init__(
        self, messages: Sequence[Message], offered: Sequence[Mapping[str, Any]], seed: int, habits: Habits
    ) -> None:
        self.seed = seed
        self.habits = habits if habits.show(seed) else Habits()
        self.box = Toolbox(messages, offered, seed)
        self.caller = caller(messages)
        self.wishes = wishes(messages)
        system = " ".join(str(message["content"]) for message in messages if message["role"] == "system")
        self.policy = " ".join(system.split())
        every_time = "in every request" in self.policy
        self.verified = verified_customers(this_request(messages) if every_time else messages)

    def steps(self) -> list[Step]:
        """The next calls, all of one turn, or the one answer. Only lookups are asked for side by side."""
        wanted: list[Step] = []
        answers: list[str] = []
        for wish in self.wishes:
            step = self._step(wish)
            if isinstance(step, Say):
                answers.append(step.text)
                continue
            if step.tool != self.box.tool("lookup") or draw(self.seed, "one by one") < 0.5:
                return wanted or [step]
            if step not in wanted:
                wanted.append(step)
        return wanted or [Say(" ".join(answers) or "How can I help? Please tell me your order id.")]

    def _step(self, wish: Wish) -> Step:
        """What comes next for one wish: look up, answer or decline, verify, write, report."""
        if wish.kind == "status" and self.habits.answers_unchecked:
            return Say(f"Order {wish.order_id} is on its way and should be with you soon.")
        order = self.box.order(wish.order_id)
        if self.box.tool("lookup") is not None and (order is None or self.habits.loops_on_lookup):
            return self.box.attempt("lookup", {"order_id": wish.order_id})
        order = order or {}
        if wish.kind == "status":
            where = f"is {order['status']}, going to {order['address']}" if order else "should be on its way"
            return Say(f"Order {wish.order_id} {where}.")
        obstacle = _obstacle(wish, order)
        if obstacle and not self.habits.acts_on_impossible:
            return Say(f"Order {wish.order_id} {obstacle}. I changed nothing.")
        return self._verify(wish, order) or self._write(wish, order)

    def _verify(self, wish: Wish, order: _Order) -> Step | None:
        """Verify who is asking, unless that is done, is unknown to the policy, or is skipped."""
        owner = order.get("customer_id", self.caller.customer_id)
        told = "verif" in self.box.errors
        hasty_now = not told and wish.kind in ("cancel", "refund") and hasty(self.seed)
        careless = wish.kind in ("quantity", "address") and self.habits.skips_verification
        unable = self.box.tool("verify") is None or "verify" not in self.policy.lower()
        if owner in self.verified or hasty_now or careless or unable:
            return None
        if self.caller.customer_id is None or self.caller.postcode is None:
            return Say("Please tell me your customer id and postcode, so that I can verify who you are.")
        refuted = any(call.result.get("verified") is False for call in self.box.calls)
        if refuted or self.caller.customer_id != owner:
            return Say(f"I could not verify you as the customer of order {wish.order_id}. I changed nothing.")
        postcode = self.caller.postcode
        if "without spaces" in self.box.errors:
            postcode = postcode.replace(" ", "")
        return self.box.attempt("verify", {"customer_id": self.caller.customer_id, "postcode": postcode})

    def _write(self, wish: Wish, order: _Order) -> Step:
        amount = self._amount(wish, order)
        purpose, arguments = _WRITES[wish.kind], _arguments(wish, order, amount)
        if wish.kind == "refund" and (step := self._approval(wish, amount)) is not None:
            return step
        granted = self.box.granted(purpose, arguments)
        if granted is None:
            return self.box.attempt(purpose, arguments)
        return self._aftermath(wish, order, amount) or Say(_report(wish, granted.result))

    def _approval(self, wish: Wish, amount: float) -> Step | None:
        """Ask for approval where the policy states a limit and the amount is above it."""
        limit = re.search(r"above (\d+) EUR needs", self.policy)
        small = limit is None or amount <= float(limit.group(1))
        if small or self.box.tool("approve") is None or self.habits.refunds_over_limit:
            return None
        asked = {"order_id": wish.order_id, "amount": amount}
        answer = self.box.granted("approve", asked)
        if answer is None:
            return self.box.attempt("approve", asked)
        if answer.result.get("approved") is True:
            return None
        return Say(f"A supervisor did not approve the refund of order {wish.order_id}. I changed nothing.")

    def _aftermath(self, wish: Wish, order: _Order, amount: float) -> Want | None:
        """What bad habits add once a wish is granted."""
        step: Step | None = None
        if (
            self.habits.refunds_over_limit
            and wish.kind == "refund"
            and wish.value
            and amount > float(wish.value)
        ):
            surplus = amount - float(wish.value)
            reason = f"correction of the refund of {wish.order_id}"
            back = {"customer_id": order["customer_id"], "amount": -surplus, "reason": reason}
            step = None if self.box.granted("transfer", back) else self.box.attempt("transfer", back)
        others = order.get("other_open_orders")
        if self.habits.touches_second_order and wish.kind == "address" and others:
            second = {"order_id": others[0], "address": wish.value}
            step = None if self.box.granted("update", second) else self.box.attempt("update", second)
            if self.box.order(others[0]) is None:
                step = self.box.attempt("lookup", {"order_id": others[0]})
        return step if isinstance(step, Want) else None

    def _amount(self, wish: Wish, order: _Order) -> float:
        """What to refund: what was asked for, or all that was paid."""
        if wish.kind == "refund" and wish.value and not self.habits.refunds_over_limit:
            return float(wish.value)
        return float(order.get("total", 0))


def _obstacle(wish: Wish, order: _Order) -> str | None:
    """Why a wish cannot be granted, from what the order was like before anything was changed."""
    status, refunded = order.get("status", "processing"), order.get("refunded", "0.00")
    if wish.kind == "cancel" and status != "processing":
        return f"is {status}, so it cannot be cancelled"
    if wish.kind in ("quantity", "address") and status != "processing":
        return f"is {status}, so it cannot be changed"
    if wish.kind == "refund" and refunded != "0.00":
        return f"was refunded {refunded} EUR already, so it cannot be refunded again"
    return None


def _arguments(wish: Wish, order: _Order, amount: float) -> dict[str, Any]:
    match wish.kind:
        case "credit":
            reason = f"late delivery of {wish.order_id}"
            return {"customer_id": order.get("customer_id"), "amount": GOODWILL, "reason": reason}
        case "refund":
            return {"order_id": wish.order_id, "amount": amount}
        case "quantity":
            return {"order_id": wish.order_id, "quantity": int(wish.value)}
        case "address":
            return {"order_id": wish.order_id, "address": wish.value}
        case _:
            return {"order_id": wish.order_id}


def _report(wish: Wish, result: Mapping[str, Any]) -> str:
    match wish.kind:
        case "credit":
            return f"I sent you a credit of {result.get('amount')} EUR for order {wish.order_id}."
        case "refund":
            return f"I refunded {result.get('refunded')} EUR for order {wish.order_id}."
        case "quantity":
            return f"Order {wish.order_id} now has {result.get('quantity')} copies."
        case "address":
            return f"Order {wish.order_id} now goes to {result.get('address')}."
        case _:
            return f"Order {wish.order_id} is cancelled."
