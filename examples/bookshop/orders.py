"""The shop's database, in memory: customers, orders, refunds, transfers, approvals.

It keeps books and knows nothing of policy: a shipped order can be cancelled here, and a refund of any
size within the order's total is booked. What an agent *may* do stands in ``policy.md``.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from typing import Any

APPROVAL_CEILING = Decimal(500)
"""Most that a supervisor approves for one order."""
MOST_COPIES = 9
SLOW_AT_THE_GATEWAY = "A-1008"
"""The order whose first refund is booked by the payment gateway and then not confirmed in time."""


class ShopError(Exception):
    """The shop cannot do what was asked; the text says why and what would work."""


class UnknownOrder(ShopError):
    """There is no such order."""


class UnknownCustomer(ShopError):
    """There is no such customer."""


class BadValue(ShopError):
    """A value is not one the shop can store."""


class OrderClosed(ShopError):
    """The order can no longer be changed."""


class RefundTooLarge(ShopError):
    """The refunds of an order would exceed what was paid for it."""


class GatewayTimeout(TimeoutError):
    """The payment gateway did not answer in time; whether it booked the payment is not known."""


@dataclass(frozen=True, slots=True)
class Customer:
    """Someone who buys books. ``credit`` is what the shop has paid them back so far."""

    name: str
    postcode: str
    credit: Decimal = Decimal("0.00")


@dataclass(frozen=True, slots=True)
class Order:
    """Copies of one book on their way to one address."""

    customer_id: str
    title: str
    price: Decimal
    quantity: int
    address: str
    status: str
    """``processing``, ``shipped``, ``delivered`` or ``cancelled``."""

    @property
    def total(self) -> Decimal:
        """What the customer paid."""
        return self.price * self.quantity


@dataclass(slots=True)
class Shop:
    """Every row by its id. Rows are frozen: a change replaces one."""

    customers: dict[str, Customer]
    orders: dict[str, Order]
    refunds: dict[str, tuple[Decimal, ...]] = field(default_factory=dict)
    """Payments back, by order."""
    transfers: dict[str, dict[str, str]] = field(default_factory=dict)
    approvals: dict[str, Decimal] = field(default_factory=dict)
    """Largest refund approved, by order."""
    keys: set[str] = field(default_factory=set)
    """Idempotency keys the gateway has seen."""
    slow: set[str] = field(default_factory=lambda: {SLOW_AT_THE_GATEWAY})

    def customer(self, customer_id: str) -> Customer:
        """The customer of that id."""
        if customer_id not in self.customers:
            raise UnknownCustomer(f"there is no customer {customer_id!r}; ids look like C-11")
        return self.customers[customer_id]

    def order(self, order_id: str) -> Order:
        """The order of that id."""
        if order_id not in self.orders:
            raise UnknownOrder(f"there is no order {order_id!r}; ask the customer for its id, such as A-1001")
        return self.orders[order_id]

    def verify(self, customer_id: str, postcode: str) -> bool:
        """Whether this is the customer's postcode."""
        if not re.fullmatch(r"\d{5}", postcode):
            raise BadValue(f"a postcode is five digits without spaces, such as 10115; got {postcode!r}")
        return self.customer(customer_id).postcode == postcode

    def open_orders_beside(self, order_id: str) -> list[str]:
        """The same customer's other orders that have not left the warehouse."""
        owner = self.order(order_id).customer_id
        return [
            key
            for key, row in self.orders.items()
            if key != order_id and row.customer_id == owner and row.status == "processing"
        ]

    def update(self, order_id: str, quantity: int | None, address: str | None) -> Order:
        """Change copies or address of an order that has not left the warehouse."""
        order = self.order(order_id)
        if order.status != "processing":
            raise OrderClosed(f"order {order_id} is {order.status} and can no longer be changed")
        if quantity is not None:
            if not 1 <= quantity <= MOST_COPIES:
                raise BadValue(f"quantity must be 1 to {MOST_COPIES}; to send none, cancel the order")
            order = replace(order, quantity=quantity)
        if address is not None:
            order = replace(order, address=address)
        self.orders[order_id] = order
        return order

    def cancel(self, order_id: str) -> Order:
        """Mark an order cancelled, whatever has become of the parcel."""
        order = self.order(order_id)
        if order.status == "cancelled":
            raise OrderClosed(f"order {order_id} is cancelled already")
        self.orders[order_id] = replace(order, status="cancelled")
        return self.orders[order_id]

    def approve(self, order_id: str, amount: Decimal) -> bool:
        """Put a refund before a supervisor, who looks at the order's total and the house ceiling."""
        approved = amount <= min(self.order(order_id).total, APPROVAL_CEILING)
        if approved:
            self.approvals[order_id] = amount
        return approved

    def refunded(self, order_id: str) -> Decimal:
        """What has been paid back for an order."""
        return sum(self.refunds.get(order_id, ()), Decimal("0.00"))

    def refund(self, order_id: str, amount: Decimal, key: str | None = None) -> Decimal:
        """Pay money back for an order; the same key never pays twice. Returns all paid back so far."""
        order = self.order(order_id)
        if key is not None and key in self.keys:
            return self.refunded(order_id)
        if amount <= 0:
            raise BadValue("a refund is more than 0.00")
        if self.refunded(order_id) + amount > order.total:
            left = order.total - self.refunded(order_id)
            raise RefundTooLarge(f"order {order_id} cost {order.total}; at most {left} can still be refunded")
        self.refunds[order_id] = (*self.refunds.get(order_id, ()), amount)
        self._credit(order.customer_id, amount)
        if key is not None:
            self.keys.add(key)
        if order_id in self.slow:
            self.slow.discard(order_id)
            raise GatewayTimeout(
                f"the payment gateway did not confirm the refund of order {order_id} in time"
            )
        return self.refunded(order_id)

    def transfer(self, customer_id: str, amount: Decimal, reason: str) -> str:
        """Move money to a customer, or from one when the amount is negative."""
        self.customer(customer_id)
        transfer_id = f"T-{len(self.transfers) + 1}"
        self.transfers[transfer_id] = {"customer_id": customer_id, "amount": str(amount), "reason": reason}
        self._credit(customer_id, amount)
        return transfer_id

    def snapshot(self) -> dict[str, Any]:
        """Everything that rules may look at, as plain JSON."""
        return {
            "customers": {
                k: {"name": row.name, "credit": str(row.credit)} for k, row in self.customers.items()
            },
            "orders": {
                k: asdict(row) | {"price": str(row.price), "total": str(row.total)}
                for k, row in self.orders.items()
            },
            "refunds": {
                k: {"amount": str(self.refunded(k)), "payments": len(rows)}
                for k, rows in self.refunds.items()
            },
            "transfers": dict(self.transfers),
            "approvals": {k: {"amount": str(amount)} for k, amount in self.approvals.items()},
        }

    def _credit(self, customer_id: str, amount: Decimal) -> None:
        row = self.customers[customer_id]
        self.customers[customer_id] = replace(row, credit=row.credit + amount)


def fresh() -> Shop:
    """The shop as every conversation finds it. All people and books are made up."""
    people = [
        ("C-11", "Mira Holt", "10115"),
        ("C-12", "Jonas Vale", "20095"),
        ("C-13", "Priya Lark", "50667"),
        ("C-14", "Theo Marsh", "80331"),
        ("C-15", "Ines Corbet", "60311"),
        ("C-16", "Oskar Flint", "70173"),
    ]
    books = [
        ("A-1001", "C-11", "The Long Tide", "18.00", 1, "3 Mill Lane", "shipped"),
        ("A-1002", "C-11", "Salt and Paper", "15.00", 2, "3 Mill Lane", "processing"),
        ("A-1003", "C-12", "A Field Guide to Moss", "24.50", 1, "9 Harbour Row", "processing"),
        ("A-1004", "C-12", "Night Trains", "16.00", 1, "9 Harbour Row", "processing"),
        ("A-1005", "C-13", "Collected Maps", "180.00", 1, "27 Orchard Way", "delivered"),
        ("A-1006", "C-14", "Atlas of Rivers", "150.00", 1, "5 Bell Yard", "delivered"),
        ("A-1007", "C-14", "Small Weather", "12.00", 3, "5 Bell Yard", "processing"),
        ("A-1008", "C-15", "The Clockmaker", "42.00", 1, "14 Quay Street", "delivered"),
        ("A-1009", "C-15", "Winter Bread", "28.00", 1, "14 Quay Street", "shipped"),
        ("A-1010", "C-16", "Stone Soup", "12.00", 1, "40 Meadow Close", "delivered"),
        ("A-1011", "C-16", "Blue Harbour", "22.00", 1, "40 Meadow Close", "processing"),
        ("A-1012", "C-13", "Harbour Lights", "20.00", 2, "27 Orchard Way", "processing"),
    ]
    return Shop(
        customers={key: Customer(name, postcode) for key, name, postcode in people},
        orders={
            key: Order(owner, title, Decimal(price), quantity, address, status)
            for key, owner, title, price, quantity, address, status in books
        },
    )
