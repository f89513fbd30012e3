"""What a tape answers, and what it says when it does not."""

from __future__ import annotations

from typing import Any

import pytest

from redfirst.replay.asking import asked
from redfirst.replay.stop import HarnessStop, StopKind
from redfirst.replay.tape import (
    ModelTape,
    ModelTurn,
    Response,
    ToolFixture,
    ToolTape,
    recorded_request,
    write_key,
)


def a_tape(*responses: Response, sources: tuple[str, ...] = ("incident",), **how: Any) -> ToolTape:
    return ToolTape([ToolFixture(name="get", effect="read", responses=responses, **how)], sources=sources)


def answer(value: object, *, times: int | None = None, **how: Any) -> Response:
    return Response(tool="get", when=how.pop("when", {"id": "A"}), returns=value, times=times, **how)


def test_a_call_is_found_by_its_arguments_never_by_its_place() -> None:
    """The second recording answers the first call when its arguments are those of the second."""
    tape = a_tape(answer(1, when={"id": "A"}), answer(2, when={"id": "B"}))

    assert tape.find("get", {"id": "B"}, []).returns == 2


@pytest.mark.parametrize(
    "arguments", [{"id": "A", "page": None}, {"id": " A "}, {"id": "A"}], ids=["null", "white space", "equal"]
)
def test_null_and_absent_are_one_and_white_space_is_folded(arguments: dict[str, Any]) -> None:
    """Arguments are compared in canonical form."""
    assert a_tape(answer(1)).find("get", arguments, []).returns == 1


def test_one_and_true_differ() -> None:
    """Canonical equality keeps types apart."""
    with pytest.raises(HarnessStop):
        a_tape(answer(1, when={"id": 1})).find("get", {"id": True}, [])


def test_equal_calls_are_answered_in_the_order_recorded() -> None:
    """A poll sees the recorded progress, and a miss at its end, never the first answer again."""
    tape = a_tape(answer("waiting", times=1), answer("done", times=1))

    assert [tape.find("get", {"id": "A"}, []).returns for _ in range(2)] == ["waiting", "done"]
    with pytest.raises(HarnessStop, match=r"recorded 2 time\(s\) and every recording has been used"):
        tape.find("get", {"id": "A"}, [])


def test_a_read_after_a_write_is_answered_from_after_that_write() -> None:
    """A recording says which writes came before it, and answers in that state."""
    wrote = write_key("set", {"id": "A"})
    tape = a_tape(answer("old"), answer("new", after=(wrote,)))

    assert tape.find("get", {"id": "A"}, [wrote]).returns == "new"
    assert tape.find("get", {"id": "A"}, []).returns == "old"


def test_ignored_arguments_are_not_compared() -> None:
    """What the code generates afresh does not hide the recording."""
    tape = a_tape(answer(1, when={"id": "A", "key": "k1"}), ignore=("key",))

    assert tape.find("get", {"id": "A", "key": "k2"}, []).returns == 1


def test_recordings_of_other_sources_do_not_answer() -> None:
    """The red run is played from the incident alone."""
    with pytest.raises(HarnessStop, match="The tape holds no call of get"):
        a_tape(answer(1, source="authored")).find("get", {"id": "A"}, [])


def test_a_miss_names_the_nearest_recording_and_the_differing_field() -> None:
    """The message is enough to see what changed."""
    tape = a_tape(
        answer(1, when={"id": "A", "currency": "EUR"}), answer(2, when={"id": "B", "currency": "USD"})
    )

    with pytest.raises(
        HarnessStop, match=r'Nearest: get\(.*"id":"A".*differs in currency: recorded "EUR", asked "GBP"'
    ) as hit:
        tape.find("get", {"id": "A", "currency": "GBP"}, [])
    assert hit.value.kind is StopKind.OFF_TAPE


def test_an_unknown_tool_is_a_miss_that_names_the_known_ones() -> None:
    """A tool the scenario does not have is never live."""
    with pytest.raises(HarnessStop, match=r"has no tool 'drop' \(it has: get\)"):
        a_tape(answer(1)).find("drop", {}, [])


def test_harness_stop_is_no_exception_an_agent_catches() -> None:
    """``except Exception`` in an agent must not turn a miss into a tool error."""
    assert not issubclass(HarnessStop, Exception)


# -- models

SYSTEM = {"role": "system", "content": "be kind"}
USER = {"role": "user", "content": "hello"}


def a_turn(number: int, *messages: dict[str, str], reply: str = "hi", **rest: Any) -> ModelTurn:
    return ModelTurn(
        turn=number,
        response=reply,
        request=recorded_request(asked({"messages": list(messages), **rest}), before=[]),
    )


def test_a_model_turn_is_found_by_its_whole_request() -> None:
    """Each recorded turn answers its own request, once, in any order."""
    longer = {"role": "user", "content": "and?"}
    tape = ModelTape([a_turn(1, SYSTEM, USER, reply="one"), a_turn(2, SYSTEM, USER, longer, reply="two")])

    assert tape.find({"messages": [SYSTEM, USER, longer]}).response == "two"
    assert tape.find({"messages": [SYSTEM, USER]}).response == "one"
    with pytest.raises(HarnessStop, match="Every recorded turn has been used"):
        tape.find({"messages": [SYSTEM, USER]})


@pytest.mark.parametrize(
    ("asked", "kind", "words"),
    [
        ({"messages": [{"role": "system", "content": "be quick"}, USER]}, StopKind.RECORDING_STALE, "changed prompt"),
        ({"messages": [SYSTEM, USER], "tools": [1]}, StopKind.RECORDING_STALE, "the tools offered changed"),
        ({"messages": [SYSTEM, USER], "model": "m2"}, StopKind.RECORDING_STALE, "the model changed"),
        ({"messages": [SYSTEM, USER], "temperature": 1}, StopKind.RECORDING_STALE, "the model's parameters changed"),
        ({"messages": [SYSTEM, {"role": "user", "content": "bye"}]}, StopKind.OFF_TAPE, r'asked .*bye'),
        ({"messages": [SYSTEM, USER, USER]}, StopKind.OFF_TAPE, "recorded no such message"),
    ],
    ids=["prompt", "tools", "model", "parameters", "message", "longer"],
)  # fmt: skip
def test_a_changed_request_is_not_answered_as_if_it_were_unchanged(
    asked: dict[str, Any], kind: StopKind, words: str
) -> None:
    """A recorded model does not read, so it must not answer what it was not asked."""
    tape = ModelTape([a_turn(1, SYSTEM, USER)])

    with pytest.raises(HarnessStop, match=words) as stopped:
        tape.find(asked)
    assert stopped.value.kind is kind


def test_a_difference_is_shown_where_it_begins() -> None:
    """Two long messages are cut to the place where they part."""
    long = "x" * 500
    tape = ModelTape([a_turn(1, {"role": "user", "content": f"{long} old"})])

    with pytest.raises(HarnessStop) as stopped:
        tape.find({"messages": [{"role": "user", "content": f"{long} new"}]})
    assert "old" in stopped.value.message
    assert "new" in stopped.value.message
    assert len(stopped.value.message) < 500


def test_a_derived_turn_is_found_by_its_number() -> None:
    """A turn without a request answers the call of its number, after all turns that have one."""
    tape = ModelTape([a_turn(1, USER, reply="one"), ModelTurn(turn=2, response="end")])

    assert tape.find({"messages": [USER]}).response == "one"
    assert tape.find({"messages": ["whatever"]}).response == "end"


def test_an_equal_write_made_twice_is_two_writes() -> None:
    """A read after the second of two equal writes is answered from after the second."""
    wrote = write_key("add", {})
    tape = a_tape(answer("one", after=(wrote,)), answer("two", after=(wrote, wrote)))

    assert tape.find("get", {"id": "A"}, [wrote, wrote]).returns == "two"
    assert tape.find("get", {"id": "A"}, [wrote]).returns == "one"


def test_the_key_of_a_long_write_is_short_and_its_own() -> None:
    """Each later answer repeats it, so a hundred long writes must not make a scenario of megabytes."""
    one, other = write_key("say", {"text": "word " * 1000}), write_key("say", {"text": "words " * 1000})

    assert one != other
    assert len(one) < 40
    assert write_key("say", {"id": "A"}) == 'say {"id":"A"}'
