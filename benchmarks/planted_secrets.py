"""Are secrets found in what is exported? ``python benchmarks/planted_secrets.py [--payloads 10000] [--seed 1]``

Random payloads with planted secrets go through every surface of a span: arguments, results, exceptions, events and
states, span names, the messages of a model, links, baggage that a processor puts on spans, spans of other
instrumentation. What an exporter was given is searched for each of them. Then runs that differ in nothing but the
redaction are judged: ``repeats`` and rules with ``same:`` must say the same of both. Exit code 1 where either fails.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import string
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opentelemetry import baggage, trace
from opentelemetry import context as otel_context
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from redfirst.evaluators.check import default_checks, judge
from redfirst.evaluators.otlp import decode
from redfirst.evaluators.reading import read_runs
from redfirst.evaluators.rules import load_rules
from redfirst.instrumentation import (
    Redaction,
    agent,
    configure,
    current_run,
    force_flush,
    model,
    shutdown,
    span,
    span_counts,
    tool,
)

_TOGETHER = 20
"""Payloads whose spans are exported and searched together."""
_SPANS = 5
"""Spans of one payload: agent, tool, model, chain, and that of another instrumentation."""
KEYS = ("password", "api_token", "Authorization")
RULES = """
schema: redfirst.rules/1
rules:
  - {id: verified, kind: require_before, call: refund, needs: verify, same: [args.customer]}
  - {id: once, kind: max_calls, call: refund, max: 1, same: [args.customer, args.order]}
"""


def redaction() -> Redaction:
    """Keys, a path and patterns."""
    return Redaction(keys=KEYS, paths=["$.payload.owner.name"], patterns=["email", "api_key", "card", "jwt"])


class Baggage(SpanProcessor):
    """Puts the baggage on every span, as a widespread processor does."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        for key, value in baggage.get_all(parent_context).items():
            span.set_attribute(key, str(value))


class Planter:
    """Makes payloads with secrets in them, and remembers the secrets."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a reproducible choice
        self.planted: list[str] = []

    def _word(self, length: int = 12) -> str:
        return "".join(self._random.choices(string.ascii_letters + string.digits, k=length))

    def by_key(self) -> str:
        """A secret that only its key gives away."""
        return self._random.choice(["", "é", " "]) + self._keep(f"K{self._word()}")

    def by_form(self) -> str:
        """A secret that its form gives away."""
        form = self._random.randrange(4)
        if form == 0:
            return f"{self._keep(self._word())}@{self._word(6)}.example.org"
        if form == 1:
            return f"sk-{self._keep(self._word(24))}"
        if form == 2:
            return self._keep("-".join(str(self._random.randrange(1000, 9999)) for _ in range(4)))
        return f"eyJ{self._word(20)}.eyJ{self._keep(self._word(30))}.{self._word(40)}"

    def _keep(self, secret: str) -> str:
        """Letters, digits and dashes, which every encoding leaves as they are, so that a search finds them."""
        self.planted.append(secret)
        return secret

    def payload(self, depth: int = 0) -> Any:
        """JSON data with secrets by key and by form, also in keys, texts, JSON in texts, and numbers in lists."""
        kind = self._random.randrange(8 if depth < 3 else 3)
        if kind == 0:
            return f"plain {self._word()}"
        if kind == 1:
            before = self._random.choice(["to ", "a line\n", "<", '"'])
            return before + self.by_form() + self._random.choice(["", " now", ">", '"'])
        if kind == 2:
            return self._random.choice([None, True, 7, 2.5, ""])
        if kind == 3:
            return {self._random.choice(KEYS): self.by_key(), "x": self.payload(depth + 1)}
        if kind == 4:
            return json.dumps(
                {self._random.choice(KEYS).upper(): self.by_key(), "x": self.payload(depth + 1)}
            )
        if kind == 5:
            return {self.by_form(): self.payload(depth + 1)}
        if kind == 6:
            return {"owner": {"name": self.payload(depth + 1)}, "rest": self.payload(depth + 1)}
        return [self.payload(depth + 1) for _ in range(self._random.randrange(1, 4))]


@tool
def work(payload: Any, how: str) -> Any:
    """Give it back, or say it in an exception."""
    if how == "raise":
        raise ValueError(f"cannot work with {payload}")
    return {"echo": payload}


@model
def chat(messages: Any, model: str) -> Any:
    """Repeat what was said."""
    wish = {"id": "c", "function": {"name": "work", "arguments": json.dumps(messages[-1]["content"])}}
    return {"model": model, "content": str(messages[-1]["content"]), "tool_calls": [wish]}


@agent
def handle(planter: Any, payload: Any, number: int) -> Any:
    """Touch every surface with one payload."""
    run = current_run()
    run.state({"payload": payload})
    run.event(f"got {planter.by_form()}", payload=payload)
    run.stop(planter.by_form())
    with contextlib.suppress(ValueError):
        work(payload, "raise" if number % 3 == 0 else "return")
    chat([{"role": "user", "content": payload}], model=planter.by_form())
    with span("chain", f"step {planter.by_form()}") as step:
        step.set("note", planter.by_form())
        trace.get_current_span().set_attribute("late", planter.by_form())
        trace.get_current_span().add_link(
            trace.get_current_span().get_span_context(), {"to": planter.by_form()}
        )
    if number % 50 == 0:
        raise ValueError(f"nothing came of {planter.by_form()}")
    return payload


def leaks(payloads: int, seed: int, path: Path) -> tuple[int, list[str]]:
    """How many secrets were planted, and which of them an exporter was given.

    Raises:
        AssertionError: a span did not reach the exporter, so that its secrets were not looked for.
    """
    provider = TracerProvider()
    provider.add_span_processor(Baggage())
    trace.set_tracer_provider(provider)
    configure(file=path, redact=redaction())
    planter, found, planted, read = Planter(seed), list[str](), 0, 0
    for number in range(payloads):
        token = otel_context.attach(baggage.set_baggage("customer", planter.by_form()))
        try:
            with contextlib.suppress(ValueError):
                handle(Shy(planter), planter.payload(), number)
            with trace.get_tracer("another").start_as_current_span(f"GET /{planter.by_form()}") as theirs:
                theirs.set_attribute("http.url", f"/{planter.by_form()}")
                theirs.add_event("sent", {"to": planter.by_form()})
        finally:
            otel_context.detach(token)
        if number % _TOGETHER == _TOGETHER - 1 or number == payloads - 1:
            # a secret can only be in the spans of its payload: all of them against all would take for ever
            force_flush()
            with path.open("rb") as file:
                file.seek(read)
                sent = file.read()
            read += len(sent)
            planted += len(planter.planted)
            found += [secret for secret in planter.planted if secret.encode() in sent]
            planter.planted.clear()
    shutdown()
    (exporter,) = span_counts().exporters or ()
    if exporter.lost or exporter.exported != _SPANS * payloads:
        raise AssertionError(f"spans did not reach the exporter: {exporter}")
    return planted, found


class Shy:
    """Stands in for the planter as an argument, so that the secrets it remembers are none of the payload."""

    def __init__(self, planter: Planter) -> None:
        self.by_form = planter.by_form

    def __repr__(self) -> str:
        return "Shy"


@tool(effect="read")
def verify(customer: str, password: str) -> dict[str, object]:
    """Who it is."""
    return {"verified": bool(password), "customer": customer}


@tool(effect="write")
def refund(customer: str, order: str) -> dict[str, object]:
    """Give back."""
    return {"refunded": order, "customer": customer}


@tool(effect="read")
def look(customer: str) -> dict[str, object]:
    """Look up."""
    return {"customer": customer}


@agent
def support(number: int, seed: int) -> str:
    """A run whose calls repeat, and keep to the rules, or not."""
    chance = random.Random(seed * 100_000 + number)  # noqa: S311
    people = [f"p{chance.randrange(3)}@example.org" for _ in range(2)]
    for _ in range(chance.randrange(3, 9)):
        who = chance.choice(people)
        what = chance.randrange(4)
        if what == 0:
            verify(who, f"secret-{who}")
        elif what == 1:
            refund(who, chance.choice(["A-1", "A-2"]))
        else:
            look(who)
    return "done"


def verdicts(runs: int, seed: int, path: Path, *, redacted: bool) -> list[tuple[str, str, int]]:
    """Check, outcome and number of findings, in the order of the runs."""
    configure(file=path, redact=redaction() if redacted else Redaction())
    for number in range(runs):
        support(number, seed)
        if number % _TOGETHER == 0:
            force_flush()
    shutdown()
    checks = [check for check in default_checks() if check.id == "repeats"] + list(load_rules(RULES, "rules"))
    return list(_judged(path, checks))


def _judged(path: Path, checks: Any) -> Iterator[tuple[str, str, int]]:
    for run in read_runs(decode(path.read_bytes()).spans):
        for verdict in judge(run, checks):
            yield verdict.check, verdict.outcome.value, len(verdict.findings)


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--payloads", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        planted, found = leaks(asked.payloads, asked.seed, Path(folder, "planted.jsonl"))
        print(
            f"{asked.payloads} payloads, {planted} secrets planted, {len(found)} found in what was exported"
        )
        for secret in found[:10]:
            print(f"  leaked: {secret}")
        plain = verdicts(asked.runs, asked.seed, Path(folder, "plain.jsonl"), redacted=False)
        hidden = verdicts(asked.runs, asked.seed, Path(folder, "hidden.jsonl"), redacted=True)
        failed = sum(outcome == "failed" for _, outcome, _ in plain)
        differing = sum(a != b for a, b in zip(plain, hidden, strict=True))
        print(
            f"{asked.runs} runs, {len(plain)} verdicts, {failed} of them failed; {differing} differ with redaction"
        )
    return 1 if found or differing else 0


if __name__ == "__main__":
    sys.exit(main())
