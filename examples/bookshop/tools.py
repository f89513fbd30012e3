"""The seven tools of the support agent, over one shop.

A tool's docstring is the description the model reads; what a tool raises, the model reads too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from redfirst.instrumentation import tool

from .orders import Shop

Tools = Mapping[str, Callable[..., dict[str, Any]]]

WRITES = frozenset({"update_order", "cancel_order", "request_approval", "refund", "transfer"})
"""The tools that change the shop."""


def _object(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


_ORDER = {"type": "string", "description": "Order id, such as A-1001."}
_CUSTOMER = {"type": "string", "description": "Customer id, such as C-11."}
_AMOUNT = {"type": "number", "description": "Amount in EUR."}

PARAMETERS: dict[str, dict[str, Any]] = {
    "verify_identity": _object(
        ["customer_id", "postcode"],
        customer_id=_CUSTOMER,
        postcode={"type": "string", "description": "Postcode."},
    ),
    "get_order": _object(["order_id"], order_id=_ORDER),
    "update_order": _object(
        ["order_id"], order_id=_ORDER, quantity={"type": "integer", "minimum": 1}, address={"type": "string"}
    ),
    "cancel_order": _object(["order_id"], order_id=_ORDER),
    "request_approval": _object(["order_id", "amount"], order_id=_ORDER, amount=_AMOUNT),
    "refund": _object(["order_id", "amount"], order_id=_ORDER, amount=_AMOUNT),
    "transfer": _object(
        ["customer_id", "amount", "reason"], customer_id=_CUSTOMER, amount=_AMOUNT, reason={"type": "string"}
    ),
}
"""JSON Schema of what a model may pass to each tool."""


def build(shop: Shop) -> Tools:
    """The tools by name, working on this shop."""

    @tool(effect="read", schema=PARAMETERS["verify_identity"])
    def verify_identity(customer_id: str, postcode: str) -> dict[str, Any]:
        """Verify the identity of a customer by the postcode they tell you."""
        return {"verified": shop.verify(customer_id, postcode), "customer_id": customer_id}

    @tool(effect="read", schema=PARAMETERS["get_order"])
    def get_order(order_id: str) -> dict[str, Any]:
        """Look up an order: its customer, book, copies, address, status, total and what was refunded."""
        order = shop.order(order_id)
        return {
            "order_id": order_id,
            "customer_id": order.customer_id,
            "title": order.title,
            "quantity": order.quantity,
            "address": order.address,
            "status": order.status,
            "total": str(order.total),
            "refunded": str(shop.refunded(order_id)),
            "other_open_orders": shop.open_orders_beside(order_id),
        }

    @tool(effect="write", schema=PARAMETERS["update_order"])
    def update_order(
        order_id: str, quantity: int | None = None, address: str | None = None
    ) -> dict[str, Any]:
        """Change the number of copies or the address of an order that is still processing."""
        order = shop.update(order_id, quantity, address)
        return {
            "order_id": order_id,
            "quantity": order.quantity,
            "address": order.address,
            "total": str(order.total),
        }

    @tool(effect="write", schema=PARAMETERS["cancel_order"])
    def cancel_order(order_id: str, reference: str | None = None) -> dict[str, Any]:
        """Cancel an order."""
        return {"order_id": order_id, "status": shop.cancel(order_id).status, "reference": reference}

    @tool(effect="write", schema=PARAMETERS["request_approval"])
    def request_approval(order_id: str, amount: float) -> dict[str, Any]:
        """Ask a supervisor for approval of a refund; needed before a large one."""
        return {"approved": shop.approve(order_id, _money(amount)), "order_id": order_id, "amount": amount}

    @tool(effect="write", schema=PARAMETERS["refund"])
    def refund(order_id: str, amount: float, idempotency_key: str | None = None) -> dict[str, Any]:
        """Refund money that a customer paid for an order."""
        refunded = shop.refund(order_id, _money(amount), idempotency_key)
        return {"order_id": order_id, "refunded": str(refunded)}

    @tool(effect="write", schema=PARAMETERS["transfer"])
    def transfer(customer_id: str, amount: float, reason: str) -> dict[str, Any]:
        """Transfer money to a customer as a goodwill credit, such as 5 EUR for a late delivery."""
        return {"transfer_id": shop.transfer(customer_id, _money(amount), reason), "amount": amount}

    everything = (verify_identity, get_order, update_order, cancel_order, request_approval, refund, transfer)
    return {function.__name__: function for function in everything}


def schemas(tools: Tools) -> list[dict[str, Any]]:
    """The tools as an OpenAI ``tools`` list."""
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": inspect.getdoc(function) or "",
                "parameters": PARAMETERS[name],
            },
        }
        for name, function in tools.items()
    ]


def _money(amount: float) -> Decimal:
    return Decimal(str(amount)).quantize(Decimal("0.01"))
