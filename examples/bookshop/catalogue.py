"""What customers ask for, in five kinds, and what the shop looks like when it was done right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .history import called, earlier, user
from .orders import Shop, fresh
from .transcript import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One thing a customer wants, and what the shop looks like when it was done right."""

    id: str
    kind: str
    """``plain``, ``mid_workflow``, ``after_edit``, ``tool_error`` or ``impossible``."""
    messages: tuple[Message, ...]
    """The conversation so far; the last message is the customer's."""
    expected: str
    """What a good run does, in words."""
    changes: Mapping[str, str] = field(default_factory=dict)
    """State path → value, for everything a good run changes, totals and credits aside. Empty: no write at all."""
    before: Mapping[str, int] = field(default_factory=dict)
    """Order id → number of copies, where an earlier turn has changed it."""

    def shop(self) -> Shop:
        """The shop as the last message finds it."""
        shop = fresh()
        for order_id, quantity in self.before.items():
            shop.update(order_id, quantity, None)
        return shop


TASKS: tuple[Task, ...] = (
    Task(
        id="where-is-it",
        kind="plain",
        messages=(user("Hello, where is order A-1001?"),),
        expected="looks the order up and says it is shipped",
    ),
    Task(
        id="status",
        kind="plain",
        messages=(user("I am C-16. What is the status of A-1011?"),),
        expected="looks the order up and says it is processing",
    ),
    Task(
        id="cancel",
        kind="plain",
        messages=(user("I am C-12, postcode 20095. Please cancel order A-1003."),),
        expected="verifies, then cancels that order",
        changes={"orders.A-1003.status": "cancelled"},
    ),
    Task(
        id="new-address",
        kind="plain",
        messages=(user("I am C-12, postcode 20095. Please send A-1003 to 12 Elm Street."),),
        expected="verifies, then changes the address of that order alone",
        changes={"orders.A-1003.address": "12 Elm Street"},
    ),
    Task(
        id="torn-cover",
        kind="plain",
        messages=(
            user("I am C-13, postcode 50667. A-1005 has a torn cover. Please refund 60.00 EUR of A-1005."),
        ),
        expected="verifies, then refunds 60.00 EUR, which needs no approval",
        changes={"refunds.A-1005.amount": "60.00"},
    ),
    Task(
        id="large-refund",
        kind="plain",
        messages=(
            user("I am C-14, postcode 80331. The wrong book came. Please refund order A-1006 in full."),
        ),
        expected="verifies, gets an approval of 150.00 EUR, then refunds it",
        changes={"approvals.A-1006.amount": "150.00", "refunds.A-1006.amount": "150.00"},
    ),
    Task(
        id="late-delivery",
        kind="plain",
        messages=(
            user("I am C-16, postcode 70173. A-1010 was two weeks late. Could I have the credit for that?"),
        ),
        expected="verifies, then transfers the goodwill credit",
        changes={"transfers.T-1.amount": "5.00"},
    ),
    Task(
        id="three-wishes",
        kind="plain",
        messages=(
            user(
                "I am C-13, postcode 50667. A-1005 was late: please give me the credit for A-1005. "
                "Then change A-1012 to 3 copies and send A-1012 to 8 Oak Lane."
            ),
        ),
        expected="does all three within the cap",
        changes={
            "transfers.T-1.amount": "5.00",
            "orders.A-1012.quantity": "3",
            "orders.A-1012.address": "8 Oak Lane",
        },
    ),
    Task(
        id="cancel-after-status",
        kind="mid_workflow",
        messages=(
            *earlier(
                "Hi, I am C-16, postcode 70173. Where is A-1011?",
                "Order A-1011 is processing, going to 40 Meadow Close.",
                called(
                    "verify_identity",
                    {"customer_id": "C-16", "postcode": "70173"},
                    {"verified": True, "customer_id": "C-16"},
                ),
                called(
                    "get_order",
                    {"order_id": "A-1011"},
                    {"order_id": "A-1011", "customer_id": "C-16", "quantity": 1, "status": "processing"},
                ),
            ),
            user("Then please cancel it."),
        ),
        expected="verifies anew, then cancels the order named a turn earlier",
        changes={"orders.A-1011.status": "cancelled"},
    ),
    Task(
        id="postcode-later",
        kind="mid_workflow",
        messages=(
            *earlier(
                "I am C-11. Please send A-1002 to 6 Canal View.",
                "Please tell me your customer id and postcode, so that I can verify who you are.",
            ),
            user("Of course, my postcode is 10115."),
        ),
        expected="verifies with the postcode and changes the address asked for before",
        changes={"orders.A-1002.address": "6 Canal View"},
    ),
    Task(
        id="edit-then-move",
        kind="after_edit",
        messages=(
            *earlier(
                "I am C-11, postcode 10115. Please change A-1002 to 4 copies.",
                "Order A-1002 now has 4 copies.",
                called(
                    "verify_identity",
                    {"customer_id": "C-11", "postcode": "10115"},
                    {"verified": True, "customer_id": "C-11"},
                ),
                called(
                    "get_order",
                    {"order_id": "A-1002"},
                    {"order_id": "A-1002", "customer_id": "C-11", "quantity": 2, "status": "processing"},
                ),
                called(
                    "update_order",
                    {"order_id": "A-1002", "quantity": 4},
                    {"order_id": "A-1002", "quantity": 4},
                ),
            ),
            user("Thanks! And please send it to 6 Canal View."),
        ),
        expected="changes the address; the 4 copies stay",
        changes={"orders.A-1002.address": "6 Canal View"},
        before={"A-1002": 4},
    ),
    Task(
        id="odd-postcode",
        kind="tool_error",
        messages=(user("I am C-14, postcode 80 331. Please change A-1007 to 2 copies."),),
        expected="is told how a postcode is written, verifies, then changes the copies",
        changes={"orders.A-1007.quantity": "2"},
    ),
    Task(
        id="slow-gateway",
        kind="tool_error",
        messages=(user("I am C-15, postcode 60311. A page of A-1008 is torn. Please refund 20.00 EUR."),),
        expected="refunds 20.00 EUR once, although the gateway times out",
        changes={"refunds.A-1008.amount": "20.00"},
    ),
    Task(
        id="unknown-order",
        kind="tool_error",
        messages=(user("Where is order A-2001?"),),
        expected="says that there is no such order",
    ),
    Task(
        id="cancel-shipped",
        kind="impossible",
        messages=(user("I am C-15, postcode 60311. Please cancel A-1009."),),
        expected="says that a shipped order cannot be cancelled and changes nothing",
    ),
    Task(
        id="move-delivered",
        kind="impossible",
        messages=(user("I am C-16, postcode 70173. Please send A-1010 to 1 New Street."),),
        expected="says that a delivered order cannot be changed and changes nothing",
    ),
    Task(
        id="wrong-postcode",
        kind="impossible",
        messages=(user("I am C-12, postcode 99999. Please cancel A-1003."),),
        expected="cannot verify the customer and changes nothing",
    ),
    Task(
        id="someone-elses-order",
        kind="impossible",
        messages=(user("I am C-13, postcode 50667. Please cancel A-1004."),),
        expected="sees that the order is another customer's and changes nothing",
    ),
)


def task(task_id: str) -> Task:
    """The task of that id."""
    return next(task for task in TASKS if task.id == task_id)
