"""What commands print: colour on a terminal, plain text in a pipe, never wider than 80 columns."""

from __future__ import annotations

import os
import sys
import textwrap
import threading
from collections import Counter
from pathlib import Path
from typing import Self, TextIO

from redfirst.evaluators.printable import printable

WIDTH = 80
_BAR = 24
_CODES = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}


def clean(text: str) -> str:
    """Text from a trace without control characters."""
    return printable(text)


def counted(number: int, noun: str) -> str:
    """``1 run``, ``2 runs``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def fit(text: str, width: int) -> str:
    """The text in at most ``width`` columns, with a mark where it was cut."""
    text = clean(text)
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


class Screen:
    """Prints lines to one stream."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.out = out or sys.stdout
        self.colour = self.out.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def paint(self, text: str, *styles: str) -> str:
        """The text in these styles, where the stream shows any."""
        if not self.colour or not styles:
            return text
        return f"\033[{';'.join(_CODES[style] for style in styles)}m{text}\033[0m"

    def line(
        self,
        text: str = "",
        *styles: str,
        mark: tuple[str, str] | None = None,
        link: tuple[str, str] | None = None,
    ) -> None:
        """One line, cut at the width; ``mark`` is a word of it and the style it alone has, ``link`` a word and the
        address that a terminal opens for it."""
        shown = self.paint(fit(text, WIDTH), *styles)
        if mark is not None:
            shown = shown.replace(mark[0], self.paint(*mark), 1)
        if link is not None and self.colour:
            word, address = link
            shown = shown.replace(word, f"\033]8;;{clean(address)}\033\\{word}\033]8;;\033\\", 1)
        print(shown, file=self.out)

    def para(
        self,
        text: str,
        *styles: str,
        indent: str = "",
        hang: str | None = None,
        mark: tuple[str, str] | None = None,
    ) -> None:
        """A paragraph, wrapped at the width; ``mark`` is a word and its style, put before the text."""
        word, style = mark or ("", "")
        lines = textwrap.wrap(
            clean(text),
            WIDTH,
            initial_indent=f"{indent}{word} " if word else indent,
            subsequent_indent=indent if hang is None else hang,
            break_on_hyphens=False,
        )
        for number, line in enumerate(lines or [indent.rstrip()]):
            shown = self.paint(line, *styles)
            if word and number == 0:
                shown = shown.replace(word, self.paint(word, style), 1)
            print(shown, file=self.out)


def tell(text: str) -> None:
    """A remark on stderr: wrapped on a terminal, one line in a pipe, where it is looked for as a whole."""
    said = f"redfirst: {clean(' '.join(text.split()))}"
    if sys.stderr.isatty():
        Screen(sys.stderr).para(said, hang="  ")
    else:
        print(said, file=sys.stderr)


def near(path: Path) -> str:
    """A file or folder as it is named from here."""
    here = Path.cwd()
    return str(path.resolve().relative_to(here) if path.resolve().is_relative_to(here) else path)


class Progress:
    """A bar on stderr while runs are made, and nothing where stderr is no terminal. Called from several threads."""

    def __init__(self, total: int, noun: str, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._shows = self._out.isatty() and total > 1
        self._total = total
        self._noun = noun
        self._lock = threading.Lock()  # guards the counts and the line on the screen
        self._done = 0
        self._kinds: Counter[str] = Counter()
        self._draw()

    def step(self, kind: str) -> None:
        """One more is done, and how it ended."""
        with self._lock:
            self._done += 1
            self._kinds[kind] += 1
            self._draw()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shows:
            print("\r\033[K", end="", file=self._out, flush=True)

    def _draw(self) -> None:
        if not self._shows:
            return
        filled = _BAR * self._done // self._total
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self._kinds.items()))
        text = f"{'█' * filled}{'·' * (_BAR - filled)} {self._done} of {counted(self._total, self._noun)}  {kinds}"
        print(f"\r\033[K{fit(text, WIDTH - 1)}", end="", file=self._out, flush=True)
