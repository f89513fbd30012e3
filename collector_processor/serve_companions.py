"""What a configuration asks to run beside the pipeline."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping

from redfirst.collector_processor.alerts import Policy
from redfirst.collector_processor.alerts_watch import Alerts
from redfirst.collector_processor.companions import Companion
from redfirst.collector_processor.forwarding import Forwarding
from redfirst.collector_processor.forwarding_destinations import destinations
from redfirst.collector_processor.home import Home
from redfirst.collector_processor.webhook import webhooks
from redfirst.replay.project import ServeSettings


def companions(
    settings: ServeSettings,
    home: Home,
    *,
    say: Callable[[str], None],
    environment: Mapping[str, str] = os.environ,
) -> tuple[Companion, ...]:
    """Forwarding and alerts, with what they take from the environment.

    Raises:
        ConfigurationError: a destination or a webhook is wrong, or a variable that it names is not set.
    """

    def told(text: str) -> None:
        # whoever read our output may have gone, which is no reason to stop work
        with contextlib.suppress(OSError, ValueError):
            say(text)

    return (
        Forwarding(destinations(settings.forward, environment), home.folder, say=told),
        Alerts(
            Policy.of(settings.alerts), webhooks(settings.alerts.webhooks, environment), home.folder, say=told
        ),
    )
