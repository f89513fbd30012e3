"""Bodies that were requests once are answered as documented; ``make fuzz`` tries many more."""

from __future__ import annotations

from . import in_process, over_sockets


def test_mutated_bodies_are_refused_or_kept_whole():
    """No other exception; what is accepted is found again by a start and by the scorer; no damaged record is read."""
    figures = in_process.run(4_000, seed=1)

    assert sum(figures.answers.values()) == 4_000
    assert min(figures.answers[answer] for answer in ("refused", "accepted", "partly accepted")) > 100


def test_mutated_requests_get_documented_answers_and_runs_between_them_their_verdicts(served):
    """Over HTTP, gRPC and damaged HTTP: the process stays, and each acknowledged run is judged."""
    figures = over_sockets.run(served, 200, seed=1)

    assert figures.judged == 4
    assert figures.answers["HTTP 200"] > 0
    assert figures.answers["HTTP 400"] > 0
