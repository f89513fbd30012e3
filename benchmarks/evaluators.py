"""What judging costs beside agentevals and deepeval: ``python benchmarks/evaluators.py``.

The same trajectories, all of them right, through each library's own entry; CPU time of the process, rounds of one and the
other in turn, the median of the ratios of each round. agentevals compares two lists of messages: redfirst is
measured from the same list (``messages``: its calls are read, then judged) and from a run that is already read
(``run``). deepeval's metric is built for each case, as its ``evaluate`` does, and once (``reused``). Peers are
installed, at the versions below, into an environment of their own under ``--peers``; they run offline.
Then the default checks over 1,000 runs of 20 spans. ``--json FILE`` writes the figures.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from evaluators_peers import messages
from reading import SPANS, body

from redfirst.evaluators import CallStatus, ToolCall, Trajectory, Verdict
from redfirst.evaluators.check import Check, check_from_spec, default_checks, judge
from redfirst.evaluators.otlp import decode_traces
from redfirst.evaluators.reading import read
from redfirst.evaluators.testing import a_run, call

PEERS = ("agentevals==0.0.9", "deepeval==4.3.1")
OFFLINE = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "ERROR_REPORTING": "0",
    "LANGSMITH_TRACING": "false",
    "OPENAI_API_KEY": "unused: no model is asked",
}
GOALS = {"match strict 10": 60, "match strict 100": 40, "tools 5": 30, "tools 50": 30}
RUNS = 1_000
GOAL_SECONDS = 0.3
LEAST_NS = 20_000_000
"""Of CPU time in one round of one side."""

Verdicts = Callable[[], tuple[Verdict, ...]]


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison: CPU microseconds of a verdict on either side."""

    case: str
    ours: float
    theirs: float
    ratio: float
    goal: int | None


class Peer:
    """agentevals and deepeval in a process of their own."""

    def __init__(self, home: Path) -> None:
        python = home / "bin" / "python"
        if not python.exists():
            print(f"installing {', '.join(PEERS)} into {home}", file=sys.stderr)
            venv.create(home, with_pip=True)
            install = [python, "-m", "pip", "install", "--quiet", *PEERS]
            subprocess.run(install, check=True)  # noqa: S603 - our own command
        self._folder = tempfile.TemporaryDirectory()
        script = Path(__file__).with_name("evaluators_peers.py").resolve()
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            [python, script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self._folder.name,
            env={**os.environ, **OFFLINE, "HOME": self._folder.name},
        )

    def cpu_ns(self, case: str, times: int) -> float:
        """Of one verdict, over so many of them."""
        asked, answered = cast("IO[str]", self._process.stdin), cast("IO[str]", self._process.stdout)
        print(json.dumps({"case": case, "times": times}), file=asked, flush=True)
        answer = json.loads(answered.readline())
        if answer["score"] != 1.0:
            raise SystemExit(f"{case}: the peer finds fault with a run that is right")
        return float(answer["cpu_ns"])

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
        self._folder.cleanup()


def from_messages(conversation: list[dict[str, Any]]) -> Trajectory:
    """The run that a list of messages tells of."""
    results = {one["tool_call_id"]: one["content"] for one in conversation if one["role"] == "tool"}
    calls: list[ToolCall] = []
    for turn, message in enumerate(conversation):
        for asked in message.get("tool_calls", ()):
            calls.append(
                ToolCall(
                    index=len(calls),
                    name=asked["function"]["name"],
                    arguments=json.loads(asked["function"]["arguments"]),
                    result=results[asked["id"]],
                    status=CallStatus.OK,
                    turn=turn,
                    call_id=asked["id"],
                )
            )
    return Trajectory(run_id="run", trace_ids=(), root_span_id="", tool_calls=tuple(calls))


def reference(calls: int, mode: str) -> Check:
    """The check that the run made exactly these calls, with exactly these arguments."""
    steps = [
        {
            "tool": one.name,
            "args": {name: {"eq": value} for name, value in (one.arguments or {}).items()},
            "only": True,
        }
        for one in from_messages(messages(calls)).tool_calls
    ]
    return check_from_spec({"kind": "match", "id": "match", "reference": {"match": mode, "steps": steps}})


def cases() -> Mapping[str, tuple[str, Verdicts]]:
    """Name → the peer's case, and our verdict."""
    found: dict[str, tuple[str, Verdicts]] = {}
    for mode in ("strict", "unordered", "subset", "superset"):
        for calls in (4, 49):
            name, check, told = f"match {mode} {2 * calls + 2}", reference(calls, mode), messages(calls)
            run = from_messages(told)
            found[f"{name}, messages"] = (
                name,
                lambda told=told, check=check: judge(from_messages(told), [check]),
            )
            found[f"{name}, run"] = name, lambda run=run, check=check: judge(run, [check])
    for calls in (5, 50):
        steps = [f"tool_{number % 7}" for number in range(calls)]
        spec = {"kind": "recall", "id": "recall", "reference": {"steps": steps}}
        check = check_from_spec(spec)
        run = a_run(*(call(f"tool_{number % 7}", n=number) for number in range(calls)))
        verdict: Verdicts = lambda run=run, check=check: judge(run, [check])  # noqa: E731 - as those above
        found[f"tools {calls}"] = f"tools {calls}", verdict
        found[f"tools {calls}, reused"] = f"tools {calls} reused", verdict
    return found


def cpu_ns(verdict: Callable[[], object], times: int) -> float:
    """Of one of ours, over so many of them."""
    begun = time.process_time_ns()
    for _ in range(times):
        verdict()
    return (time.process_time_ns() - begun) / times


def enough(one: float) -> int:
    """How many verdicts make up a round."""
    return max(1, round(LEAST_NS / one))


def compared(peer: Peer, rounds: int) -> list[Row]:
    """Every case, one side after the other."""
    rows = []
    for name, (theirs, verdict) in cases().items():
        (answer,) = verdict()
        if answer.outcome.value != "passed":
            raise SystemExit(f"{name}: {answer.because}")
        ours_times, their_times = enough(cpu_ns(verdict, 20)), enough(peer.cpu_ns(theirs, 1))
        pairs = [(cpu_ns(verdict, ours_times), peer.cpu_ns(theirs, their_times)) for _ in range(rounds)]
        rows.append(
            Row(
                name,
                statistics.median(one for one, _ in pairs) / 1000,
                statistics.median(other for _, other in pairs) / 1000,
                statistics.median(other / one for one, other in pairs),
                GOALS.get(theirs),
            )
        )
    return rows


def default_seconds(rounds: int) -> dict[str, dict[str, float]]:
    """CPU seconds for 1,000 runs of 20 spans: the default checks alone, and decoding, reading and judging."""
    checks, found = default_checks(), {}
    for dialect in ("redfirst", "openinference", "gen_ai"):
        bodies = [body(dialect, number + 1) for number in range(RUNS)]
        taken = []
        for _ in range(rounds):
            gc.collect()
            judged = 0
            begun = time.process_time_ns()
            for item in bodies:
                for run in read(decode_traces(item, content="protobuf")).runs:
                    since = time.process_time_ns()
                    judge(run, checks)
                    judged += time.process_time_ns() - since
            taken.append((judged / 1e9, (time.process_time_ns() - begun) / 1e9))
        found[dialect] = {
            "judge": statistics.median(one for one, _ in taken),
            "decode, read and judge": statistics.median(whole for _, whole in taken),
        }
    return found


def show(rows: list[Row], seconds: Mapping[str, Mapping[str, float]]) -> None:
    """The tables."""
    print(f"{'case':<32}{'redfirst µs':>12}{'peer µs':>12}{'ratio':>8}{'goal':>7}")
    for row in rows:
        goal = f"{row.goal}×" if row.goal else ""
        print(f"{row.case:<32}{row.ours:>12.1f}{row.theirs:>12.1f}{row.ratio:>7.0f}×{goal:>7}")
    print(f"\ndefault checks over {RUNS:,} runs of {SPANS} spans, CPU seconds (goal ≤ {GOAL_SECONDS})")
    for dialect, one in seconds.items():
        print(f"{dialect:<16}" + "".join(f"{name} {value:.3f}  " for name, value in one.items()))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    home = Path(tempfile.gettempdir()) / "redfirst-benchmark-peers"
    parser.add_argument(
        "--peers", type=Path, default=home, help="the peers' environment (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each case (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    options = parser.parse_args()
    peer = Peer(options.peers)
    rows = compared(peer, options.rounds)
    peer.close()
    seconds = default_seconds(min(options.rounds, 3))
    show(rows, seconds)
    if options.json:
        figures = {"peers": PEERS, "cases": [as_json(row) for row in rows], "default checks": seconds}
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def as_json(row: Row) -> dict[str, object]:
    """The row as JSON says it."""
    return {
        "case": row.case,
        "redfirst_us": row.ours,
        "peer_us": row.theirs,
        "ratio": row.ratio,
        "goal": row.goal,
    }


if __name__ == "__main__":
    main()
