"""The prices in force: those of the file that a command or the project names, or the ones that come with redfirst."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from redfirst.evaluators.errors import ConfigurationError, unread
from redfirst.evaluators.prices import PriceTable, read_prices
from redfirst.replay.project import Project


def prices_of(project: Project, given: str | None = None) -> PriceTable:
    """The table.

    Raises:
        ConfigurationError: the file cannot be read or is no table of prices.
    """
    named = given if given is not None else project.settings.prices
    if named is None:
        shipped = resources.files("redfirst.collector_processor") / "prices.yaml"
        return read_prices(shipped.read_text(encoding="utf-8"), "prices.yaml of redfirst")
    path = Path(named) if given is not None else project.root / named
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigurationError(f"prices file {path}: cannot be read: {unread(problem)}.") from problem
    return read_prices(text, str(path))
