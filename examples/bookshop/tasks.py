"""A day at the shop: which tasks are run, by which variant of the agent, on which seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from . import variants
from .agent import Handler, make
from .catalogue import TASKS, Task, task
from .habits import DEFECTS, Habits, draw, hasty

__all__ = ["DEFECTIVE", "HEALTHY", "TASKS", "Conversation", "Task", "conversations", "fires", "play", "task"]

HEALTHY = "healthy"
"""The variant with nothing wrong: ``bookshop.agent:make``."""

DEFECTIVE: Mapping[str, str] = {
    "dropped_guard": "cancel",
    "retried_refund": "slow-gateway",
    "early_cap": "three-wishes",
    "skips_verification": "new-address",
    "loops_on_lookup": "where-is-it",
    "answers_unchecked": "where-is-it",
    "refund_over_limit": "torn-cover",
    "touches_second_order": "new-address",
    "acts_on_impossible": "cancel-shipped",
    "rare_slip": "new-address",
}
"""Variant → the task on which its defect shows."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One run of a task by one variant of the agent."""

    task: Task
    variant: str
    seed: int

    @property
    def factory(self) -> Callable[..., Handler]:
        """What makes the agent of this conversation."""
        made: Callable[..., Handler] = make if self.variant == HEALTHY else getattr(variants, self.variant)
        return made


def play(conversation: Conversation) -> str:
    """Run a conversation in a shop of its own; what the agent raises stands on its spans and in the answer."""
    shop = conversation.task.shop()
    agent = conversation.factory(shop=shop, seed=conversation.seed)
    try:
        return agent(list(conversation.task.messages))
    except Exception as error:  # noqa: BLE001 - one conversation's failure must not end the day
        return f"({type(error).__name__}: {error})"


def fires(variant: str, seed: int) -> bool:
    """Whether a defect shows on this seed, on its task."""
    if variant == "dropped_guard":
        return hasty(seed)
    return DEFECTS.get(variant, Habits(chance=1)).show(seed)


def conversations(seed: int = 0) -> list[Conversation]:
    """A day at the shop: each task twice by a healthy agent, each defect once where it shows, in mixed order."""
    twice = [one for one in TASKS for _ in range(2)]
    day = [Conversation(one, HEALTHY, seed + place) for place, one in enumerate(twice)]
    for variant, task_id in DEFECTIVE.items():
        firing = next(number for number in range(seed, seed + 10_000) if fires(variant, number))
        day.append(Conversation(task(task_id), variant, firing))
    return sorted(day, key=lambda one: draw(seed, one.task.id, one.variant, one.seed))
