"""Bad scenario files: one clear line each, with its place."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from redfirst.evaluators import ConfigurationError, RedfirstError
from redfirst.replay.files import CannotWrite, write
from redfirst.replay.scenario import load

from .conftest import Place


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("schema: redfirst.scenario/1", "schema: redfirst.scenario/9", r"scenario\.yaml:1: schema is 'redfirst.scenario/9'"),
        ("role: target", "role: guard", "needs at least one check with role: target"),
        ("agent: shop", "agnet: shop", r"scenario\.yaml:\d+: agnet: Extra inputs are not permitted|agent: Field required"),
        ("effect: read", "effect: reads", r"scenario\.yaml:\d+: tools\.lookup\.effect"),
        ("times: any", "times: some", r"scenario\.yaml:\d+: tools\.lookup\.responses\.0\.times"),
        ("/orders/A-1/status", "orders.A-1.status", "is no JSON pointer"),
        ("notes: []", "notes: 7", r"scenario\.yaml:\d+: origin: notes is no list"),
        ("kind: repeats", "kind: repeets", "repeets"),
    ],
)  # fmt: skip
def test_a_fault_in_the_file_is_one_line_that_says_where(place: Place, old: str, new: str, said: str) -> None:
    """File, line, what is wrong."""
    path = place.scenario / "scenario.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))

    with pytest.raises(ConfigurationError, match=said) as problem:
        load(place.scenario)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("name", ["trace.otlp.pb.gz", "model.jsonl", "scenario.yaml"])
def test_a_missing_file_is_named(place: Place, name: str) -> None:
    """And what to do about it."""
    (place.scenario / name).unlink()

    with pytest.raises(ConfigurationError, match=re.escape(name)):
        load(place.scenario)


def test_half_a_recording_is_named_with_its_line(place: Place) -> None:
    """A recording cut short is no shorter recording."""
    path = place.scenario / "model.jsonl"
    path.write_text(path.read_text()[:-40])

    with pytest.raises(ConfigurationError, match=r"model\.jsonl:\d+: not a recorded model turn"):
        load(place.scenario)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("scenario.yaml", lambda body: body.replace(b"please", b"pl\xe9ase"), r"scenario\.yaml:\d+: not UTF-8"),
        ("scenario.yaml", lambda body: body.replace(b'start: "2', b'start: "9'), "give a year from 1970"),
        ("model.jsonl", lambda _: b'{"turn":1,"response":' + b"[" * 99999 + b"]" * 99999 + b"}\n", r"model\.jsonl:1"),
        ("model.jsonl", lambda _: b'{"turn":1,"response":1,"request":[1]}\n', "request and error are mappings"),
        ("model.jsonl", lambda _: b'{"turn":1,"response":1,"request":{"messages":5}}\n', "a list of digests"),
        ("trace.otlp.pb.gz", lambda body: body[:-40], r"trace\.otlp\.pb\.gz: The gzip data end too early"),
        ("trace.otlp.pb.gz", lambda _: b"nonsense", r"trace\.otlp\.pb\.gz: Neither an OTLP"),
    ],
)  # fmt: skip
def test_bytes_that_are_not_what_they_should_be_are_named_with_their_file(
    place: Place, name: str, change: Callable[[bytes], bytes], said: str
) -> None:
    """Encoding, depth, shape and cut: never a traceback, never a guess."""
    path = place.scenario / name
    path.write_bytes(change(path.read_bytes()))

    with pytest.raises(RedfirstError, match=said) as problem:
        _ = load(place.scenario).trace
    assert problem.value.exit_code == 2
    assert "\n" not in str(problem.value)


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(place: Place) -> None:
    """An editor's habits are no fault."""
    before = load(place.scenario).scenario
    path = place.scenario / "scenario.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))

    assert load(place.scenario).scenario == before


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk the old file stands, nothing else is left, and the message says what the system said."""
    path = tmp_path / "proof.json"
    path.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(
        CannotWrite, match=r"proof\.json: cannot be written: No space left on device"
    ) as problem:
        write(path, b"new")
    assert problem.value.exit_code == 3
    assert [entry.name for entry in tmp_path.iterdir()] == ["proof.json"]
    assert path.read_text() == "old"
