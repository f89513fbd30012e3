"""The other side of ``evaluators.py``: agentevals and deepeval, in a Python of their own, one request a line.

Reads ``{"case": …, "times": …}`` from standard input, answers ``{"cpu_ns": …, "score": …}``. Opens no connection.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any


def _no_network(event: str, _: object) -> None:
    if event in ("socket.connect", "socket.getaddrinfo"):
        raise RuntimeError(f"{event}: this measurement is offline")


def messages(calls: int) -> list[dict[str, Any]]:
    """A request, so many calls each with its answer, and an answer: 2 × calls + 2 messages."""
    made: list[dict[str, Any]] = [{"role": "user", "content": "Where are my orders?"}]
    for number in range(calls):
        arguments = json.dumps({"order_id": f"A-{number}", "fields": ["status", "total"], "limit": number})
        function = {"name": f"tool_{number % 7}", "arguments": arguments}
        call = {"id": f"call-{number}", "type": "function", "function": function}
        made.append({"role": "assistant", "content": "", "tool_calls": [call]})
        made.append(
            {"role": "tool", "tool_call_id": f"call-{number}", "content": f"order A-{number} is shipped"}
        )
    return [*made, {"role": "assistant", "content": "They are on their way."}]


def _agentevals(mode: str, calls: int) -> Callable[[], object]:
    from agentevals.trajectory.match import create_trajectory_match_evaluator

    evaluator = create_trajectory_match_evaluator(trajectory_match_mode=mode)
    outputs, reference = messages(calls), messages(calls)
    return lambda: evaluator(outputs=outputs, reference_outputs=reference)["score"]


def _deepeval(calls: int, *, reused: bool) -> Callable[[], object]:
    from deepeval.metrics import ToolCorrectnessMetric
    from deepeval.test_case import LLMTestCase, ToolCall

    def tools() -> list[Any]:
        return [
            ToolCall(name=f"tool_{number % 7}", input_parameters={"n": number}) for number in range(calls)
        ]

    case = LLMTestCase(input="q", actual_output="a", tools_called=tools(), expected_tools=tools())

    def metric() -> Any:
        return ToolCorrectnessMetric(async_mode=False)

    one = metric()
    return lambda: (one if reused else metric()).measure(case, _show_indicator=False)


CASES: dict[str, Callable[[], Callable[[], object]]] = {
    **{
        f"match {mode} {2 * calls + 2}": lambda mode=mode, calls=calls: _agentevals(mode, calls)
        for mode in ("strict", "unordered", "subset", "superset")
        for calls in (4, 49)
    },
    **{f"tools {calls}": lambda calls=calls: _deepeval(calls, reused=False) for calls in (5, 50)},
    **{f"tools {calls} reused": lambda calls=calls: _deepeval(calls, reused=True) for calls in (5, 50)},
}


def main() -> None:
    """Answer until the input ends."""
    ready: dict[str, Callable[[], object]] = {}
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        asked = json.loads(line)
        name = asked["case"]
        if name not in ready:
            ready[name] = CASES[name]()
            ready[name]()
        begun = time.process_time_ns()
        for _ in range(asked["times"]):
            score = ready[name]()
        used = time.process_time_ns() - begun
        print(json.dumps({"cpu_ns": used / asked["times"], "score": float(score)}), file=answers, flush=True)


if __name__ == "__main__":
    sys.addaudithook(_no_network)
    main()
