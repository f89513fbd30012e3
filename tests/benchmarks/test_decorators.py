"""A slice of ``benchmarks/decorators.py``."""

from __future__ import annotations

import sys

import decorators


def test_a_traced_call_makes_few_calls() -> None:
    """The limit that holds on a busy machine, too."""
    assert decorators.calls_of_a_call() <= decorators.MOST_CALLS


def test_ours_and_the_sdk_are_compared_in_every_situation() -> None:
    """Every span reaches its exporter, and nothing reaches for the network."""
    for situation in decorators.SITUATIONS:
        python = dict.fromkeys(decorators.variants(situation, peers=()), sys.executable)
        found = decorators.measure(situation, python, 1, 40)

        assert found["failed"] == {}
        assert {*found["us"]} == {*python}
        assert {*found["ratio"]} == {*decorators.OURS} & {*python}


def test_a_variant_whose_spans_do_not_arrive_is_not_compared() -> None:
    """Also one that traces although it is switched off."""
    silent = decorators.Worker(sys.executable, "nothing", "small")
    silent.variant = "a peer"
    silent.seconds(10)
    silent.end()
    assert silent.failed == "0 spans of 10 reached its exporter"

    loud = decorators.Worker(sys.executable, "redfirst", "small")
    loud.situation = "disabled"
    loud.seconds(10)
    loud.end()
    assert loud.failed == "10 spans of 0 reached its exporter"
