"""``rules.yaml`` against runs: every defect is seen by the check meant for it, no healthy run by any."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
from bookshop.tasks import DEFECTIVE, HEALTHY, TASKS, Conversation, conversations, fires, play, task

from redfirst.evaluators.check import default_checks, judge
from redfirst.evaluators.rules import load_rules
from redfirst.evaluators.verdict import Outcome, flagged

RULES = load_rules(files("bookshop").joinpath("rules.yaml").read_text(encoding="utf-8"), "rules.yaml")
CHECKS = (*RULES, *default_checks())
MEANT = {
    "dropped_guard": {"verify-before-change"},
    "retried_refund": {"one-refund-per-order", "repeats"},
    "early_cap": {"termination"},
    "skips_verification": {"verify-before-change"},
    "loops_on_lookup": {"repeats", "termination"},
    "answers_unchecked": {"recall:status-question"},
    "refund_over_limit": {"large-refund-needs-approval", "no-correcting-transfer"},
    "touches_second_order": {"state.collateral"},
    "acts_on_impossible": {"shipped-stays"},
    "rare_slip": {"verify-before-change"},
}


def verdicts(record, one):
    """The verdicts on one conversation, by check."""
    return {verdict.check: verdict for verdict in judge(record(lambda: play(one)), CHECKS)}


@pytest.mark.parametrize("one", TASKS, ids=lambda one: one.id)
def test_no_healthy_run_is_flagged(record, one):
    """Twenty seeds, every check: none fails at severity flag, none is left open."""
    for seed in range(20):
        found = verdicts(record, Conversation(one, HEALTHY, seed))

        assert not flagged(found.values()), {c: v.because for c, v in found.items() if v.flags}
        assert Outcome.INCONCLUSIVE not in {verdict.outcome for verdict in found.values()}, f"seed {seed}"


@pytest.mark.parametrize("variant", DEFECTIVE)
def test_a_defect_is_flagged_by_the_checks_meant_for_it(record, variant):
    """On twenty seeds at which it fires, these checks flag it and no other does."""
    firing = [seed for seed in range(1000) if fires(variant, seed)][:20]

    for seed in firing:
        found = verdicts(record, Conversation(task(DEFECTIVE[variant]), variant, seed))
        assert {check for check, verdict in found.items() if verdict.flags} == MEANT[variant], f"seed {seed}"


def test_the_compensated_refund_reaches_the_required_state(record):
    """The sum is right and the state says so: only the rules about the way there fail."""
    one = next(one for one in conversations() if one.variant == "refund_over_limit")
    found = verdicts(record, one)

    assert found["state.required:torn-cover"].outcome is Outcome.PASSED
    assert found["state.collateral"].outcome is Outcome.PASSED


def test_the_earlier_edit_is_required_to_survive(record):
    """The task after an edit has a state to reach, and the healthy run reaches it."""
    found = verdicts(record, Conversation(task("edit-then-move"), HEALTHY, 0))

    assert found["state.required:earlier-edit-stays"].outcome is Outcome.PASSED


def test_every_rule_judges_some_run_of_the_day(record):
    """No rule is idle: each passes or fails on some conversation."""
    judged = {
        check
        for one in conversations()
        for check, verdict in verdicts(record, one).items()
        if verdict.outcome in (Outcome.PASSED, Outcome.FAILED)
    }

    assert {check.id for check in CHECKS} <= judged


def test_every_policy_sentence_that_a_rule_quotes_stands_in_the_policy():
    """The comments of ``rules.yaml`` quote ``policy.md``, and go on doing so."""
    policy = " ".join(files("bookshop").joinpath("policy.md").read_text(encoding="utf-8").split())
    rules = files("bookshop").joinpath("rules.yaml").read_text(encoding="utf-8")
    quotes = re.findall(r'# \d\. "(.+)"', rules)

    assert len(quotes) >= 7
    for quote in quotes:
        for part in quote.split(" … "):
            assert part.lower() in policy.lower(), part
