"""Real incidents as scenarios: ``cd benchmarks && python -m incidents DATA [--loops N] [--json FILE]``.

DATA holds ``tau_bench/`` and ``tau2_bench/runs/``. Every run that failed its task or broke a rule of the published policy is
frozen, and the target checks are made over its trace: red there is ``trace-only``, which never gates. Their agents' code is
not published with them. A generic loop over the recorded turns and the published tools' names is therefore executed in its
place, every ``--loops`` th scenario (0: none): red there is ``loop-only``, and never called proven. Needs no network.
Exit 1 when a frozen scenario is not red on its own trace, or a loop ends in a fault of redfirst's.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from incidents import loop
from incidents.frozen import Incident, incidents
from redfirst.collector_processor.reliability.tables import Table, as_text
from redfirst.evaluators.check import judge
from redfirst.evaluators.trajectory import Stop
from redfirst.replay.outcome import RunOutcome, Signature
from redfirst.replay.playing import INCIDENT, job, play
from redfirst.replay.process import together
from redfirst.replay.project import load_project
from redfirst.replay.proving import incident as recorded_run
from redfirst.replay.scenario import Scenario, load

TRANSFER = "transfer_to_human_agents"
CALLS_MANY = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a frozen incident shows."""

    incident: Incident
    on_trace: Signature
    looped: str | None = None
    """How the generic loop ended; ``None``: it was not executed."""
    because: str = ""


def main() -> int:
    """Freeze and judge all of them, execute some, print the tables."""
    parser = argparse.ArgumentParser(
        prog="incidents", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--loops", type=int, default=1, metavar="N", help="execute every Nth scenario")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    found = list(incidents(options.data))
    frozen = [one for one in found if one.draft is not None]
    with tempfile.TemporaryDirectory() as place:
        work = [
            partial(shown, Path(place) / str(n), one, execute=options.loops > 0 and n % options.loops == 0)
            for n, one in enumerate(frozen)
        ]
        every = together(work)
    for line in as_text([drafts(found), reds(every)]):
        print(line)
    if options.json is not None:
        options.json.write_text(json.dumps(figures(found, every), indent=1) + "\n", encoding="utf-8")
    wrong = [f"{one.incident.name}: not red on its own trace" for one in every if not one.on_trace]
    wrong += [f"{one.incident.name}: {one.because}" for one in every if one.looped == "our_fault"]
    for fault in wrong:
        print(fault, file=sys.stderr)
    return 1 if wrong else 0


def shown(place: Path, one: Incident, *, execute: bool) -> Shown:
    """The incident's scenario, judged on its trace and, to ``execute``, by the generic loop."""
    if one.draft is None:
        raise AssertionError(one.name)
    scenario = place / "scenario"
    one.draft.write(scenario)
    folder = load(scenario)
    verdicts = judge(recorded_run(folder), folder.scenario.targets())
    signature: Signature = frozenset().union(*(verdict.signature() for verdict in verdicts))
    if not execute:
        return Shown(incident=one, on_trace=signature)
    _set_up(place, one, folder.scenario, len(folder.model))
    project = load_project(place)
    run = job(folder, "loop:make", project, turns=folder.model, sources=INCIDENT)
    result = play(folder, run, hash_seed=1)
    if result.fails_as(signature):
        ended = "red"
    elif result.outcome is RunOutcome.RED:
        ended = "red otherwise"
    else:
        ended = result.stop.value if result.stop is not None else result.outcome.value.lower()
    return Shown(incident=one, on_trace=signature, looped=ended, because=result.because)


def _set_up(place: Path, one: Incident, scenario: Scenario, turns: int) -> None:
    shutil.copy(loop.__file__, place / "loop.py")
    (place / "tools.json").write_text(json.dumps(sorted(scenario.tools)), encoding="utf-8")
    capped = scenario.ended is Stop.STEP_CAP
    variables = {
        "LOOP_CAP": str(turns if capped else CALLS_MANY),
        "LOOP_ENDS": TRANSFER if one.source == "tau_bench" else "",
    }
    settings = {"agents": {scenario.agent: {"call": "loop:make", "input": "text", "environment": variables}}}
    (place / "redfirst.yaml").write_text(json.dumps(settings), encoding="utf-8")


def drafts(found: Sequence[Incident]) -> Table:
    """How many runs freeze, and why the others do not."""
    rows = []
    for source in dict.fromkeys(one.source for one in found):
        mine = [one for one in found if one.source == source]
        frozen = [one for one in mine if one.draft is not None]
        unflagged = sum(not one.flagged for one in mine)
        rows.append(
            (
                source,
                str(len(mine)),
                str(sum(one.failed for one in mine)),
                str(sum(bool(one.flagged) for one in mine)),
                str(len(frozen)),
                str(unflagged),
                str(len(mine) - len(frozen) - unflagged),
            )
        )
    grades = Counter(_grades(one) for one in found if one.draft is not None)
    return Table(
        title="Runs that failed their task or broke a rule of the policy",
        header=("benchmark", "runs", "failed", "flagged", "frozen", "no check", "gaps"),
        rows=rows,
        notes=[
            "no check: the benchmark's reward says failed, and no check here does",
            "gaps: refused, because the record lacks what an execution needs",
            *(f"{number} with {grade}" for grade, number in grades.most_common()),
        ],
    )


def _grades(one: Incident) -> str:
    if one.draft is None:
        return ""
    grades = one.draft.scenario.completeness.model_dump()
    return ", ".join(f"{boundary} {grade}" for boundary, grade in grades.items())


def reds(every: Sequence[Shown]) -> Table:
    """How many are red on the trace, and what the loop made of those it executed."""
    rows = []
    for source in dict.fromkeys(one.incident.source for one in every):
        mine = [one for one in every if one.incident.source == source]
        looped = Counter(one.looped for one in mine if one.looped is not None)
        rest = sum(looped.values()) - looped["red"] - looped["red otherwise"] - looped["green"]
        rows.append(
            (
                source,
                str(len(mine)),
                str(sum(bool(one.on_trace) for one in mine)),
                str(sum(looped.values())),
                str(looped["red"]),
                str(looped["red otherwise"]),
                str(looped["green"]),
                str(rest),
            )
        )
    ended = Counter(one.looped for one in every if one.looped is not None)
    return Table(
        title="Their scenarios: red on the trace, and executed by a generic loop (loop-only: nothing is proven)",
        header=("benchmark", "frozen", "trace-only", "loops", "same red", "other", "green", "none"),
        rows=rows,
        notes=[f"{number} ended {how}" for how, number in ended.most_common()],
    )


def figures(found: Sequence[Incident], every: Sequence[Shown]) -> dict[str, object]:
    """The same for a program."""
    by_name = {one.incident.name: one for one in every}
    return {
        "incidents": [
            {
                "source": one.source,
                "run": one.name,
                "failed": one.failed,
                "flagged": list(one.flagged),
                "frozen": one.draft is not None,
                "refusal": one.refusal,
                "completeness": None if one.draft is None else one.draft.scenario.completeness.model_dump(),
                "trace_only_red": one.name in by_name and bool(by_name[one.name].on_trace),
                "loop_only": by_name[one.name].looped if one.name in by_name else None,
                "loop_because": by_name[one.name].because if one.name in by_name else "",
            }
            for one in found
        ]
    }


if __name__ == "__main__":
    sys.exit(main())
