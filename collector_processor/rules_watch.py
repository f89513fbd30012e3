"""Takes an edited rules file into force while the service runs; the old rules stay when the new ones are bad."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from redfirst.collector_processor.metrics import Metrics
from redfirst.evaluators.errors import RedfirstError
from redfirst.evaluators.rules import load_rules

Rules = tuple[str, str]
"""Text and name of a rules file."""


class RulesWatch:
    """Looks at one rules file when it is told to."""

    def __init__(
        self, rules: Rules, *, replace: Callable[[Rules], None], say: Callable[[str], None], metrics: Metrics
    ) -> None:
        """``rules`` are in force; ``replace`` is given what takes their place."""
        self._rules = rules
        self._path = Path(rules[1])
        self._replace, self._say, self._metrics = replace, say, metrics
        self._seen = self._mark()
        self._settled = True
        self._refused = False

    def look(self) -> None:
        """Take the file as it is now; one that is still being written is taken at a later look."""
        mark = self._mark()
        if mark != self._seen:
            self._seen, self._settled = mark, False
            return
        if self._settled:
            return
        self._settled = True
        try:
            text = self._path.read_text(encoding="utf-8")
            if text == self._rules[0]:
                if self._refused:
                    self._say(f"rules: {self._path} is again as the rules in force")
                self._refused = False
                return
            rules = (text, self._rules[1])
            load_rules(*rules)
        except (OSError, UnicodeDecodeError, RedfirstError) as problem:
            self._refused = True
            self._metrics.add("redfirst_rules_reloads_total", result="refused")
            self._say(f"rules: {' '.join(str(problem).split())} The rules in force stay.")
            return
        self._rules, self._refused = rules, False
        self._replace(rules)
        self._metrics.add("redfirst_rules_reloads_total", result="taken")
        self._say(f"rules: {self._path} was edited and is in force from the next run on")

    def _mark(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
