"""Time and chance of a replay."""

from __future__ import annotations

import random

from redfirst.replay.world import StreamIds, World


def test_a_stream_does_not_depend_on_draws_from_another() -> None:
    """One more random number in one module shifts no id of another."""
    one, two = (World(start=0.0, tick=1.0, seed=7) for _ in range(2))
    one.stream("a").random()

    assert one.stream("b").random() == two.stream("b").random()
    assert one.stream("b").random() != World(start=0.0, tick=1.0, seed=8).stream("b").random()


def test_span_ids_draw_nothing_an_agent_would_have_drawn() -> None:
    """Tracing a call more or less leaves the agent's random numbers alone."""
    random.seed(1)
    before = random.getstate()
    ids = StreamIds(World(start=0.0, tick=1.0, seed=7))

    assert ids.generate_span_id() != ids.generate_span_id()
    assert ids.generate_trace_id() > 0
    assert random.getstate() == before
