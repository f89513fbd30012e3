"""The repository keeps its own rules."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import zipfile
from importlib.metadata import entry_points
from pathlib import Path

import pytest

SOURCES = Path(os.environ.get("REDFIRST_SOURCES", Path(__file__).parents[1]))
ROOMS = ("evaluators", "instrumentation", "replay", "collector_processor")


def tracked(*paths: str) -> list[str]:
    """Files git knows of below these paths."""
    done = subprocess.run(
        ["git", "ls-files", *paths], cwd=SOURCES, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("no git checkout here: set REDFIRST_SOURCES to one")
    return done.stdout.split()


def test_the_wheel_holds_every_tracked_file_of_the_rooms_and_nothing_else(tmp_path: Path) -> None:
    """A new sub-package that works in the editable install and is missing from the wheel is found here."""
    files = tracked(*ROOMS, "examples/bookshop")
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        ".",
    ]
    copy = tmp_path / "sources"
    subprocess.run(["git", "clone", "--quiet", str(SOURCES), str(copy)], check=True)
    subprocess.run(build, cwd=copy, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}

    assert held == {f"redfirst/{name}" for name in files}


def test_no_room_is_imported_by_its_bare_name() -> None:
    """``import evaluators`` would be a second copy of every class."""
    code = (
        "import redfirst.collector_processor.cli, redfirst.replay.proof, sys\n"
        f"print([n for n in {ROOMS!r} if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_redfirst_is_a_namespace_that_nothing_shadows() -> None:
    """The four rooms are portions of one namespace package (PEP 420)."""
    spec = importlib.util.find_spec("redfirst")

    assert spec is not None
    assert spec.origin is None


def test_every_verb_is_in_the_readme_and_has_help() -> None:
    """A verb appears when it works, and the README names it."""
    from redfirst.collector_processor.cli import VERBS, main

    readme = (SOURCES / "README.md").read_text("utf-8")
    for verb in VERBS:
        assert f"`redfirst {verb.name}" in readme, verb.name
        assert main([verb.name, "--help"]) == 0


def test_the_pytest_plugin_is_registered() -> None:
    """Installing redfirst is enough to collect scenarios."""
    assert any(entry.name == "redfirst" for entry in entry_points(group="pytest11"))


def test_every_refusal_is_documented() -> None:
    """A named refusal without an explanation is no better than a traceback."""
    from redfirst.replay.report import Refusal

    page = (SOURCES / "docs" / "proof.md").read_text("utf-8")
    for refusal in Refusal:
        assert f"`{refusal.value}`" in page, refusal
        assert re.search(rf"`{refusal.value}`[^|\n]*\| {refusal.exit_code} \|", page), refusal


def test_every_key_of_the_configuration_is_documented() -> None:
    """A key that no page names does not exist for a user."""
    from redfirst.collector_processor.settings import (
        AlertmanagerSettings,
        AlertSettings,
        ForwardSettings,
        MetricsExportSettings,
        NotifySettings,
        ServeSettings,
        SinkSettings,
        WebhookSettings,
    )
    from redfirst.replay.project import Settings

    page = (SOURCES / "docs" / "scenarios.md").read_text("utf-8")
    pages = ("service.md", "alerts.md", "backends/README.md")
    service, alerts, backends = ((SOURCES / "docs" / name).read_text("utf-8") for name in pages)
    for key in set(Settings.model_fields) - {"serve"}:
        assert f"{key}:" in page, key
    for part in (ServeSettings, ForwardSettings):
        for key in part.model_fields:
            assert re.search(rf"\b{key}\b", service), f"{part.__name__}.{key}"
    for key in SinkSettings.model_fields:
        assert f"`{key}`" in backends, f"SinkSettings.{key}"
    for part in (AlertSettings, WebhookSettings, AlertmanagerSettings, NotifySettings, MetricsExportSettings):
        for key in part.model_fields:
            assert re.search(rf"\b{key}\b", alerts), f"{part.__name__}.{key}"


def test_every_format_that_is_imported_is_documented() -> None:
    """The page on importing has a row for each, and the fixtures say where they come from."""
    from redfirst.collector_processor.importing.registry import FORMATS

    page = (SOURCES / "docs" / "importing.md").read_text("utf-8")
    origins = (SOURCES / "tests" / "fixtures" / "imports" / "README.md").read_text("utf-8")
    for form in FORMATS:
        assert f"| `{form.name}` |" in page, form.name
    for path in (SOURCES / "tests" / "fixtures" / "imports").glob("*.json*"):
        assert f"`{path.name}`" in origins, path.name


def test_evaluators_import_no_opentelemetry_but_its_message_types() -> None:
    """Judging needs no SDK: only the protobuf messages of OTLP."""
    for name in tracked("evaluators"):
        if name.endswith(".py"):
            found = re.findall(
                r"^\s*(?:from|import) (opentelemetry\S*)", (SOURCES / name).read_text("utf-8"), re.MULTILINE
            )
            assert all(module.startswith("opentelemetry.proto.") for module in found), (name, found)
