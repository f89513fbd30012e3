"""The ``redfirst`` command: finds the verb, runs it, turns our errors into one line and an exit code."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from redfirst.collector_processor.terminal import tell
from redfirst.evaluators.errors import RedfirstError

USAGE = 2
"""Exit code of a wrong argument, a wrong configuration, or input that cannot be read."""
INTERRUPTED = 130
UNFINISHED = 141
"""Exit code when the reader left before there was a verdict, as of a command that SIGPIPE ended: no pass."""


@dataclass(frozen=True, slots=True)
class Verb:
    """One subcommand. Its module has ``configure(parser)`` and ``execute(options) -> exit code`` and is
    imported only when the verb is used."""

    name: str
    module: str
    summary: str


VERBS: tuple[Verb, ...] = (
    Verb(
        "init",
        "redfirst.collector_processor.commands.init",
        "write a configuration and draft rules from the tools seen",
    ),
    Verb(
        "serve", "redfirst.collector_processor.commands.serve", "receive spans and judge every run as it ends"
    ),
    Verb(
        "score",
        "redfirst.collector_processor.commands.score",
        "judge the runs in OTLP files and print their verdicts",
    ),
    Verb(
        "import",
        "redfirst.collector_processor.commands.import_",
        "convert records of other systems into OTLP files",
    ),
    Verb(
        "demo",
        "redfirst.collector_processor.commands.demo",
        "watch a day of failures become tests, with nothing to set up",
    ),
    Verb(
        "doctor",
        "redfirst.collector_processor.commands.doctor",
        "what here would keep checks from seeing or failing",
    ),
    Verb(
        "show",
        "redfirst.collector_processor.commands.show",
        "one run as a timeline: what it did, and what failed",
    ),
    Verb(
        "rules",
        "redfirst.collector_processor.commands.rules",
        "lint, explain and test a rules file, or learn one from passing runs",
    ),
    Verb(
        "sensitivity",
        "redfirst.collector_processor.commands.sensitivity",
        "plant breaks in right runs and see which check notices",
    ),
    Verb("traces", "redfirst.collector_processor.commands.traces", "list the runs in the store"),
    Verb(
        "alerts",
        "redfirst.collector_processor.commands.alerts",
        "what fires, silences, what would have been told, rules for Prometheus",
    ),
    Verb(
        "resend",
        "redfirst.collector_processor.commands.resend",
        "give forwarding destinations again what they refused",
    ),
    Verb("label", "redfirst.collector_processor.commands.label", "say whether a flag was right"),
    Verb("delete", "redfirst.collector_processor.commands.delete", "erase a run from the store"),
    Verb(
        "backfill",
        "redfirst.collector_processor.commands.backfill",
        "judge stored runs again by edited rules",
    ),
    Verb(
        "freeze", "redfirst.collector_processor.commands.freeze", "turn a flagged run into a scenario draft"
    ),
    Verb(
        "prove",
        "redfirst.collector_processor.commands.prove",
        "execute the agent and see it fail for production's reason",
    ),
    Verb(
        "verify",
        "redfirst.collector_processor.commands.verify",
        "run the fixed agent until its green runs are no luck",
    ),
    Verb("run", "redfirst.collector_processor.commands.run", "run scenarios against the agent as it is now"),
    Verb(
        "drift",
        "redfirst.collector_processor.commands.drift",
        "mark scenarios whose tools, prompt or model have moved",
    ),
    Verb(
        "export",
        "redfirst.collector_processor.commands.export",
        "scenarios as a file of plain tests",
    ),
    Verb(
        "report",
        "redfirst.collector_processor.commands.report",
        "what the judged runs of a period say of each agent",
    ),
    Verb(
        "reliability",
        "redfirst.collector_processor.commands.reliability",
        "how often an agent succeeds when asked again, how surely, at what cost",
    ),
    Verb(
        "compare",
        "redfirst.collector_processor.commands.compare",
        "two agents on the same tasks: better, worse, or not shown",
    ),
    Verb(
        "plan",
        "redfirst.collector_processor.commands.plan",
        "how many tasks and trials an error bar takes, and what a run may use",
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code: 0 pass, 1 fail, 2 usage, 3 no verdict."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    code = UNFINISHED
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except RedfirstError as problem:
        tell(str(problem))
        return problem.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone; what is still buffered must not raise again when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code
    return code


def _open_streams() -> None:
    """Python has no stream where the caller closed it (``>&-``); what is printed goes nowhere, the exit code stands."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115


def _run(arguments: Sequence[str]) -> int:
    wanted = next((word for word in arguments if not word.startswith("-")), None)
    parser = argparse.ArgumentParser(
        prog="redfirst",
        description="Score the runs of tool-using agents and turn their failures into tests that have been seen to fail.",
    )
    parser.add_argument("--version", action="version", version=f"redfirst {version('redfirst')}")
    commands = parser.add_subparsers(dest="verb", metavar="COMMAND", required=True)
    for verb in VERBS:
        command = commands.add_parser(verb.name, help=verb.summary, description=verb.summary)
        if verb.name == wanted:
            module = importlib.import_module(verb.module)
            module.configure(command)
            command.set_defaults(execute=module.execute)
    try:
        options = parser.parse_args(arguments)
    except SystemExit as left:  # argparse leaves by itself: 0 after --help, 2 on a wrong argument
        return left.code if isinstance(left.code, int) else USAGE
    code: int = options.execute(options)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
