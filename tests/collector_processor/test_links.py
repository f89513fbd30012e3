"""Every run that is printed says where it is looked at."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from redfirst.collector_processor.cli import main
from redfirst.collector_processor.journal.format import Position
from redfirst.collector_processor.links import Links
from redfirst.collector_processor.settings import ServeSettings, SinkSettings
from redfirst.collector_processor.storing.sqlite import SqliteStore
from redfirst.collector_processor.storing.store import Landing, RunState
from redfirst.collector_processor.terminal import Screen

RUN = "ab" * 16
PHOENIX = SinkSettings(name="p", kind="phoenix", endpoint="http://localhost:6006/")
JAEGER = SinkSettings(
    name="j", kind="otlp", endpoint="http://localhost:4318", link="http://localhost:16686/trace/{trace_id}"
)


def test_trace_url_goes_before_what_the_sinks_know() -> None:
    """A template of the project's own is the one that is used."""
    settings = ServeSettings(sinks=[PHOENIX], trace_url="https://ui.example/t/{trace_id}?run={run_id}")

    assert Links.of(settings).to("r/1", "t1") == "https://ui.example/t/t1?run=r%2F1"


@pytest.mark.parametrize(
    ("sinks", "address"),
    [
        ([PHOENIX], f"http://localhost:6006/redirects/traces/{RUN}"),
        ([JAEGER, PHOENIX], f"http://localhost:16686/trace/{RUN}"),
        (
            [SinkSettings(name="m", kind="mlflow", endpoint="env:MLFLOW", project="7")],
            f"https://mlflow.example/#/experiments/7/traces?selectedEvaluationId=tr-{RUN}",
        ),
        ([SinkSettings(name="m", kind="mlflow", endpoint="http://localhost:5000")], None),
        ([SinkSettings(name="o", kind="otlp", endpoint="http://localhost:4318")], None),
        ([], None),
    ],
)
def test_the_first_sink_with_a_page_gives_the_link(sinks: list[SinkSettings], address: str | None) -> None:
    """Of a kind whose pages are known, or with a template of its own; without what the page needs there is none."""
    links = Links.of(ServeSettings(sinks=sinks), {"MLFLOW": "https://mlflow.example/"})

    assert links.to(RUN) == address
    assert links.beside(RUN) == ({"url": address} if address else {})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a sink, and one run in its store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REDFIRST_HOME", raising=False)
    (tmp_path / "redfirst.yaml").write_text(
        "serve:\n  sinks:\n    - {name: p, kind: phoenix, endpoint: 'http://localhost:6006'}\n"
        "    - {name: l, kind: langfuse, endpoint: 'https://cloud.langfuse.com'}\n",
        encoding="utf-8",
    )
    (tmp_path / ".redfirst").mkdir()
    store = SqliteStore(tmp_path / ".redfirst" / "store.sqlite3")
    landing = Landing(
        run_id=RUN,
        state=RunState.SCORED,
        spans=1,
        span_set_hash="h",
        positions=[],
        cut="root_ended",
        arrived_ns=1,
        judged_ns=2,
        record=json.dumps({"trace_id": RUN}),
    )
    store.land([landing], cursor=Position(1, 8), outbox=["sink:p"])
    store.close()
    return tmp_path


@pytest.mark.parametrize("command", [["traces", "--json"], ["label", RUN, "right", "--json"]])
def test_the_json_of_a_run_has_its_address(
    project: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A script need not know the backend's addresses."""
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["url"] == f"http://localhost:6006/redirects/traces/{RUN}"


def test_doctor_says_which_backends_are_unverified(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Phoenix was read back from a real server; Langfuse never was, and that is a note with the reason."""
    main(["doctor", "--json"])
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    told = {one["found"].split(":")[0]: one for one in found if one["subject"] == "sink"}

    assert told["p"]["level"] == "ok"
    assert told["l"]["level"] == "note"
    assert "unverified" in told["l"]["found"]


def test_a_terminal_gets_a_link_and_a_pipe_gets_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """The id stays what it was, eight columns wide; what comes from a trace cannot end the address early."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    terminal, pipe = Terminal(), io.StringIO()
    for out in (terminal, pipe):
        Screen(out).line("abcdef12 seen", link=("abcdef12", "http://x/\033\\y"))

    assert pipe.getvalue() == "abcdef12 seen\n"
    assert terminal.getvalue() == "\033]8;;http://x/�\\y\033\\abcdef12\033]8;;\033\\ seen\n"
