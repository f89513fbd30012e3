"""How a replay ends without a verdict. Every way has a name."""

from __future__ import annotations

from enum import StrEnum


class StopKind(StrEnum):
    """Why the harness stopped a run, or could not judge it."""

    OFF_TAPE = "off_tape"
    """The agent made a call that was not recorded."""
    RECORDING_STALE = "recording_stale"
    """The system prompt or the tools offered to the model are not those of the recording."""
    CANNOT_REBUILD = "cannot_rebuild"
    """A recorded value or exception cannot be given back in its own type, and the run hangs on it."""
    NETWORK = "network"
    """The agent opened a connection in recorded mode."""
    GRADER_READ = "grader_read"
    """The agent read the scenario it is judged by."""
    AGENT_NOT_CALLED = "agent_not_called"
    """The factory's function returned without any agent, model or tool call."""
    UNSEEN_CALL = "unseen_call"
    """The run's spans tell of a call that nobody asked the replay to answer: it was made for real, or made up."""
    TIMED_OUT = "timed_out"
    CHILD_DIED = "child_died"
    """The process of the agent ended without a result."""
    OUR_FAULT = "our_fault"
    """redfirst's own instrumentation failed during the run."""


class HarnessStop(BaseException):
    """Ends a replay through the agent's own ``except Exception``.

    The one exception outside ``RedfirstError``: an agent must not be able to mistake a missing
    recording for a tool error and go on. The environment keeps it, so a framework that swallows
    even this changes nothing.
    """

    def __init__(self, kind: StopKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
