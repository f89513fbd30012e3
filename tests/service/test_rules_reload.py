"""A running service takes an edited rules file."""

from __future__ import annotations

import json

from redfirst.collector_processor.cli import main

PROTOBUF = "application/x-protobuf"
LOOK = "schema: redfirst.rules/1\ntasks:\n  - {id: t, when: {agent: support}, required_calls: [look]}\n"


def test_a_run_after_the_edit_is_judged_by_the_new_rules(stopped, tools):
    """One before it keeps its verdict; a mistake in between changes nothing."""
    folder = stopped.home.parent
    rules = folder / "rules.yaml"
    (folder / "redfirst.yaml").write_text("rules: rules.yaml\n")
    rules.write_text("schema: redfirst.rules/1\nrules: []\n")
    stopped.start()

    def judged_by(name: str) -> bool:
        return "recall:t" in [one["check"] for one in stopped.get(f"/api/runs/{name}")["record"]["verdicts"]]

    def a_new_run() -> str:
        run = tools.a_run()
        name = f"{run[0].context.trace_id:032x}"
        stopped.post("/v1/traces", tools.body_of(run), content_type=PROTOBUF)
        tools.eventually(lambda: name in stopped.stored())
        return name

    def reloads(result: str) -> float:
        return stopped.metrics().get(f'redfirst_rules_reloads_total{{result="{result}"}}', 0)

    first = a_new_run()
    rules.write_text("rules: [")
    tools.eventually(lambda: reloads("refused") == 1)
    second = a_new_run()
    rules.write_text(LOOK)
    tools.eventually(lambda: reloads("taken") == 1)
    third = a_new_run()

    assert [judged_by(name) for name in (first, second, third)] == [False, False, True]


def test_backfill_has_the_running_service_judge_again(stopped, tools, monkeypatch, capsys):
    """Before the edited file is in force it is refused; then the stored run gets a version by it, once."""
    folder = stopped.home.parent
    (folder / "redfirst.yaml").write_text("rules: rules.yaml\n")
    (folder / "rules.yaml").write_text("schema: redfirst.rules/1\nrules: []\n")
    stopped.start()
    monkeypatch.chdir(folder)
    run = tools.a_run()
    name = f"{run[0].context.trace_id:032x}"
    stopped.post("/v1/traces", tools.body_of(run), content_type=PROTOBUF)
    tools.eventually(lambda: name in stopped.stored())
    (folder / "other.yaml").write_text(LOOK)
    backfill = ["backfill", "--home", str(stopped.home), "--json"]
    assert main([*backfill, "--rules", "other.yaml"]) == 2
    assert "judges by other rules" in capsys.readouterr().err

    (folder / "rules.yaml").write_text(LOOK)
    tools.eventually(lambda: stopped.metrics().get('redfirst_rules_reloads_total{result="taken"}') == 1)
    tools.eventually(lambda: main(backfill) == 0)
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {
        "noted": 1,
        "spans_gone": 0,
        "by": "service",
    }
    tools.eventually(lambda: stopped.stored()[name].version == 2)
    assert "recall:t" in [one["check"] for one in stopped.get(f"/api/runs/{name}")["record"]["verdicts"]]
    assert stopped.get(f"/api/runs/{name}")["versions"][0]["version"] == 1
