"""Agents whose tool raises, copied into a project folder by the tests: each handles another exception."""

from __future__ import annotations

from redfirst.instrumentation import agent, model, tool


class StockError(Exception):
    """Made of a code and a text."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def make(error, catch, *, otherwise=None, text=str):
    """An agent that tells its model what ``catch`` says, and then writes off what it could not take."""

    @tool(effect="write")
    def take(item: str) -> str:
        raise error

    @tool(effect="write")
    def write_off(item: str) -> str:
        return "written off"

    @model
    def ask(messages) -> dict:
        said = [m["content"] for m in messages if m["role"] == "tool"]
        wanted = ("take", "write_off")[len(said)] if len(said) < 2 else None
        calls = [{"id": f"c{len(said)}", "name": wanted, "arguments": {"item": "A-9"}}] if wanted else []
        return {"content": "" if wanted else "done", "tool_calls": calls}

    @agent(name="shop", step_cap=8)
    def handle(request: str) -> str:
        messages = [{"role": "user", "content": request}]
        while True:
            reply = ask(messages)
            messages.append({"role": "assistant", **reply})
            if not reply["tool_calls"]:
                return reply["content"]
            for call in reply["tool_calls"]:
                try:
                    said = {"take": take, "write_off": write_off}[call["name"]](**call["arguments"])
                except catch as caught:
                    said = f"could not: {text(caught)}"
                except Exception:
                    if otherwise is None:
                        raise
                    return otherwise
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": said})

    return handle


def keyed():
    return make(KeyError("A-9"), KeyError)


def coded():
    return make(StockError(404, "none left"), StockError)


def reading():
    """Reads what only the constructor knows."""
    return make(StockError(404, "none left"), StockError, text=lambda error: f"{error.code} {error}")


def local(**more):
    class Gone(Exception):
        """A class that no module has."""

    return make(Gone("gone"), Gone, **more)


def local_otherwise():
    return local(otherwise="sorry")


def local_read_as_any():
    class Gone(Exception):
        """A class that no module has."""

    return make(Gone("gone"), Exception)


def breaking():
    """Breaks by itself, after an exception that was rebuilt."""
    return make(KeyError("A-9"), KeyError, text=lambda error: error.nothing)


def keyed_or_class():
    """Tells its model the class."""
    return make(KeyError("A-9"), Exception, text=lambda error: type(error).__name__)
