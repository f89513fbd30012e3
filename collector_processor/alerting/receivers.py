"""Everybody who hears of alerts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from redfirst.collector_processor.alerting.alertmanager import Alertmanager, alertmanagers
from redfirst.collector_processor.alerting.notify import Person, people
from redfirst.collector_processor.alerting.webhook import Webhook, webhooks
from redfirst.collector_processor.settings import AlertSettings
from redfirst.evaluators.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Receivers:
    """The configured receivers, with everything read from the environment."""

    webhooks: tuple[Webhook, ...] = ()
    people: tuple[Person, ...] = ()
    alertmanagers: tuple[Alertmanager, ...] = ()

    @classmethod
    def of(cls, settings: AlertSettings, environment: Mapping[str, str] = os.environ) -> Receivers:
        """The receivers of a configuration.

        Raises:
            ConfigurationError: one is wrong, a name stands twice, or a variable that one names is not set.
            MissingExtra: somebody is to be told by apprise, which is not installed.
        """
        found = cls(
            webhooks=webhooks(settings.webhooks, environment),
            people=people(settings.notify, environment),
            alertmanagers=alertmanagers(settings.alertmanagers, environment),
        )
        names = [one.name for one in found.told]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ConfigurationError(
                f"serve: alerts: a webhook and a notify entry are both named {min(twice)}; each needs its own name."
            )
        return found

    @property
    def told(self) -> tuple[Webhook | Person, ...]:
        """Those who are told each change once."""
        return (*self.webhooks, *self.people)
