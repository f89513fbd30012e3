"""Are proofs deterministic? ``cd benchmarks && python -m determinism [--scenarios N] [--json FILE]``.

Each of 104 programs, half of which make calls at once (``asyncio.gather``, threads, a pool), is run, its incident frozen and
proven: twice the agent and twice its control, each in a fresh process, with hash seeds of its own, the second run as on
another machine. Then a source of chance of each kind is planted in one program, and must be found and named, or be frozen.
Exit 1 when a program ended neither proven nor refused as nondeterministic, when fewer were proven than --at-least, or when
something planted was not found. Needs no network.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

from determinism.planted import LISTED, PLANTED, RULE, SOURCE, Planted
from determinism.programs import Program, programs
from determinism.proving import Proof, prove_program
from redfirst.collector_processor.reliability.tables import Table, as_text

RUNS = 4
"""Executions in a proof: the agent twice, its control twice."""


def main() -> int:
    """Prove them all, print the tables, and say whether the gate holds."""
    parser = argparse.ArgumentParser(
        prog="determinism", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenarios", type=int, default=104, metavar="N")
    parser.add_argument("--at-least", type=float, default=1.0, metavar="SHARE", help="of the programs proven")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        whole = [(one, told(prove_one(Path(place), one))) for one in programs(options.scenarios)]
        planted = [(one, told(plant(Path(place), n, one))) for n, one in enumerate(PLANTED)]
    for line in as_text([proofs(whole), finds(planted)]):
        print(line)
    wrong = faults(whole, planted, options.at_least)
    if options.json is not None:
        options.json.write_text(json.dumps(figures(whole, planted), indent=1) + "\n", encoding="utf-8")
    for fault in wrong:
        print(fault, file=sys.stderr)
    return 1 if wrong else 0


def told(proof: Proof) -> Proof:
    """The proof, of which a line on standard error says that it was made."""
    print(f"{proof.name}: {'proven' if proof.proven else proof.refusal}", file=sys.stderr)
    return proof


def prove_one(place: Path, one: Program) -> Proof:
    """The proof of a program."""
    return prove_program(place / one.name, one.name, one.source, one.rule)


def plant(place: Path, number: int, one: Planted) -> Proof:
    """The proof of the program with something planted in it."""
    name = f"planted_{number}"
    return prove_program(place / name, name, SOURCE.format(body=one.body), RULE, LISTED)


def as_expected(one: Planted, proof: Proof) -> bool:
    """Whether it was found and named, or was frozen."""
    if one.named is None:
        return proof.proven
    return proof.refusal == "nondeterministic" and one.named in proof.because


def proofs(whole: Sequence[tuple[Program, Proof]]) -> Table:
    """What became of the programs, by the way they make calls."""
    rows = []
    for way in dict.fromkeys(one.way for one, _ in whole):
        mine = [proof for one, proof in whole if one.way == way]
        rows.append(
            (
                way,
                str(len(mine)),
                str(sum(proof.proven for proof in mine)),
                str(sum(proof.refusal == "nondeterministic" for proof in mine)),
                f"{median(proof.seconds for proof in mine) / RUNS:.2f} s",
                f"{median(proof.cpu_seconds for proof in mine) / RUNS:.2f} s",
            )
        )
    at_once = sum(one.concurrent for one, _ in whole)
    return Table(
        title=f"{len(whole)} programs, {at_once} with calls at once",
        header=("calls", "programs", "proven", "refused", "run takes", "and CPU"),
        rows=rows,
        notes=[
            f"median proof {median(proof.seconds for _, proof in whole):.2f} s: {RUNS} runs, each in a fresh process"
        ],
    )


def finds(planted: Sequence[tuple[Planted, Proof]]) -> Table:
    """What became of what was planted."""
    return Table(
        title="A source of chance planted in one program",
        header=("kind", "source", "is", "and was"),
        rows=[
            (
                one.kind,
                one.what,
                "frozen" if one.named is None else "chance",
                "WRONG" if not as_expected(one, proof) else "proven" if proof.proven else "named",
            )
            for one, proof in planted
        ],
        left=frozenset({0, 1, 2, 3}),
    )


def faults(
    whole: Sequence[tuple[Program, Proof]], planted: Sequence[tuple[Planted, Proof]], at_least: float
) -> list[str]:
    """Why the gate does not hold, a line each."""
    out = [
        f"{one.name} ({one.way}, {one.fault}): {proof.refusal}: {proof.because}"
        for one, proof in whole
        if not proof.proven and proof.refusal != "nondeterministic"
    ]
    proven = sum(proof.proven for _, proof in whole)
    if proven < at_least * len(whole):
        out.append(f"{proven} of {len(whole)} programs were proven, and {at_least:.0%} are asked")
    return out + [
        f"{one.kind}, {one.what}: {'proven' if proof.proven else proof.refusal}: {proof.because}"
        for one, proof in planted
        if not as_expected(one, proof)
    ]


def figures(
    whole: Sequence[tuple[Program, Proof]], planted: Sequence[tuple[Planted, Proof]]
) -> dict[str, object]:
    """The same for a program."""
    return {
        "programs": [{"way": one.way, "fault": one.fault, **asdict(proof)} for one, proof in whole],
        "planted": [
            {"kind": one.kind, "what": one.what, "frozen": one.named is None, **asdict(proof)}
            for one, proof in planted
        ],
        "median_seconds_of_a_run": median(proof.seconds for _, proof in whole) / RUNS,
        "median_cpu_seconds_of_a_run": median(proof.cpu_seconds for _, proof in whole) / RUNS,
    }


if __name__ == "__main__":
    sys.exit(main())
