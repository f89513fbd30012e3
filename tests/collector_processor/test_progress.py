"""The bar that tells how far runs are."""

from __future__ import annotations

import io

from redfirst.collector_processor.terminal import WIDTH, Progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_how_far_it_is_and_a_clean_line_at_the_end() -> None:
    """Twelve of twenty-four parts are filled at half, and no line is wider than the terminal."""
    out = _Terminal()
    with Progress(4, "run", out) as progress:
        progress.step("GREEN")
        progress.step("RED")
    drawn = out.getvalue().split("\r\033[K")

    assert drawn[3] == f"{'█' * 12}{'·' * 12} 2 of 4 runs  1 GREEN, 1 RED"
    assert drawn[-1] == ""
    assert max(map(len, drawn)) < WIDTH


def test_a_pipe_sees_nothing_of_it() -> None:
    """What reads the messages is not told of every run."""
    out = io.StringIO()
    with Progress(4, "run", out) as progress:
        progress.step("GREEN")

    assert out.getvalue() == ""
