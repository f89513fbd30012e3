"""The one root of every error this project raises on purpose."""

from __future__ import annotations


class RedfirstError(Exception):
    """Something was asked of redfirst that it could not do.

    The message says what was asked, what was found and what to do next; it is one line that a
    command can print as it stands.
    """

    exit_code = 2
    """What a command that ends with it returns."""


class ConfigurationError(RedfirstError):
    """A rules file, a configuration key or an argument is wrong (exit code 2)."""


class UnreadableInput(RedfirstError):
    """A file or body is not what it was said to be (exit code 2)."""


def unread(problem: OSError | UnicodeDecodeError) -> str:
    """Why a file could not be read, for a message that names the file itself: no number, and no path again."""
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror
    return str(problem)
