"""The rules file in force: the one that a command names, or the project's."""

from __future__ import annotations

import sys
from pathlib import Path

from redfirst.evaluators.check import Check, default_checks
from redfirst.evaluators.errors import ConfigurationError, unread
from redfirst.evaluators.rules import load_rules
from redfirst.replay.project import Project


def rules_text(project: Project, given: str | None) -> tuple[str, str] | None:
    """Its text and its name; what it names as Python can be imported from now on.

    Raises:
        ConfigurationError: it cannot be read.
    """
    if given is None and project.settings.rules is None:
        return None
    sys.path[:] = dict.fromkeys((*project.path, *sys.path))
    path = Path(given) if given is not None else project.root / str(project.settings.rules)
    try:
        return path.read_text(encoding="utf-8"), str(path)
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigurationError(f"rules file {path}: cannot be read: {unread(problem)}.") from problem


def checks_of(project: Project, given: str | None) -> tuple[Check, ...]:
    """The default checks and those of the rules file.

    Raises:
        ConfigurationError: the rules file cannot be read or is wrong.
    """
    rules = rules_text(project, given)
    return default_checks() if rules is None else (*default_checks(), *load_rules(*rules))
