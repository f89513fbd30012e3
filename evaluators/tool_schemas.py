"""What a tool says of its arguments: the schema a model was offered, or the one on the tool's own span."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from redfirst.evaluators.trajectory import RequestedCall, ToolCall, Trajectory

_BODIES = ("function", "toolSpec")
_SCHEMAS = (
    "parameters",
    "input_schema",
    "inputSchema",
    "parameters_json_schema",
    "parametersJsonSchema",
    "args_schema",
)
"""Where providers and frameworks put the schema: OpenAI, Anthropic and MCP, Vercel and Bedrock, Google, LangChain."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Arguments of a call as they stood before the tool, and the schema they were to fit, where one is known."""

    arguments: Mapping[str, object] | None
    schema: Mapping[str, object] | None
    unparsed: bool = False
    """Whether the model wrote something as arguments that is no JSON object."""


def offered(definition: Mapping[str, object]) -> tuple[str, Mapping[str, object]] | None:
    """The name and the schema in a tool's definition; none where it gives no schema, as tools of a provider do."""
    body = definition
    for key in _BODIES:
        inner = body.get(key)
        body = inner if isinstance(inner, Mapping) else body
    name = body.get("name")
    for key in _SCHEMAS:
        schema = body.get(key)
        if isinstance(schema, Mapping):
            inner = schema.get("json", schema.get("jsonSchema"))
            schema = inner if isinstance(inner, Mapping) else schema
            return (name, schema) if isinstance(name, str) else None
    return None


class Schemas:
    """The schemas of one run, turn by turn."""

    def __init__(self, run: Trajectory) -> None:
        self._run = run
        self._by_turn: dict[int, Mapping[str, Mapping[str, object]]] = {}
        self._by_tools: dict[int, Mapping[str, Mapping[str, object]]] = {}
        """By the identity of what was offered, since most turns are offered the same."""

    def asked(self, call: ToolCall) -> Asked:
        """What the model wrote, against what it was offered in that turn; else the span, against its own schema.

        The two are not mixed: a span may record arguments that the agent's code added.
        """
        request = self._request(call)
        if request is None or call.turn is None:
            return Asked(call.arguments, call.schema)
        schema = self._turn(call.turn).get(call.name)
        if request.arguments is None and request.raw_arguments and call.arguments is None:
            return Asked(None, schema or call.schema, unparsed=True)
        if schema is None:
            return Asked(call.arguments, call.schema)
        return Asked(request.arguments, schema)

    def definitions(self) -> Iterator[Mapping[str, object]]:
        """Every definition that a model of the run was offered."""
        for call in self._run.model_calls:
            yield from call.tools or ()

    def _turn(self, turn: int) -> Mapping[str, Mapping[str, object]]:
        if turn not in self._by_turn:
            tools = self._run.model_calls[turn].tools or ()
            if id(tools) not in self._by_tools:
                self._by_tools[id(tools)] = dict(one for one in map(offered, tools) if one is not None)
            self._by_turn[turn] = self._by_tools[id(tools)]
        return self._by_turn[turn]

    def _request(self, call: ToolCall) -> RequestedCall | None:
        """The request in the model's message that this call is."""
        if call.turn is None or call.turn >= len(self._run.model_calls):
            return None
        output = self._run.model_calls[call.turn].output
        named = [one for one in output.tool_calls if one.name == call.name] if output else []
        if call.call_id is not None:
            named = [one for one in named if one.call_id == call.call_id]
        return named[0] if len(named) == 1 else None
