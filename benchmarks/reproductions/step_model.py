"""What the reliability of a step makes of a task of many steps, and of many trials. Closed form."""

from __future__ import annotations

from redfirst.evaluators.statistics.steps import (
    expected_pass_at_k,
    expected_pass_hat_k,
    needed_step_success,
    task_success,
)
from reproductions.line import Line, Relation, Reproduction


def reproduce(seeds: int) -> Reproduction:  # noqa: ARG001 - nothing here is random
    """The figures."""
    one = task_success(0.99, 20)
    return Reproduction(
        title="steps that must all come right, closed form",
        lines=[
            *(
                _line(
                    f"{step} over {steps} steps{f', recovery {recovery}' if recovery else ''}, %",
                    theirs,
                    100 * found,
                    digits,
                )
                for step, steps, recovery, theirs, digits in (
                    (0.99, 20, 0.0, 81.8, 1),
                    (0.98, 20, 0.0, 66.8, 1),
                    (0.97, 20, 0.0, 54.4, 1),
                    (0.97, 20, 0.5, 73.9, 1),
                    (0.97, 8, 0.0, 78, 0),
                    (0.95, 8, 0.0, 66, 0),
                )
                for found in (task_success(step, steps, recovery=recovery),)
            ),
            _line("pass^8 at .99 over 20 steps, %", 20.0, 100 * expected_pass_hat_k([one], 8), 1),
            Line(
                what="pass@8 at .99 over 20 steps, %",
                theirs=99.9,
                ours=100 * expected_pass_at_k([one], 8),
                digits=1,
                relation=Relation.ABOVE,
            ),
            _line("step success for 90 % over 20 steps", 0.9947, needed_step_success(0.9, 20), 4),
            _line("… for 90 % pass^8 over 20 steps", 0.9993, needed_step_success(0.9, 20, k=8), 4),
            _line("… for 90 % pass^8 over 10 steps", 0.9987, needed_step_success(0.9, 10, k=8), 4),
            _line("… for 90 % pass^8 over 50 steps", 0.9997, needed_step_success(0.9, 50, k=8), 4),
            _line("pass@4 at .8, %", 99.8, 100 * expected_pass_at_k([0.8], 4), 1),
            _line("pass^4 at .8, %", 41, 100 * expected_pass_hat_k([0.8], 4), 0),
            _line("pass@8 at .8", 0.99999, expected_pass_at_k([0.8], 8), 5),
            _line("pass^8 at .8", 0.17, expected_pass_hat_k([0.8], 8), 2),
            _line("pass^8 at .7", 0.0576, expected_pass_hat_k([0.7], 8), 4),
            _line("pass^8 at .9", 0.4305, expected_pass_hat_k([0.9], 8), 4),
            _line("pass^4 of tasks at 1 and .6, %", 56, 100 * expected_pass_hat_k([1, 0.6], 4), 0),
            _line("pass^4 of tasks at .8 both, %", 41, 100 * expected_pass_hat_k([0.8, 0.8], 4), 0),
        ],
        fitted={},
        notes=[
            ".9993 rounded to four digits gives "
            f"{100 * task_success(0.9993, 160):.1f} %, below the 90 % asked for: print five.",
            "pass@8 at .8 is .9999974: theirs was cut off after five digits, not rounded.",
        ],
    )


def _line(what: str, theirs: float, ours: float, digits: int) -> Line:
    return Line(what=what, theirs=theirs, ours=ours, digits=digits)
