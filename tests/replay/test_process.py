"""A child is heard until its result, its end or its time limit, whatever it leaves behind."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from redfirst.replay.process import KEPT_OUTPUT, Ended, converse, together
from redfirst.replay.runner import sealed


def hold(code: str, folder: Path, *, said: bytes = b"", timeout: float = 10.0) -> Ended:
    return converse(
        lambda writing: [sys.executable, "-c", f"import os, sys, time; fd = {writing}\n{code}"],
        said,
        complete=lambda heard: sealed(heard, "s") is not None,
        folder=str(folder),
        environment=dict(os.environ),
        timeout=timeout,
    )


def test_the_time_limit_holds_when_a_grandchild_holds_every_pipe(tmp_path: Path) -> None:
    """Nobody waits for a pipe that never ends."""
    began = time.monotonic()
    ended = hold("os.fork() or time.sleep(60)\ntime.sleep(60)", tmp_path, timeout=1.0)

    assert ended.timed_out
    assert time.monotonic() - began < 5


def test_a_whole_result_is_not_waited_for_any_longer(tmp_path: Path) -> None:
    """The child may stay; its result is there."""
    began = time.monotonic()
    ended = hold("os.write(fd, b'noise\\ns 2\\n{}')\ntime.sleep(60)", tmp_path)

    assert sealed(ended.result, "s") == b"{}"
    assert time.monotonic() - began < 5


def test_only_the_end_of_what_is_printed_is_kept(tmp_path: Path) -> None:
    """A flood fills neither the memory nor the disk, and the last words are there."""
    ended = hold("[os.write(1, b'x' * (1 << 20)) for _ in range(40)]\nprint('last words')", tmp_path)

    assert len(ended.output) <= 3 * KEPT_OUTPUT
    assert ended.output.endswith(b"last words\n")


def test_a_job_larger_than_a_pipe_arrives_whole(tmp_path: Path) -> None:
    """Saying and hearing go on at once."""
    ended = hold("print(len(sys.stdin.read()))", tmp_path, said=b"x" * 3_000_000)

    assert ended.output.strip() == b"3000000"


def test_a_child_that_does_not_read_its_job_is_no_fault_of_ours(tmp_path: Path) -> None:
    """Its status says how it ended."""
    assert hold("os._exit(5)", tmp_path, said=b"x" * 3_000_000).status == 5


@pytest.mark.parametrize(
    "heard", [b"", b"\ns 2\n{", b"\ns 2", b"\nt 2\n{}", b"\ns x\n{}", b"s 2\n{}"], ids=repr
)
def test_a_result_without_its_seal_or_its_end_is_none(heard: bytes) -> None:
    """Neither half a result nor somebody else's is read."""
    assert sealed(heard, "s") is None


def test_work_done_together_keeps_its_order_and_its_error() -> None:
    """Results stand as the work was given; what one raises is raised."""

    def raising() -> int:
        raise KeyError("mine")

    assert together([lambda: 1, lambda: 2, lambda: 3]) == [1, 2, 3]
    with pytest.raises(KeyError, match="mine"):
        together([raising, lambda: 1])
