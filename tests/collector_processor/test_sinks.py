"""Every kind of backend ends with the scores of the newest version, whatever broke off on the way."""

from __future__ import annotations

import pytest

from redfirst.collector_processor.settings import SinkSettings
from redfirst.collector_processor.sinks.backends import KINDS, backends
from redfirst.collector_processor.sinks.sink import NotTaken, Sink, Told
from redfirst.evaluators.errors import ConfigurationError
from tests.collector_processor.sinking import (
    CALL,
    CLEAN,
    FLAGGED,
    ROOT,
    SESSION,
    TRACE,
    Held,
    MemoryBackend,
    a_root,
    a_run,
    verdict,
)

WITHDRAWING = sorted(kind for kind, about in KINDS.items() if about.withdraws)


def a_sink(kind: str) -> Sink:
    entry = SinkSettings(name="x", kind=kind, endpoint="http://localhost", project="shop")  # type: ignore[arg-type]
    return KINDS[kind].make(entry)


def tell(sink: Sink, backend: MemoryBackend, *verdicts: object, before: Told | None = None) -> Told:
    """Tell one version, as the worker does; what the backend may hold afterwards."""
    about = a_run(*verdicts)
    now = sink.told(about)
    held = now
    if before is not None:
        held = Told(
            **{
                **now.to_json(),
                "names": (*before.names, *now.names),
                "places": (*before.places, *now.places),
            }
        )
    sink.tell(about, held, backend)
    return now


def fresh(kind: str, *verdicts: object) -> Held:
    """What a backend holds that was told nothing else."""
    backend = MemoryBackend(kind)
    tell(a_sink(kind), backend, *verdicts)
    return values(backend)


def values(backend: MemoryBackend) -> Held:
    """What is held, without the backend's own ids."""
    return {
        str(key) if not isinstance(row, list) else str(row[:2]): row for key, row in backend.held().items()
    }


@pytest.mark.parametrize("kind", WITHDRAWING)
def test_telling_twice_is_telling_once(kind: str) -> None:
    """A run that is sent again because an answer was lost is not doubled."""
    sink, backend = a_sink(kind), MemoryBackend(kind)
    told = tell(sink, backend, *FLAGGED)
    tell(sink, backend, *FLAGGED, before=told)

    assert len(backend.held()) == len(values(backend))
    assert values(backend) == fresh(kind, *FLAGGED)


@pytest.mark.parametrize("kind", WITHDRAWING)
def test_a_later_version_replaces_the_one_before(kind: str) -> None:
    """What a later version says no more is not left behind, and what it says anew is there."""
    sink, backend = a_sink(kind), MemoryBackend(kind)
    told = tell(sink, backend, *FLAGGED, verdict("policy", "failed"))
    tell(sink, backend, *CLEAN, before=told)

    assert values(backend) == fresh(kind, *CLEAN)
    assert fresh(kind, *CLEAN) != fresh(kind, *FLAGGED)


@pytest.mark.parametrize("kind", WITHDRAWING)
def test_an_erased_run_leaves_nothing(kind: str) -> None:
    """Withdrawing deletes every score, and doing it twice is no error."""
    sink, backend = a_sink(kind), MemoryBackend(kind)
    told = Told.from_json(tell(sink, backend, *FLAGGED).to_json())
    assert backend.held()

    sink.withdraw(told, backend)
    assert backend.held() == {}
    sink.withdraw(told, backend)


@pytest.mark.parametrize("kind", WITHDRAWING)
def test_what_breaks_off_anywhere_is_made_good_by_the_next_try(kind: str) -> None:
    """Whichever request's answer is lost, on the way to a second version: trying again ends as if none had been."""
    sink, whole = a_sink(kind), MemoryBackend(kind)
    first = tell(sink, whole, *FLAGGED)
    before = len(whole.requests)
    tell(sink, whole, *CLEAN, before=first)
    for lost in range(before + 1, len(whole.requests) + 1):
        backend = MemoryBackend(kind)
        tell(sink, backend, *FLAGGED)
        backend.breaks_at = lost
        with pytest.raises(NotTaken):
            tell(sink, backend, *CLEAN, before=first)
        tell(sink, backend, *CLEAN, before=first)

        assert values(backend) == fresh(kind, *CLEAN), f"request {lost - before}"
        assert len(backend.held()) == len(values(backend))


@pytest.mark.parametrize("kind", ["phoenix", "mlflow", "langsmith"])
def test_a_trace_that_is_not_there_yet_is_said_to_be(kind: str) -> None:
    """The worker is told to try again, for this run alone."""
    sink, backend = a_sink(kind), MemoryBackend(kind)
    backend.there = False
    with pytest.raises(NotTaken) as refused:
        tell(sink, backend, *FLAGGED)
    assert (refused.value.reason, refused.value.again, refused.value.whole) == ("not_there", True, False)
    backend.there = True
    tell(sink, backend, *FLAGGED)

    assert values(backend) == fresh(kind, *FLAGGED)


@pytest.mark.parametrize("kind", WITHDRAWING)
def test_missing_evidence_is_never_a_number(kind: str) -> None:
    """An inconclusive check has no score of 0, and one that does not apply is not told."""
    backend = MemoryBackend(kind)
    tell(a_sink(kind), backend, *FLAGGED)
    sent = [body for _, _, body in backend.requests if body]

    assert "recovery" not in str(sent)
    for body in sent:
        for one in _dicts(body):
            if "redfirst.recall" in (one.get("name"), one.get("key"), one.get("assessment_name")):
                numbers = [value for value in _dicts_values(one) if isinstance(value, int | float)]
                assert [value for value in numbers if value != 1] == []  # the version


def _dicts(value: object) -> list[dict[str, object]]:
    if isinstance(value, dict):
        return [value, *(found for item in value.values() for found in _dicts(item))]
    return [found for item in value for found in _dicts(item)] if isinstance(value, list) else []


def _dicts_values(value: object) -> list[object]:
    if isinstance(value, dict):
        return [found for item in value.values() for found in _dicts_values(item)]
    return [value]


def test_a_run_of_opik_needs_something_to_hang_on() -> None:
    """Without a thread and without a trace id of Opik's own, it is given up with the reason, not tried for days."""
    sink, backend = a_sink("opik"), MemoryBackend("opik")
    about = a_run(*FLAGGED, session=None)
    with pytest.raises(NotTaken) as refused:
        sink.tell(about, sink.told(about), backend)
    assert (refused.value.reason, refused.value.again) == ("no_target", False)

    named = a_run(*FLAGGED, session=None, root=a_root(**{"opik.trace_id": "0197"}))
    sink.tell(named, sink.told(named), backend)
    assert {target for target, _ in backend.held()} == {"0197"}


@pytest.mark.parametrize(
    "answer", [None, [], {"trace": None}, {"trace": {"trace_info": {"assessments": [1]}}}]
)
def test_what_is_no_mlflow_is_a_backend_that_cannot_be_had(answer: object) -> None:
    """A proxy's page with status 200, for one: the run waits, and the worker lives."""
    about = a_run(*CLEAN)
    sink = a_sink("mlflow")
    with pytest.raises(NotTaken) as refused:
        sink.tell(about, sink.told(about), lambda *_: answer)

    assert (refused.value.reason, refused.value.again, refused.value.whole) == ("odd_answer", True, True)


def test_phoenix_is_told_on_the_trace_on_the_span_that_shows_it_and_on_the_session() -> None:
    """Every check on the trace, the failure on its span, and the run on its root and its session."""
    backend = MemoryBackend("phoenix")
    tell(a_sink("phoenix"), backend, *FLAGGED)
    held = {key[:3]: label for key, label in backend.held().items()}

    assert held == {
        ("trace", TRACE, "redfirst"): "flagged",
        ("trace", TRACE, "redfirst.repeats"): "failed",
        ("trace", TRACE, "redfirst.termination"): "passed",
        ("trace", TRACE, "redfirst.recall"): "inconclusive",
        ("span", CALL, "redfirst.repeats"): "failed",
        ("span", ROOT, "redfirst"): "flagged",
        ("session", SESSION, "redfirst"): "flagged",
    }


def test_a_backend_needs_what_its_kind_needs() -> None:
    """Each mistake is named with the entry and the key."""
    given = {"name": "b", "kind": "braintrust", "endpoint": "https://api.example"}
    with pytest.raises(ConfigurationError, match=r"serve: sinks: b: braintrust needs project"):
        backends([SinkSettings(**given)])  # type: ignore[arg-type]
    entry = SinkSettings(name="b", kind="mlflow", endpoint="env:NOWHERE_SET")
    with pytest.raises(ConfigurationError, match="NOWHERE_SET is not set"):
        backends([entry], {})
    with pytest.raises(ConfigurationError, match="there are two of this name"):
        backends([SinkSettings(name="b", kind="mlflow", endpoint="http://localhost")] * 2)
