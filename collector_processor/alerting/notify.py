"""Short texts to people: chat, pager, mail, whatever apprise reaches."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from redfirst.collector_processor.alerting.alertmanager import beginnings, scenarios
from redfirst.collector_processor.alerting.detector import Status
from redfirst.collector_processor.alerting.webhook import Posted
from redfirst.collector_processor.extras import need
from redfirst.collector_processor.posting.poster import from_environment
from redfirst.collector_processor.settings import NotifySettings
from redfirst.evaluators.errors import ConfigurationError

Json = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who is told, with the URL read from the environment."""

    name: str
    url: str = field(repr=False)


def people(
    settings: Iterable[NotifySettings], environment: Mapping[str, str] = os.environ
) -> tuple[Person, ...]:
    """Everybody who is to be told.

    Raises:
        ConfigurationError: two have one name, a variable is not set, or apprise knows no such URL.
        MissingExtra: apprise is not installed.
    """
    found: dict[str, Person] = {}
    for entry in settings:
        where = f"serve: alerts: notify: {entry.name}"
        if entry.name in found:
            raise ConfigurationError(f"{where}: there are two of this name; each needs its own.")
        need("apprise", extra="notify", wanted=where)
        from apprise import Apprise

        url = from_environment(entry.url, environment, where)
        if not Apprise().add(url):
            raise ConfigurationError(f"{where}: apprise knows no such URL; see its list of services.")
        found[entry.name] = Person(name=entry.name, url=url)
    return tuple(found.values())


def tell(person: Person, body: Mapping[str, Json]) -> Posted:
    """Tell one person once. apprise says only whether it was delivered, so a failure is tried again."""
    from apprise import Apprise, NotifyType

    kind = NotifyType.FAILURE if body["status"] == Status.FIRING else NotifyType.SUCCESS
    channel = Apprise()
    channel.add(person.url)
    delivered = channel.notify(title=_title(body), body=_text(body), notify_type=kind)
    return Posted(
        delivered=bool(delivered), reason="ok" if delivered else "not_delivered", again=not delivered
    )


def _title(body: Mapping[str, Json]) -> str:
    return f"redfirst: {body['agent'] or 'agent without a name'} {body['status'].replace('_', ' ')}"


def _text(body: Mapping[str, Json]) -> str:
    lines = [str(body["text"])]
    lines += [f"{reason['runs']}× {reason['check']}: {reason['example']}" for reason in body["reasons"]]
    lines += body["links"] or body["failing_runs"]
    lines += beginnings(body)
    lines += [f"covered by scenario {name}" for name in scenarios(body)]
    if body["freeze"]:
        lines.append(str(body["freeze"]))
    return "\n".join(lines)
