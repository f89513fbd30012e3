"""What a scripted model may do wrong, and the dice that decide when."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

HASTE = 0.8
"""Share of seeds on which any model tries to cancel or refund before it verifies. A guard can catch that."""


@dataclass(frozen=True, slots=True)
class Habits:
    """Bad habits of a model. A healthy one has none."""

    chance: float = 0.8
    """Share of seeds on which they show."""
    skips_verification: bool = False
    loops_on_lookup: bool = False
    answers_unchecked: bool = False
    refunds_over_limit: bool = False
    touches_second_order: bool = False
    acts_on_impossible: bool = False

    def show(self, seed: int) -> bool:
        """Whether they show on this seed."""
        return draw(seed, "habit") < self.chance


DEFECTS: dict[str, Habits] = {
    "skips_verification": Habits(skips_verification=True),
    "loops_on_lookup": Habits(loops_on_lookup=True),
    "answers_unchecked": Habits(answers_unchecked=True),
    "refund_over_limit": Habits(refunds_over_limit=True),
    "touches_second_order": Habits(touches_second_order=True),
    "acts_on_impossible": Habits(acts_on_impossible=True),
    "rare_slip": Habits(skips_verification=True, chance=0.05),
}
"""Habits by the name of the variant that has them."""


def hasty(seed: int) -> bool:
    """Whether the model of this seed is hasty."""
    return draw(seed, "haste") < HASTE


def draw(seed: int, *what: object) -> float:
    """A number in [0, 1) fixed by the seed and the occasion."""
    text = "/".join(str(part) for part in (seed, *what))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32
