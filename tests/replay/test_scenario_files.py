"""Bad scenario files: one clear line each, with its place."""

from __future__ import annotations

import re

import pytest

from redfirst.evaluators import ConfigurationError
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
