"""What a traced call costs: ours against the bare SDK and the decorators of openinference, traceloop, langfuse, mlflow.

    python benchmarks/decorators.py [--rounds 9] [--calls 300] [--peers openinference,mlflow] [--json FILE] [--gate]

CPU of the process per call, background threads and the flush at the end of a slice included. Every variant runs in a
process of its own (``decorator_variants.py``) and gives one slice after the other to a common clock: each round asks all
of them in turn, the next in the opposite order. Ratios are taken within a round; median and range over the rounds are
printed. A variant of which not every call's span reached its exporter, or one that does when it is switched off, or that
reaches for the network, is not compared but named.

Peers are installed by pip into virtual environments of their own below ``~/.cache/redfirst/benchmarks``, once; what they
need from then on is this machine alone. All export to an exporter that does nothing, except where the situation says that
the spans are encoded as OTLP: by the SDK's own encoder, and once more ours as ``configure(endpoint=…)`` exports them
(``redfirst_exporter``). Disabled is each library's own switch.

Ours, the bare SDK and the peers that take a provider run with the same sampler (parent based, ratio 1.0), the same limits
and the same processor that sets an attribute on every span that starts; ours redacts four keys and two patterns, too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "redfirst" / "benchmarks"
SITUATIONS = ("small", "50 kB", "50 kB encoded", "async", "20 children", "small encoded", "disabled")
PEERS: dict[str, tuple[str, ...]] = {
    "openinference": (
        "openinference-instrumentation==0.1.72",
        "opentelemetry-exporter-otlp-proto-http==1.45.2",
    ),
    # without the SDK's version pip tries hundreds of combinations of its forty instrumentors; it imports httpx unasked
    "traceloop": ("traceloop-sdk==0.62.4", "opentelemetry-sdk==1.45.1", "httpx"),
    "langfuse": ("langfuse==5.0.4",),
    "mlflow": ("mlflow-tracing==3.17.2", "opentelemetry-exporter-otlp-proto-http==1.45.2"),
}
GOALS: dict[str, dict[str, float]] = {
    "small": {"redfirst": 0.35, "openinference": 14, "traceloop": 6, "langfuse": 20, "mlflow": 25},
    "50 kB encoded": {"openinference": 5},
    "small encoded": {"redfirst": 1, "redfirst_exporter": 0.35},
    "disabled": {"redfirst": 0.15},
}
"""Ours are at most so many of the SDK's; peers at least so many of ours, with our exporter where there is one."""
OURS = ("redfirst", "redfirst_exporter")
MOST_CALLS = 60
"""Python and C calls of one traced call: the gate that holds on a busy machine, too."""


class Worker:
    """One variant at work."""

    def __init__(self, python: str, variant: str, situation: str) -> None:
        environment = dict(os.environ)
        if situation == "disabled":
            environment["OTEL_SDK_DISABLED"] = "true"
        environment |= {
            "OTEL_TRACES_EXPORTER": "none",
            "TRACELOOP_TELEMETRY": "false",
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "PYTHONWARNINGS": "ignore",
        }
        self.variant, self.situation = variant, situation
        self._process = subprocess.Popen(
            [python, str(HERE / "decorator_variants.py"), variant, situation],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self.failed: str | None = self._answer().get("failed")
        if self.failed is None:
            self.seconds(60)

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                return json.loads(line)  # type: ignore[no-any-return]
        return {"failed": "it ended"}

    def seconds(self, calls: int) -> float:
        """CPU seconds of so many calls; whether they were traced is looked at, too."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{calls}\n")
        self._process.stdin.flush()
        answer = self._answer()
        wanted = 0 if self.variant == "nothing" or self.situation == "disabled" else answer.get("spans", 0)
        if "failed" in answer:
            self.failed = answer["failed"]
        elif answer["exported"] != wanted:
            self.failed = f"{answer['exported']} spans of {wanted} reached its exporter"
        elif answer["reached out"]:
            self.failed = "it wants to make connections"
        return float(answer.get("seconds", 0))

    def end(self) -> None:
        """Stop it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


def python_of(peer: str) -> str:
    """The interpreter of a peer's environment, which is made when it is not there."""
    wanted = PEERS[peer]
    place = CACHE / f"{peer}-{hashlib.sha256(repr(wanted).encode()).hexdigest()[:8]}"
    python = place / "bin" / "python"
    if not (place / ".made").exists():
        print(f"installing {', '.join(wanted)}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *wanted], check=True)
        (place / ".made").touch()
    return str(python)


def variants(situation: str, peers: Sequence[str]) -> tuple[str, ...]:
    """Who takes part; where spans are encoded, ours with our exporter, too."""
    ours = OURS if "encoded" in situation else OURS[:1]
    return ("nothing", "sdk", *ours, *peers)


def calls_of_a_call() -> int:
    """Python and C calls of one traced call of ours."""
    command = [sys.executable, str(HERE / "decorator_variants.py"), "count", ""]
    return int(json.loads(subprocess.check_output(command, text=True))["calls"])


def measure(situation: str, variants: dict[str, str], rounds: int, calls: int) -> dict[str, Any]:
    """Microseconds and ratios of every variant in one situation."""
    workers = [Worker(python, variant, situation) for variant, python in variants.items()]
    taken: dict[str, list[float]] = {worker.variant: [] for worker in workers}
    for number in range(rounds):
        for worker in workers if number % 2 == 0 else reversed(workers):
            if not worker.failed:
                taken[worker.variant].append(worker.seconds(calls) / calls * 1e6)
    for worker in workers:
        worker.end()
    failed = {worker.variant: worker.failed for worker in workers if worker.failed}
    taken = {variant: values for variant, values in taken.items() if variant not in failed}
    return {
        "us": {name: _middle(values) for name, values in taken.items()},
        "ratio": _ratios(taken),
        "failed": failed,
    }


def _ratios(taken: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    ours = next((taken[name] for name in reversed(OURS) if name in taken), None)
    pairs = {name: (taken[name], taken.get("sdk")) for name in OURS if name in taken}
    pairs |= {name: (values, ours) for name, values in taken.items() if name in PEERS}
    return {
        name: _middle([a / b for a, b in zip(values, base, strict=True)])
        for name, (values, base) in pairs.items()
        if base
    }


def _middle(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def show(situation: str, found: dict[str, Any]) -> None:
    """One table."""
    print(f"\n{situation}")
    goals = GOALS.get(situation, {})
    for name, us in found["us"].items():
        ratio = found["ratio"].get(name)
        said = ""
        if ratio is not None:
            said = f"{ratio['median']:7.2f}x ({ratio['low']:.2f}-{ratio['high']:.2f})"
            if name in goals:
                reached = ratio["median"] <= goals[name] if name in OURS else ratio["median"] >= goals[name]
                said += f"{'' if reached else ' not'} {'<=' if name in OURS else '>='} {goals[name]:g}"
        print(f"  {name:17} {us['median']:8.2f} us ({us['low']:.2f}-{us['high']:.2f}) {said}".rstrip())
    for name, why in found["failed"].items():
        print(f"  {name:17} left out: {why}")


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--situations", default=",".join(SITUATIONS))
    parser.add_argument(
        "--peers", default=",".join(PEERS), help="those to install and compare; empty for none"
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--gate", action="store_true", help=f"fail above {MOST_CALLS} calls per traced call")
    asked = parser.parse_args()
    counted = calls_of_a_call()
    print(f"{counted} Python and C calls per traced call (at most {MOST_CALLS})")
    peers = tuple(filter(None, asked.peers.split(",")))
    pythons = dict.fromkeys(("nothing", "sdk", *OURS), sys.executable) | {
        peer: python_of(peer) for peer in peers
    }
    print("CPU per call; ours in units of the sdk's, a peer's in units of ours: median (range)")
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "peers": {peer: PEERS[peer] for peer in peers},
        "rounds": asked.rounds,
        "calls": asked.calls,
        "calls_per_call": counted,
        "goals": {**GOALS, "calls_per_call": MOST_CALLS},
    }
    for situation in asked.situations.split(","):
        here = {variant: pythons[variant] for variant in variants(situation, peers)}
        found[situation] = measure(situation, here, asked.rounds, asked.calls)
        show(situation, found[situation])
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 1 if asked.gate and counted > MOST_CALLS else 0


if __name__ == "__main__":
    sys.exit(main())
