"""Every kind of results is read into the same trials, and nothing is read for something else."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from redfirst.collector_processor import extras
from redfirst.collector_processor.cli import main
from redfirst.collector_processor.extras import MissingExtra
from redfirst.collector_processor.reliability.results.reading import Reading, read_results
from redfirst.evaluators.errors import ConfigurationError, UnreadableInput

from .conftest import Write

FIXTURES = Path(__file__).parents[1] / "fixtures"
RESULTS = FIXTURES / "results"
LINE: Mapping[str, Any] = {"task": "a", "trial": 0, "passed": True}


def test_a_line_says_what_it_says_and_the_rest_is_unknown(write: Write):
    """A key that is not there is unknown, never 0, never passed."""
    (bare, full) = read_results(
        [
            write(
                [
                    LINE,
                    {
                        "task": 7, "trial": 1, "passed": False, "goal": True, "violations": ["verify"], "tokens": 812,
                        "cost": 0.5, "seconds": 2, "steps": 3, "group": "refunds", "cap": 12, "ended": "completed",
                    },
                ]
            )
        ]
    ).trials  # fmt: skip

    assert (bare.goal, bare.violations, bare.tokens, bare.cost, bare.strict) == (None, None, None, None, None)
    assert (full.task, full.goal, full.violations, full.strict) == ("7", True, ("verify",), False)
    assert (full.tokens, full.cost, full.seconds, full.steps) == (812, 0.5, 2.0, 3)
    assert (full.group, full.cap, full.ended) == ("refunds", "12", "completed")


@pytest.mark.parametrize(
    ("given", "count"), [([], 0), (["a", "b"], 2), (3, 1), (0, 0), (True, 1), (False, 0), (2**53 - 1, 1)]
)
def test_violations_are_names_or_whether_there_were_any(write: Write, given: object, count: int):
    """A harness that only counts is understood too, however far it counts: a run broke rules, or it did not."""
    (one,) = read_results([write([{**LINE, "violations": given}])]).trials

    assert one.violations is not None
    assert len(one.violations) == count


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"passed": "yes"}, "passed"),
        ({"passed": 1}, "passed"),
        ({"trial": 1.5}, "trial"),
        ({"trial": -1}, "trial"),
        ({"trial": None}, "trial is missing"),
        ({"task": None}, "task is missing"),
        ({"tokens": "many"}, "tokens"),
        ({"tokens": -3}, "tokens"),
        ({"violations": "verify"}, "violations"),
        ({"violations": [1]}, "violations"),
        ({"tokkens": 3}, "did you mean tokens?"),
        ({"goal": False}, "passed is true and goal is false"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(write: Write, change: Mapping[str, object], said: str):
    """One clear line that names the file, the line and the key."""
    path = write([LINE, {**LINE, "trial": 1, **change}])

    with pytest.raises(UnreadableInput) as refused:
        read_results([path])
    assert f"{path}: line 2" in str(refused.value)
    assert said in str(refused.value)


def test_keys_of_the_users_own_are_named_and_left(write: Write):
    """A seed beside a result is no mistake."""
    results = read_results([write([{**LINE, "seed": 4, "model": "m"}])])

    assert len(results.trials) == 1
    assert results.notes == ("keys not read: model, seed",)


def test_a_run_counts_once(write: Write):
    """The same file given twice would narrow every interval."""
    path = write([LINE])

    with pytest.raises(UnreadableInput, match="was read already"):
        read_results([path, path])
    numbers = [one.trial for one in read_results([path, path], Reading(renumber=True)).trials]
    assert numbers == [0, 1]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\n \n",
        b"task,trial\na,1\n",
        b"[]",
        b"{}",
        b"3",
        b'{"resourceSpans": []}',
        b"\x1f\x8bdamaged",
        b"PK\x03\x04damaged",
        b'{"task": "a", "trial": 0}\n',
        b"\xff\xfe\x00",
    ],
)
def test_another_file_is_refused_in_one_line(tmp_path: Path, body: bytes, capsys: pytest.CaptureFixture[str]):
    """Exit code 2, the name of the file, nothing on stdout."""
    path = tmp_path / "some.json"
    path.write_bytes(body)

    assert main(["reliability", str(path), "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert str(path) in err


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """And a folder without results."""
    assert main(["reliability", str(tmp_path / "none.jsonl")]) == 2
    assert main(["reliability", str(tmp_path)]) == 2
    said = capsys.readouterr().err.splitlines()
    assert "No such file" in said[0]
    assert "holds no results" in said[1]


def test_tau_bench_results():
    """A reward of 1 is a pass; what was violated on the way nobody looked at."""
    trials = read_results([RESULTS / "tau_bench_airline_gpt-4o.json"]).trials

    assert len({one.task for one in trials}) == 50
    assert (len(trials), sum(one.passed is True for one in trials)) == (200, 84)
    assert {one.violations for one in trials} == {None}


def test_a_tau_bench_run_that_raised_has_no_verdict(tmp_path: Path):
    """The runner writes reward 0 for its own exceptions."""
    path = tmp_path / "results.json"
    run = {"task_id": 3, "trial": 0, "reward": 0.0, "traj": [], "info": {"error": "503", "traceback": "…"}}
    path.write_text(json.dumps([run, {**run, "trial": 1, "info": {}}]), "utf-8")

    assert [one.passed for one in read_results([path]).trials] == [None, False]
    path.write_text(f"{json.dumps(run)}\n", "utf-8")  # the same as a line of its own
    assert [one.passed for one in read_results([path]).trials] == [None]


def _simulation(trial: int, ended: str, reward: float | None) -> dict[str, Any]:
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    return {
        "task_id": "8", "trial": trial, "termination_reason": ended, "agent_cost": 0.02, "duration": 9.5,
        "reward_info": None if reward is None else {"reward": reward},
        "messages": [
            {"role": "assistant", "content": "Hi! How can I help you today?", "usage": None},
            {"role": "user", "content": "cancel", "usage": {"prompt_tokens": 9, "completion_tokens": 9}},
            {"role": "assistant", "content": "done", "usage": usage},
            {"role": "assistant", "content": "really", "usage": usage},
        ],
    }  # fmt: skip


def test_tau2_results(tmp_path: Path):
    """An agent's own errors and caps are failures; a broken infrastructure or user simulator is no verdict."""
    ends = [
        ("user_stop", 1.0, True),
        ("max_steps", 0.0, False),
        ("agent_error", 0.0, False),
        ("infrastructure_error", 0.0, None),
        ("user_error", 0.0, None),
        ("user_stop", None, None),
    ]
    document = {
        "info": {"max_steps": 200, "environment_info": {"domain_name": "airline"}},
        "tasks": [],
        "simulations": [_simulation(trial, ended, reward) for trial, (ended, reward, _) in enumerate(ends)],
    }
    path = tmp_path / "results.json"
    path.write_text(json.dumps(document), "utf-8")
    trials = read_results([path]).trials

    assert [one.passed for one in trials] == [verdict for _, _, verdict in ends]
    first = trials[0]
    assert (first.task, first.cap, first.ended) == ("airline/8", "max_steps=200", "user_stop")
    assert (first.tokens, first.steps, first.cost, first.seconds) == (240, 2, 0.02, 9.5)


def test_records_that_wrap_a_published_run(tmp_path: Path):
    """The reward beside the record counts, not the one of a changed environment within."""
    raw = {"task_id": 0, "trial": 0, "reward": 0.93, "info": {}, "traj": [{"role": "assistant"}]}
    record = {"run_id": "r", "domain": "retail", "task_id": 0, "trial": 0, "reward": 1.0, "raw": raw}
    path = tmp_path / "runs.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(record).encode() + b"\n"))
    (one,) = read_results([path]).trials

    assert (one.task, one.passed) == ("retail/0", True)


def test_a_wrapped_run_of_tau2_keeps_its_limit(tmp_path: Path):
    """Limit, domain and reward stand beside the record; a price of 0 is one that nobody knows."""
    raw = {**_simulation(2, "user_stop", 0.0), "agent_cost": 0.0}
    record = {"domain": "airline", "task_id": "8", "trial": 2, "reward": 1.0, "max_steps": 100, "raw": raw}
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(record) + "\n", "utf-8")
    (one,) = read_results([path]).trials

    assert (one.task, one.trial, one.passed, one.cap, one.cost) == (
        "airline/8",
        2,
        True,
        "max_steps=100",
        None,
    )


@pytest.mark.parametrize("name", ["inspect_sums.eval", "inspect_sums.json"])
def test_inspect_logs(name: str):
    """Samples are tasks, epochs are trials; a sample that raised has no verdict."""
    trials = {(one.task, one.trial): one for one in read_results([RESULTS / name]).trials}

    assert len(trials) == 12
    assert [trials["sums/b", epoch].passed for epoch in (1, 2, 3, 4)] == [False, True, False, True]
    assert (trials["sums/c", 2].passed, trials["sums/c", 2].ended) == (None, "error")
    assert (trials["sums/a", 1].tokens, trials["sums/a", 1].cap) == (15, "message_limit=20")


def test_an_archive_packed_with_what_python_knows(tmp_path: Path):
    """Older versions of Inspect wrote deflated members; an evaluation that broke off has no header yet."""
    start = {"eval": {"task": "sums", "config": {}}}
    sample = {"id": 1, "epoch": 1, "scores": {"match": {"value": 1.0}}, "model_usage": {}}
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", json.dumps(start))
        archive.writestr("_journal/summaries/1.json", json.dumps([sample]))
    (one,) = read_results([path]).trials

    assert (one.task, one.passed, one.tokens, one.cap) == ("sums/1", True, None, None)


def _log(tmp_path: Path, *scores: Mapping[str, Any]) -> Path:
    samples = [{"id": n, "epoch": 1, "scores": dict(one)} for n, one in enumerate(scores)]
    document = {"version": 2, "status": "success", "eval": {"task": "t", "config": {}}, "samples": samples}
    path = tmp_path / "log.json"
    path.write_text(json.dumps(document), "utf-8")
    return path


def test_values_of_inspect_scores(tmp_path: Path):
    """Full marks pass; partial credit does not; what was not scored is no verdict."""
    values = {
        "C": True,
        "I": False,
        "P": False,
        "N": False,
        "yes": True,
        "1": True,
        "0.5": False,
        "nan": None,
    }
    path = _log(tmp_path, *({"s": {"value": value}} for value in values), {})

    assert [one.passed for one in read_results([path]).trials] == [*values.values(), None]


def test_one_of_several_scores_must_be_chosen(tmp_path: Path):
    """Two scores are two questions."""
    path = _log(tmp_path, {"right": {"value": "C"}, "polite": {"value": "I"}})

    with pytest.raises(UnreadableInput, match="--scorer"):
        read_results([path])
    assert read_results([path], Reading(scorer="polite")).trials[0].passed is False
    with pytest.raises(UnreadableInput, match="it has right, polite"):
        read_results([path], Reading(scorer="wit"))


def test_a_score_that_says_neither_is_refused(tmp_path: Path):
    """A text answer is no verdict, and no failure."""
    with pytest.raises(UnreadableInput, match="neither right nor wrong"):
        read_results([_log(tmp_path, {"s": {"value": "Paris"}})])


def test_zstandard_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    """A file that cannot be unpacked says what would."""
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None)

    with pytest.raises(MissingExtra, match=r"redfirst\[inspect\]"):
        read_results([RESULTS / "inspect_sums.eval"])


def _kept(home: Path, name: str, mode: str, passed: bool | None) -> None:
    folder = home / "runs" / name
    folder.mkdir(parents=True)
    record = {
        **LINE,
        "task": "refund",
        "passed": passed,
        "mode": mode,
        "outcome": "RED",
        "because": "",
        "stop": None,
    }
    (folder / "result.json").write_text(json.dumps(record), "utf-8")


def test_kept_runs(tmp_path: Path):
    """Every call of ``run`` numbers its own from 0; modes fail for different reasons and are not put together."""
    _kept(tmp_path, "001-refund-0", "tools", True)
    _kept(tmp_path, "002-refund-0", "tools", False)
    _kept(tmp_path, "003-refund-0", "recorded", None)

    with pytest.raises(ConfigurationError, match=r"1 recorded, 2 tools"):
        read_results([tmp_path])
    trials = read_results([tmp_path / "runs"], Reading(mode="tools")).trials
    assert [(one.trial, one.passed) for one in trials] == [(0, True), (1, False)]
    assert len(read_results([tmp_path / "runs" / "001-refund-0"]).trials) == 1


@pytest.mark.parametrize("amount", [1e308, 10**30, 2**53])
def test_amounts_that_no_sum_holds_are_refused(write: Write, amount: float):
    """Two runs of 1e308 dollars would cost infinitely much."""
    with pytest.raises(UnreadableInput, match=r"cost is .*from 0 to 2\^53 - 1"):
        read_results([write([{**LINE, "cost": amount}])])


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path):
    """Editors and shells of Windows write one."""
    path = tmp_path / "results.jsonl"
    path.write_text(f"{json.dumps(LINE)}\n", "utf-8-sig")

    assert [one.task for one in read_results([path]).trials] == ["a"]


def test_a_message_about_a_file_moves_no_cursor(write: Write, capsys: pytest.CaptureFixture[str]):
    """Names of tasks and keys are foreign text on standard error as well."""
    sides = [
        write([{**LINE, "task": f"\x1b[31m{name}", "\x1b]0;x\x07": 1}], f"{name}.jsonl")
        for name in ("a", "b")
    ]

    assert main(["compare", *sides]) == 2
    said = capsys.readouterr().err
    assert "no task in common" in said
    assert "keys not read" in said
    assert "\x1b" not in said
