"""The scripted model reads: messages, tool descriptions, error texts, the policy; and nothing else."""

from __future__ import annotations

import copy
import json
from itertools import pairwise

import pytest
from bookshop.agent import PROMPT, make
from bookshop.habits import DEFECTS, HASTE, draw, hasty
from bookshop.model import ScriptedModel
from bookshop.orders import fresh
from bookshop.tasks import task
from bookshop.tools import PARAMETERS, build, schemas
from bookshop.wishes import Wish, wishes

CALM = next(seed for seed in range(100) if not hasty(seed))
OFFERED = schemas(build(fresh()))


def ask(messages, *, seed=CALM, offered=OFFERED, prompt=PROMPT):
    """One completion."""
    return ScriptedModel(seed)([{"role": "system", "content": prompt}, *messages], offered, "scripted-1")


def names(completion):
    """The tools a completion wants."""
    return [call["function"]["name"] for call in completion["choices"][0]["message"].get("tool_calls", ())]


def without_description(name):
    """The offered tools, one of them undescribed."""
    offered = copy.deepcopy(OFFERED)
    for item in offered:
        if item["function"]["name"] == name:
            item["function"]["description"] = ""
    return offered


def test_a_completion_has_the_shape_of_openais():
    """Choices, message, tool calls, finish reason and usage are where clients look for them."""
    wants = ask(task("where-is-it").messages)
    says = ask([{"role": "user", "content": "Hello"}])

    assert wants["model"] == "scripted-1"
    assert wants["choices"][0]["finish_reason"] == "tool_calls"
    assert json.loads(wants["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]) == {
        "order_id": "A-1001"
    }
    assert says["choices"][0]["finish_reason"] == "stop"
    assert says["choices"][0]["message"]["content"]
    assert wants["usage"]["total_tokens"] == sum(
        wants["usage"][kind] for kind in ("prompt_tokens", "completion_tokens")
    )


def test_the_same_question_has_the_same_answer():
    """One seed and one conversation give one completion, to the byte."""
    assert ask(task("cancel").messages) == ask(task("cancel").messages)


def test_another_seed_may_take_another_way():
    """Seeds differ in haste; the share is what it is said to be."""
    share = sum(hasty(seed) for seed in range(2000)) / 2000

    assert abs(share - HASTE) < 0.05


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_shows_on_its_share_of_seeds(defect):
    """The chance of a habit is a property of seeds, not of calls."""
    habits = DEFECTS[defect]

    assert abs(sum(habits.show(seed) for seed in range(2000)) / 2000 - habits.chance) < 0.05


@pytest.mark.parametrize(
    ("tool", "task_id", "then"),
    [
        ("get_order", "where-is-it", "an answer nobody looked up"),
        ("verify_identity", "new-address", "an unverified change"),
        ("request_approval", "large-refund", "an unapproved refund"),
        ("cancel_order", "cancel", "no cancellation"),
        ("update_order", "new-address", "no change"),
        ("refund", "torn-cover", "no refund"),
        ("transfer", "late-delivery", "no credit"),
    ],
)
def test_a_tool_without_a_description_is_not_found(record, tool, task_id, then):
    """Emptying a description changes what the model does: it leaves the tool out."""
    messages = list(task(task_id).messages)
    whole = record(lambda: make(seed=CALM)(messages))
    blind = record(lambda: make(seed=CALM, offered=without_description(tool))(messages))

    assert tool in [call.name for call in whole.tool_calls]
    assert tool not in [call.name for call in blind.tool_calls], then


def test_a_bare_error_is_given_up_on_where_a_helpful_one_is_recovered_from():
    """The postcode's format stands in the error text; replaced by "Error" the model cannot know it."""
    messages = [*task("odd-postcode").messages]
    for text in (
        json.dumps({"order_id": "A-1007", "customer_id": "C-14", "status": "processing", "total": "36.00"}),
        "Error: a postcode is five digits without spaces, such as 10115; got '80 331'",
    ):
        wanted = ask(messages)["choices"][0]["message"]
        messages.append(wanted)
        messages.append({"role": "tool", "tool_call_id": wanted["tool_calls"][0]["id"], "content": text})
    helped = ask(messages)["choices"][0]["message"]["tool_calls"][0]["function"]
    messages[-1] = {**messages[-1], "content": "Error"}
    bare = ask(messages)["choices"][0]["message"]

    assert json.loads(helped["arguments"]) == {"customer_id": "C-14", "postcode": "80331"}
    assert "80331" not in json.dumps(bare)


def test_bare_errors_end_the_conversation():
    """A model that only ever reads "Error" tries again at most once, then says that it could not."""
    for seed in range(20):
        messages = list(task("where-is-it").messages)
        while wanted := ask(messages, seed=seed)["choices"][0]["message"].get("tool_calls"):
            messages.append({"role": "assistant", "content": None, "tool_calls": wanted})
            messages.append({"role": "tool", "tool_call_id": wanted[0]["id"], "content": "Error"})

        assert 3 <= len(messages) <= 5
        assert "did not work" in ask(messages, seed=seed)["choices"][0]["message"]["content"]


@pytest.mark.parametrize(
    ("sentence", "task_id", "tool"),
    [
        ("above 100 EUR needs", "large-refund", "request_approval"),
        ("erify", "new-address", "verify_identity"),
    ],
)
def test_a_sentence_taken_out_of_the_policy_is_not_followed(sentence, task_id, tool):
    """Approval and verification happen because the prompt asks for them."""
    messages = list(task(task_id).messages)
    seen = set()
    prompt = " ".join(PROMPT.split()).replace(sentence, "")
    tools = build(task(task_id).shop())
    for _ in range(6):
        message = ask(messages, prompt=prompt)["choices"][0]["message"]
        messages.append(message)
        for call in message.get("tool_calls", ()):
            seen.add(call["function"]["name"])
            result = tools[call["function"]["name"]](**json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})

    assert seen
    assert tool not in seen


def test_several_lookups_may_share_a_turn():
    """On some seeds the model looks two orders up side by side, on others one by one."""
    both = [{"role": "user", "content": "Where is A-1001? And where is A-1009?"}]

    assert {len(names(ask(both, seed=seed))) for seed in range(20)} == {1, 2}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Please cancel A-1003.", [Wish("cancel", "A-1003")]),
        ("A-1005 is torn. Please refund 60.00 EUR.", [Wish("refund", "A-1005", "60.00")]),
        ("Please refund order A-1006 in full", [Wish("refund", "A-1006")]),
        ("Change A-1002 to 3 copies and send it to 8 Oak Lane.", [
            Wish("quantity", "A-1002", "3"), Wish("address", "A-1002", "8 Oak Lane"),
        ]),
        ("Where are A-1001 and A-1002?", [Wish("status", "A-1001"), Wish("status", "A-1002")]),
        ("Good morning!", []),
    ],
)  # fmt: skip
def test_wishes_are_read_from_the_text(text, found):
    """Kind, order and value of everything a customer asks for, in order."""
    assert wishes([{"role": "user", "content": text}]) == found


def test_a_message_without_a_wish_leaves_the_last_one_standing():
    """ "My postcode is 10115" answers a question; what was asked for stays."""
    asked = wishes(task("postcode-later").messages)

    assert asked == [Wish("address", "A-1002", "6 Canal View")]


def test_draws_are_even_and_independent_of_the_process():
    """No hash randomisation: the numbers are the same everywhere."""
    numbers = sorted(draw(seed, "x") for seed in range(1000))

    assert draw(0, "haste") == pytest.approx(0.77, abs=0.01)
    assert max(later - earlier for earlier, later in pairwise(numbers)) < 0.02


def test_every_tool_is_described_and_has_a_schema():
    """Seven tools, each with what a model needs to use it."""
    assert len(OFFERED) == 7
    for item in OFFERED:
        function = item["function"]
        assert function["description"]
        assert set(function["parameters"]["required"]) <= set(PARAMETERS[function["name"]]["properties"])
