"""What ``redfirst import`` makes of files that are not what they should be."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redfirst.collector_processor.cli import main
from redfirst.collector_processor.importing.documents import documents
from redfirst.collector_processor.importing.formats import BadRecord, Document, Place
from redfirst.collector_processor.importing.registry import FORMATS, format_of
from redfirst.collector_processor.recorded.files import read_files
from redfirst.evaluators.otlp_encode import encode_traces

from .importing import FIXTURES

TAU = json.loads((FIXTURES / "tau_bench.json").read_text())


@pytest.mark.parametrize(
    ("form", "content", "said"),
    [
        ("auto", '{"traj": [', "not JSON"),
        ("auto", "", "the file is empty"),
        ("auto", "hello", "not JSON"),
        ("auto", '{"resourceSpans": []}', "That is OTLP, which 'redfirst score' reads as it is."),
        ("auto", '{"a": "x', "line 1: not JSON: Unterminated string starting at column 7, near "),
        ("auto", '{"a": 1}', "expected a file in one of the formats tau2-bench"),
        ("auto", "[]", "found a list of 0"),
        ("tau2-bench", json.dumps(TAU), "expected a file in the format tau2-bench, found a list of 3"),
        ("phoenix", "null", "expected a file in the format phoenix, found null"),
        ("tau-bench", json.dumps([{"task_id": 1, "traj": 5}]), "nothing was imported"),
        ("tau-bnech", json.dumps(TAU), "format tau-bnech: not known; use one of auto, tau2-bench"),
    ],
)
def test_a_file_that_holds_nothing_is_one_line_and_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, content: str, said: str
):
    """Half JSON, no JSON, another format, an unknown format: what was found, in one line; nothing is written."""
    (tmp_path / "x.json").write_text(content)
    assert main(["import", form, str(tmp_path / "x.json"), "--out", str(tmp_path / "out")]) == 2
    out, err = capsys.readouterr()

    assert out == ""
    assert said in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("out/*"))


def test_a_path_that_is_not_there_and_gzip_that_is_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Each is named."""
    (tmp_path / "cut.json.gz").write_bytes(gzip.compress(json.dumps(TAU).encode())[:-20])
    for name, said in (("nowhere", "no such file"), ("cut.json.gz", "cut short")):
        assert main(["import", "auto", str(tmp_path / name), "--out", str(tmp_path / "out")]) == 2
        assert said in capsys.readouterr().err


def test_one_bad_record_is_named_and_the_rest_is_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Exit code 1: what was left out is named with its place and counted."""
    (tmp_path / "runs.json").write_text(json.dumps([TAU[0], {"task_id": 7, "traj": "lost"}, TAU[1], 5]))
    code = main(["import", "auto", str(tmp_path / "runs.json"), "--out", str(tmp_path / "out"), "--json"])
    out, err = capsys.readouterr()
    told = json.loads(out)

    assert code == 1
    assert (told["records"], told["traces"]) == ({"tau-bench": 2}, 2)
    assert [item["where"].rpartition(" ")[2] for item in told["refused"]] == ["[1]", "[3]"]
    assert "runs.json [1]: expected a τ-bench record with a list traj" in err


def test_a_bad_line_among_good_ones_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Also the first, and the last that was cut short while it was written."""
    good = [json.dumps({"raw": run}) for run in TAU]
    text = "\n".join(["{nonsense", good[0], '{"a": 1}', good[1], good[2][:50]])
    (tmp_path / "runs.jsonl").write_text(text)
    code = main(["import", "auto", str(tmp_path / "runs.jsonl"), "--out", str(tmp_path / "out"), "--json"])
    told = json.loads(capsys.readouterr().out)

    assert code == 1
    assert told["records"] == {"tau-bench": 2}
    assert [item["reason"].partition(":")[0] for item in told["refused"]] == ["line 1", "line 5", "line 3"]


def test_a_file_that_cannot_be_read_does_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """It is named, and the exit code says that something was left out."""
    (tmp_path / "half.json").write_text('{"traj": [')
    (tmp_path / "runs.json").write_text(json.dumps(TAU))
    code = main(["import", "auto", str(tmp_path), "--out", str(tmp_path / "out")])
    out, err = capsys.readouterr()

    assert code == 1
    assert f"refused: {tmp_path / 'half.json'}: line 1: not JSON" in err
    assert "imported 3 record(s) (3 tau-bench) of 1 file(s)" in out


def test_a_folder_may_hold_other_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Beside the records, other files of a folder are skipped and counted."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "runs.json").write_text(json.dumps(TAU))
    (tmp_path / "in" / "manifest.json").write_text('{"files": []}')
    (tmp_path / "in" / "notes.md").write_text("hello")
    assert main(["import", "auto", str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)

    assert (told["files"], sum(told["skipped"].values())) == (1, 2)


def test_half_a_surrogate_pair_is_replaced(tmp_path: Path):
    """JSON can spell what UTF-8 cannot; a record with one is still a record."""
    record = copy.deepcopy(TAU[1])
    record["traj"][1]["content"] = "broken \ud83d emoji \U0001f600"
    (tmp_path / "runs.json").write_text(json.dumps([record]))
    assert main(["import", "auto", str(tmp_path / "runs.json"), "--out", str(tmp_path / "out")]) == 0
    (document,) = documents(tmp_path / "runs.json")

    assert isinstance(document, Document)
    assert document.value[0]["traj"][1]["content"] == "broken � emoji \U0001f600"  # type: ignore[index]


JUNK = st.sampled_from(
    [None, True, -1, 2**70, 1.5, "", "x", "{", [], [None], [[]], {}, {"a": 1}, [{"role": 3}], "9" * 5000]
)


def _places(value: object, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, item in items for place in _places(item, (*at, key)))]


def _shorter(value: object) -> object:
    """The value with lists of at most ten: each place of a record is to be met often enough."""
    if isinstance(value, dict):
        return {key: _shorter(item) for key, item in value.items()}
    return [_shorter(item) for item in value[:10]] if isinstance(value, list) else value


VALUES = [
    (path.name, _shorter(item.value))
    for path in sorted(FIXTURES.glob("*.json*"))
    for item in list(documents(path))[:3]
    if isinstance(item, Document)
]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_record_breaks_an_import(data: st.DataObject):
    """Whatever stands in any place of a record: its spans can be written, or it is a bad record."""
    _, value = data.draw(st.sampled_from(VALUES), label="record")
    broken = copy.deepcopy(value)
    place = data.draw(st.sampled_from(_places(value)), label="place")
    junk = data.draw(JUNK, label="junk")
    if place:
        inner: Any = broken
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = junk
    else:
        broken = junk
    first = format_of(value)
    for form in {id(one): one for one in (*FORMATS, first) if one is not None}.values():
        if not form.claims(broken):
            continue
        for number, record in enumerate(form.records([Document(where="", value=broken)])):
            try:
                spans = list(form.spans(record, Place(source="x", number=number)))
            except BadRecord:
                continue
            encode_traces(spans)


@pytest.mark.parametrize("bad", [[], {}, None, 5.0])
def test_a_trace_id_that_is_none_costs_its_span_alone(bad: object) -> None:
    """Also where redfirst's own marks are looked for first, in all spans of the files."""
    ours = {"attributes": {"redfirst.run": "x"}, "context": {"trace_id": bad, "span_id": "1" * 16}}
    whole = {
        "context": {"trace_id": "2" * 32, "span_id": "1" * 16},
        "start_time": "2026-01-01T00:00:00+00:00",
    }
    form = next(one for one in FORMATS if one.name == "phoenix")
    first, second = form.records([Document(where="", value={"data": [ours, whole]})])

    with pytest.raises(BadRecord, match=r"expected a span with context\.trace_id"):
        form.spans(first, Place(source="x", number=0))
    assert [span.trace_id for span in form.spans(second, Place(source="x", number=1))] == ["2" * 32]


@pytest.mark.parametrize(
    ("number", "kept"),
    [(2**63 - 1, 2**63 - 1), (-(2**63), -(2**63)), (2**63, str(2**63)), (2**70, str(2**70))],
)
def test_a_number_wider_than_otlp_keeps_its_digits(tmp_path: Path, number: int, kept: object) -> None:
    """JSON has integers of any width, OTLP of 64 bits: a wider one is text, alone and in a list."""
    span = {
        "trace_id": "1" * 32,
        "span_id": "2" * 16,
        "start_time_unix_nano": 1,
        "attributes": {"wide": number, "several": [number, 1]},
    }
    (tmp_path / "x.json").write_text(
        json.dumps({"trace": {"trace_info": {"trace_id": "tr-1"}, "spans": [span]}})
    )
    assert main(["import", "mlflow", str(tmp_path / "x.json"), "--out", str(tmp_path / "out")]) == 0
    (written,) = read_files([tmp_path / "out"]).spans

    assert written.attributes["wide"] == kept
    assert written.attributes["several"] == (kept, 1)
