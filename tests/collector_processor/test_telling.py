"""What a command says on stderr: words that fit a terminal, and a line that a pipe finds whole."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from redfirst.collector_processor.cli import main
from redfirst.collector_processor.terminal import WIDTH


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _said(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, *arguments: str) -> list[str]:
    """What the command says on this stderr; every one of these is a wrong use."""
    with monkeypatch.context() as patched:
        patched.setattr("sys.stderr", stream)
        assert main(arguments) == 2
    return stream.getvalue().splitlines()


def test_an_error_fits_a_terminal_and_is_one_line_in_a_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words are the same; on a terminal no line is wider than it, and the later ones are indented."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spans.jsonl").write_text("no spans of any kind stand here\n" * 2)
    wrapped = _said(monkeypatch, _Terminal(), "score", "spans.jsonl")
    (whole,) = _said(monkeypatch, io.StringIO(), "score", "spans.jsonl")

    assert len(whole) > WIDTH
    assert len(wrapped) > 1
    assert max(map(len, wrapped)) <= WIDTH
    assert all(line.startswith("  ") for line in wrapped[1:])
    assert " ".join(line.strip() for line in wrapped) == whole
