"""What is asked of a scenario: by which agent, what is live, how often, under which conditions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from redfirst.evaluators import ConfigurationError
from redfirst.replay.injection import FaultKind

LIVE_RUNS = 5
"""Runs in ``tools`` mode unless another number is asked for."""
INFRA_RETRIES = 2
"""How often a run that infrastructure ended is made again, unless another number is asked for."""


class Mode(StrEnum):
    """What answers the agent."""

    RECORDED = "recorded"
    """Model and tools from the tape: verifies a fix of the code."""
    TOOLS = "tools"
    """Tools from fixtures, the model live: verifies a fix of the code, the prompt or the model."""
    MODEL = "model"
    """The recorded model, turn by turn, and the tools that only read live: finds answers that have moved."""

    @property
    def live_model(self) -> bool:
        """Whether the model answers live, so that one run says little."""
        return self is Mode.TOOLS


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of a scenario."""

    agent: str | None = None
    """``module:factory`` instead of the configured one."""
    mode: Mode = Mode.RECORDED
    runs: int | None = None
    """How often: 1 in recorded mode and ``LIVE_RUNS`` in tools mode when not given."""
    infra_retries: int = INFRA_RETRIES
    """How often one run is made again that a failure of the infrastructure ended."""
    step_cap: int | None = None
    """Given to the factory as ``step_cap``."""
    inject: tuple[str, FaultKind] | None = None
    """A tool, and the fault that one call of it meets."""

    @property
    def times(self) -> int:
        """The number of runs."""
        return self.runs or (LIVE_RUNS if self.mode.live_model else 1)

    @property
    def label(self) -> str:
        """The mode under which the runs are kept: runs with a fault in them are never taken for others."""
        return self.mode.value if self.inject is None else f"{self.mode.value}+inject"

    @property
    def conditions(self) -> dict[str, object]:
        """What a kept run says of the conditions it was made under."""
        return {
            "agent": self.agent,
            "cap": None if self.step_cap is None else f"step_cap={self.step_cap}",
            "inject": None if self.inject is None else list(self.inject),
        }

    def require_sense(self) -> None:
        """Let only what can be done through.

        Raises:
            ConfigurationError: a number that is none.
        """
        if self.runs is not None and self.runs < 1:
            raise ConfigurationError(f"{self.runs} runs: give a number of at least 1.")
        if self.infra_retries < 0:
            raise ConfigurationError(f"--infra-retries {self.infra_retries}: give 0 or more.")
        if self.step_cap is not None and self.step_cap < 1:
            raise ConfigurationError(f"--step-cap {self.step_cap}: give a number of at least 1.")
        if self.step_cap is not None and not self.mode.live_model:
            raise ConfigurationError(
                "--step-cap: a tape holds no turn beyond the recorded ones; use --mode tools, with the model live."
            )
