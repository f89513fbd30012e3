"""A server of the Model Context Protocol with the tools of a support desk; what it is asked to cancel it writes down."""

from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("desk")


@server.tool()
def cancel_order(order_id: str, reason: str) -> dict:
    """Cancel an order."""
    with Path(__file__).with_name("cancelled.txt").open("a") as book:
        book.write(f"{order_id}\n")
    return {"order_id": order_id, "confirmation": f"C-{order_id}", "reason": reason}


if __name__ == "__main__":
    server.run("stdio")
