"""What ``init`` writes loads as it stands, and its numbers are those of the rules it writes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from redfirst.collector_processor.cli import main
from redfirst.collector_processor.commands.init_drafts import drafts, guessed, rules_text, tools_in
from redfirst.collector_processor.recorded.files import read_files
from redfirst.collector_processor.settings import (
    AlertmanagerSettings,
    AlertSettings,
    ForwardSettings,
    NotifySettings,
    ServeSettings,
    SinkSettings,
    WebhookSettings,
    configured,
)
from redfirst.evaluators import strict_yaml
from redfirst.evaluators.check import judge
from redfirst.evaluators.otlp_encode import encode_traces
from redfirst.evaluators.reading import read
from redfirst.evaluators.rules import load_rules
from redfirst.evaluators.testing import a_run, call
from redfirst.evaluators.trajectory import Effect, Trajectory
from redfirst.evaluators.verdict import Outcome
from redfirst.replay.project import Settings, load_project, project_at

DRAFT = re.compile(
    r"# draft: (\S+) observed (\d+) times, would flag (\d+) runs of (\d+) \((\d+) could be judged"
)


def bookshop(folder: Path) -> Path:
    """A day of the sample agent, with its defects, as a file of spans."""
    subprocess.run(
        [sys.executable, "-m", "bookshop", "--spans", "spans.jsonl"],
        cwd=folder,
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "examples"), "PATH": ""},
        check=True,
        capture_output=True,
    )
    return folder / "spans.jsonl"


@pytest.fixture(scope="module")
def spans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bookshop(tmp_path_factory.mktemp("bookshop"))


@pytest.fixture
def project(tmp_path: Path, spans: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with traces and nothing else, as the current one."""
    shutil.copy(spans, tmp_path / "spans.jsonl")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REDFIRST_HOME", raising=False)
    return tmp_path


def shop(reads: bool = True, refunds: int = 1) -> Trajectory:
    order = {"order_id": "A-7"}
    looked = [call("get_order", effect="read", **order)] if reads else []
    paid = [call("refund", effect="write", amount=5 + n, **order) for n in range(refunds)]
    return a_run(*looked, *paid)


def written(runs: Sequence[Trajectory]) -> str:
    return rules_text(drafts(runs), tools_in(runs))


def test_both_files_load_and_the_numbers_are_those_of_the_rules(project: Path) -> None:
    """From real traces: the configuration and the rules load, and judging again gives each draft's numbers."""
    assert main(["init", "--traces", "spans.jsonl"]) == 0
    settings = load_project(project).settings
    text = (project / "rules.yaml").read_text()
    checks = load_rules(text, "rules.yaml")
    stream = read_files(["spans.jsonl"])
    runs = read(stream.spans, stream.logs).runs
    said = DRAFT.findall(text)

    assert (settings.rules, settings.traces) == ("rules.yaml", ["spans.jsonl"])
    assert len(said) == len(checks) >= 8
    assert any(int(flagged) for _, _, flagged, _, _ in said)
    for check, (tool, calls, flagged, total, could) in zip(checks, said, strict=True):
        outcomes = [judge(run, [check])[0].outcome for run in runs]
        assert int(flagged) == outcomes.count(Outcome.FAILED)
        assert int(could) == outcomes.count(Outcome.FAILED) + outcomes.count(Outcome.PASSED)
        assert int(total) == len(runs)
        assert int(calls) == sum(one.name == tool for run in runs for one in run.tool_calls)


def test_score_takes_what_init_wrote(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The drafts are judged and flag nothing before a person raises them."""
    assert main(["init", "--traces", "spans.jsonl"]) == 0
    assert main(["score", "spans.jsonl", "--fail-on-flag", "--json"]) == 1
    before = capsys.readouterr().out.count('"flagged": true')
    main(["score", "spans.jsonl", "--rules", "rules.yaml", "--json"])
    after = capsys.readouterr().out

    assert after.count('"flagged": true') == before
    assert '"check": "refund-once-per-order_id"' in after


def test_files_that_are_there_are_left_alone(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --force nothing is touched and the exit code is 2; with it both are written."""
    (project / "rules.yaml").write_text("mine")
    assert main(["init", "--traces", "spans.jsonl"]) == 2
    assert "rules.yaml: there already" in capsys.readouterr().err
    assert (project / "rules.yaml").read_text() == "mine"
    assert not (project / "redfirst.yaml").exists()
    assert main(["init", "--traces", "spans.jsonl", "--force"]) == 0
    assert (project / "rules.yaml").read_text() != "mine"


def test_a_person_is_asked(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal: no means no, yes means yes."""
    (project / "rules.yaml").write_text("mine")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    for answer, code in (("n\n", 2), ("\n", 2), ("yes\n", 0)):
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        assert main(["init", "--traces", "spans.jsonl"]) == code


class Terminal:
    """A standard input that a person sits at."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        return self.answer


def test_without_any_runs_the_files_are_a_start(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing seen yet: both files load, there are no rules, and the command says so."""
    assert main(["init", "--out", "new"]) == 0
    assert load_rules((project / "new" / "rules.yaml").read_text(), "rules.yaml") == ()
    assert configured(project_at(project / "new" / "redfirst.yaml")) == ServeSettings()
    out = capsys.readouterr().out
    assert "No runs were seen yet" in out
    assert "redfirst init --force, with --traces FILE" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80


def test_the_files_that_the_project_names_are_learnt_from(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where there is no store: as show and freeze read them; one that is not there yet is nothing seen."""
    (project / "redfirst.yaml").write_text("traces: [spans.jsonl, later.jsonl]\n")
    assert main(["init", "--out", "new"]) == 0
    assert "draft rules:" in capsys.readouterr().out
    assert project_at(project / "new" / "redfirst.yaml").settings.traces == [str(project / "spans.jsonl")]


def test_every_key_stands_in_the_configuration_with_its_default(project: Path) -> None:
    """Uncommented, the file is accepted and says what holds without it."""
    assert main(["init", "--out", "new"]) == 0
    text = (project / "new" / "redfirst.yaml").read_text()
    for model in (
        *(Settings, ServeSettings, ForwardSettings, AlertSettings),
        *(WebhookSettings, AlertmanagerSettings, NotifySettings, SinkSettings),
    ):
        for key in model.model_fields:
            assert re.search(rf"^[# -]*{key}:", text, re.MULTILINE), key
    lines = text.splitlines()
    serve = [line.removeprefix("# ").removeprefix("#") for line in lines[lines.index("# serve:") :]]
    found = ServeSettings.model_validate(strict_yaml.read("\n".join(serve), "serve").data["serve"])

    examples = {"forward", "sinks", "alerts"}
    assert found.model_dump(exclude=examples) == ServeSettings().model_dump(exclude=examples)
    (sink,) = found.sinks
    assert sink == SinkSettings(
        name="phoenix", kind="phoenix", endpoint="http://localhost:6006", project="default"
    )
    receivers = {"webhooks", "alertmanagers", "notify"}
    assert found.alerts.model_dump(exclude=receivers) == AlertSettings().model_dump(exclude=receivers)
    (forward,), (webhook,) = found.forward, found.alerts.webhooks
    assert forward == ForwardSettings(name="phoenix", endpoint=forward.endpoint, headers=forward.headers)
    assert webhook == WebhookSettings(name="ops", url="env:OPS_WEBHOOK", secret="env:OPS_SECRET")
    (manager,), (person,) = found.alerts.alertmanagers, found.alerts.notify
    assert manager == AlertmanagerSettings(name="alertmanager", url="http://localhost:9093")
    assert person == NotifySettings(name="team", url="env:TEAM_CHANNEL")


def test_a_write_needs_a_read_of_the_same_object_and_happens_once() -> None:
    """Two drafts for a write that shares a key with a read, with the numbers of these runs."""
    runs = [shop(), shop(reads=False), shop(refunds=3)]
    read_first, once = drafts(runs)

    assert read_first.rule["kind"] == "require_before"
    assert (read_first.rule["needs"], read_first.rule["same"]) == ("get_order", ["args.order_id"])
    assert (read_first.flagged, read_first.judged, read_first.runs) == (1, 3, 3)
    assert (once.rule["max"], once.rule["same"]) == (1, ["args.order_id"])
    assert (once.flagged, once.judged) == (1, 3)
    assert DRAFT.findall(written(runs))[0] == ("refund", "5", "1", "3", "3")


def test_a_write_without_a_read_of_its_object_gets_no_such_draft() -> None:
    """No shared argument, no require_before; no key at all, no draft, and the file says so."""
    lone = a_run(
        call("get_order", effect="read", order_id="A"), call("send_email", effect="write", email="x@y")
    )
    bare = a_run(call("close_day", effect="write"))

    assert [draft.rule["kind"] for draft in drafts([lone])] == ["max_calls"]
    assert drafts([bare]) == []
    assert "no argument says to what object" in written([bare])


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("get_order", Effect.READ),
        ("orderLookup", Effect.WRITE),
        ("searchFlights", Effect.READ),
        ("verify_identity", Effect.READ),
        ("cancel_order", Effect.WRITE),
        ("bookHotel", Effect.WRITE),
        ("HTTPPost", Effect.WRITE),
        ("think", None),
        ("", None),
    ],
)
def test_an_undeclared_effect_is_guessed_from_the_name(name: str, effect: Effect | None) -> None:
    """The first word that says something decides; a name that says nothing gets no draft."""
    assert guessed(name) is effect


def test_a_guess_is_marked_and_a_declaration_wins() -> None:
    """A tool called get_… that declares to write is a write."""
    declared = a_run(call("get_paid", effect="write", order_id="A"))
    guess = a_run(call("cancel_order", order_id="A"))

    assert [draft.tool.name for draft in drafts([declared])] == ["get_paid"]
    assert "guessed" not in written([declared])
    assert "that it writes is guessed from its name" in written([guess])


HOSTILE = 'refund\n  - id: evil\n    kind: forbid # "\u2028\x1b[31m'


def test_a_hostile_name_cannot_add_to_the_file() -> None:
    """Line breaks, quotes and control characters of a tool's name stay in its name."""
    runs = [
        a_run(
            call("get", effect="read", order_id="1"),
            call(HOSTILE, effect="write", order_id="1", **{"x: y\n": 1}),
            call("tell\nme", order_id=1),
        )
    ]
    checks = load_rules(written(runs), "rules.yaml")

    assert len(checks) == 2
    assert all(check.spec["call"] == HOSTILE for check in checks)
    assert len({check.id for check in checks}) == 2


def test_two_tools_of_nearly_the_same_name_get_ids_of_their_own() -> None:
    """Names that differ only in what an id may not hold."""
    runs = [a_run(call("pay it", effect="write", order_id="1"), call("pay/it", effect="write", order_id="1"))]

    assert len(load_rules(written(runs), "rules.yaml")) == 2


def test_the_store_is_read_where_there_is_one(
    served: Any, project: Path, capsys: pytest.CaptureFixture[str], tools: Any
) -> None:
    """Runs that a service took are what the drafts are made from, also while it runs."""
    stream = read_files(["spans.jsonl"])
    body = encode_traces(stream.spans)
    assert served.post("/v1/traces", body, content_type="application/x-protobuf")[0] == 200
    wanted = len(read(stream.spans, stream.logs).runs)
    tools.eventually(lambda: len(served.runs("scored")) == wanted)
    assert main(["init", "--home", str(served.home)]) == 0
    from_store = (project / "rules.yaml").read_text()
    assert main(["init", "--traces", "spans.jsonl", "--force"]) == 0

    assert from_store == (project / "rules.yaml").read_text()
    assert f"{wanted} runs" in capsys.readouterr().out
