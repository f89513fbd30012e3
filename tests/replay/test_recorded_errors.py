"""A recorded exception is raised in its own class; where that cannot be, nothing is blamed on the agent."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import pytest

from redfirst.evaluators.check import check_from_spec, default_checks
from redfirst.replay.freezing import RecordedRun, freeze
from redfirst.replay.outcome import Result, RunOutcome
from redfirst.replay.playing import INCIDENT, job, play
from redfirst.replay.project import Project
from redfirst.replay.recorded_errors import RecordedError, recorded_error
from redfirst.replay.scenario import load
from redfirst.replay.stop import StopKind

STOCK = Path(__file__).with_name("stock.py")
CHECKS = (*default_checks(), check_from_spec({"kind": "forbid", "id": "no-write-off", "call": "write_off"}))


class Coded(Exception):
    """Made of two arguments, of which it says one."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Worded(Exception):
    """Says more than it is made of."""

    def __str__(self) -> str:
        return f"[worded] {self.args[0]}"


class Named(Exception):
    """Asks for a keyword."""

    def __init__(self, *, order: str) -> None:
        super().__init__(f"no order {order}")


class Strict(OSError):
    """Asks for two arguments when it is made, and again when it is begun."""

    def __new__(cls, code: int, text: str) -> Self:
        return super().__new__(cls, code, text)

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)


class Refusing(Exception):
    """Whose own constructor fails on a text."""

    def __init__(self, parts: dict[str, str]) -> None:
        super().__init__(parts["text"])


class Outer:
    """A namespace."""

    class Inner(Exception):
        """A nested class."""


def again(name: str, message: str, *, program: str = "") -> tuple[Exception, list[str]]:
    missed: list[str] = []
    return recorded_error({"type": name, "message": message}, program=program, missed=missed.append), missed


@pytest.mark.parametrize(
    ("name", "message", "kind"),
    [
        ("TimeoutError", "late", TimeoutError),
        ("KeyError", "'A-9'", KeyError),
        ("KeyError", "('A', 9)", KeyError),
        ("KeyError", "late", KeyError),  # cut by redaction, say: no repr of anything
        ("UnicodeDecodeError", "'utf-8' codec can't decode byte 0xff", UnicodeDecodeError),
        (f"{__name__}.Coded", "none left", Coded),
        (f"{__name__}.Worded", "[worded] late", Worded),
        (f"{__name__}.Named", "no order A-9", Named),
        (f"{__name__}.Strict", "[Errno 2] gone", Strict),
        (f"{__name__}.Refusing", "none left", Refusing),
        (f"{__name__}.Outer.Inner", "late", Outer.Inner),
    ],
)
def test_an_error_is_caught_as_its_class_and_says_the_same(
    name: str, message: str, kind: type[Exception]
) -> None:
    """Whatever its constructor asks for."""
    error, missed = again(name, message)

    assert isinstance(error, kind)
    assert (str(error), missed) == (message, [])
    assert (type(error).__module__, type(error).__qualname__) == (kind.__module__, kind.__qualname__)


def test_a_key_error_has_its_key_again() -> None:
    """So that ``repr`` is as it was."""
    assert again("KeyError", "'A-9'")[0].args == ("A-9",)


def test_a_class_of_a_module_that_is_not_loaded_yet_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent may import it only where it handles it."""
    (tmp_path / "late_errors.py").write_text("class Late(Exception): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    error, missed = again("late_errors.Late", "late")

    assert error.__class__ is sys.modules.pop("late_errors").Late
    assert not missed


@pytest.mark.parametrize("name", ["__main__.Coded", "Coded"])
def test_a_class_of_the_program_is_found_in_the_agents_module(name: str) -> None:
    """Production ran the file itself, or an instrumentation left the module out."""
    assert isinstance(again(name, "late", program=__name__)[0], Coded)


@pytest.mark.parametrize(
    "name", ["nowhere.Nothing", "builtins.print", "SystemExit", "ExceptionGroup", "f.<locals>.Gone", ""]
)
def test_what_cannot_be_rebuilt_is_told_by_name(name: str) -> None:
    """No class, none of an exception, or one whose parts are not recorded."""
    error, missed = again(name, "late")

    assert type(error) is RecordedError
    assert str(error) == "late"
    assert len(missed) == 1
    assert missed[0].startswith(name)


def test_an_attribute_that_only_the_constructor_knew_is_told() -> None:
    """It is missing as attributes are, and the run must not be held against the agent."""
    error, missed = again(f"{__name__}.Coded", "none left")

    assert not hasattr(error, "code")
    assert missed == ["Coded (its attribute 'code' is not recorded)"]


@pytest.fixture
def stock(project: Project) -> ModuleType:
    """The agents in the project's folder, loaded in this process to record incidents with."""
    shutil.copy(STOCK, project.root / "stock.py")
    spec = importlib.util.spec_from_file_location("stock", STOCK)
    if spec is None or spec.loader is None:
        raise AssertionError(STOCK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def replayed(
    project: Project, stock: ModuleType, recorded: Callable[..., RecordedRun]
) -> Callable[..., Result]:
    """Freezes the incident of one agent and plays it."""

    def made(name: str, *, agent: str | None = None, **change: Any) -> Result:
        freeze(recorded(getattr(stock, name)(), checks=CHECKS), CHECKS).write(project.root / "s")
        folder = load(project.root / "s")
        one = job(folder, f"stock:{agent or name}", project, turns=folder.model, sources=INCIDENT)
        return play(folder, replace(one, **change), hash_seed=0)

    return made


@pytest.mark.parametrize("name", ["keyed", "coded", "local_read_as_any"])
def test_an_agent_that_catches_the_class_fails_as_in_production(
    replayed: Callable[..., Result], name: str
) -> None:
    """The red is that of the check, not of an exception it never met; text alone needs no class."""
    result = replayed(name)

    assert result.outcome is RunOutcome.RED, result.because
    assert [verdict.check for verdict in result.failed] == ["no-write-off"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("local", "take raised stock.local.<locals>.Gone .* ended with an error"),
        ("local_otherwise", "take raised stock.local.<locals>.Gone .* 2 recorded model turn"),
        ("reading", "take raised StockError .its attribute 'code' is not recorded.* ended with an error"),
    ],
)
def test_what_hangs_on_a_stand_in_has_no_verdict(
    replayed: Callable[..., Result], name: str, told: str
) -> None:
    """Neither red nor green: the exception is named, and what to do."""
    result = replayed(name)

    assert (result.outcome, result.stop) == (RunOutcome.NO_VERDICT, StopKind.CANNOT_REBUILD), result.because
    assert re.search(told, result.because), result.because
    assert "Define the exception at the top level" in result.because


def test_a_call_off_tape_after_a_stand_in_is_named_as_that(replayed: Callable[..., Result]) -> None:
    """It would otherwise read as if the agent had changed."""
    result = replayed("local_read_as_any", agent="keyed_or_class")

    assert result.stop is StopKind.CANNOT_REBUILD
    assert "left the recorded way: Not on tape" in result.because


def test_an_agent_that_breaks_after_a_rebuilt_exception_is_red(replayed: Callable[..., Result]) -> None:
    """Its own fault stays its own."""
    result = replayed("keyed", agent="breaking")

    assert result.outcome is RunOutcome.RED, result.because
    assert "termination" in [verdict.check for verdict in result.failed]
