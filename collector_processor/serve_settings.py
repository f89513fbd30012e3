"""The settings that ``serve`` runs with: the project's, with what the environment overrides."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pydantic import ValidationError

from redfirst.evaluators.errors import ConfigurationError
from redfirst.replay.project import ServeSettings

_WITH_SECRETS = frozenset({"forward", "alerts"})
"""Settings whose values may hold headers: never printed."""


def in_force(configured: ServeSettings, environment: Mapping[str, str] = os.environ) -> ServeSettings:
    """The settings with ``REDFIRST_*`` applied.

    Raises:
        ConfigurationError: a variable has no such value; the message names it.
    """
    names = {name: f"REDFIRST_{name.upper()}" for name in ServeSettings.model_fields}
    given = {name: environment[variable] for name, variable in names.items() if environment.get(variable)}
    try:
        return ServeSettings.model_validate({**configured.model_dump(), **given})
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        name = str(first["loc"][0])
        shown = "" if name in _WITH_SECRETS else f"={given.get(name)}"
        raise ConfigurationError(f"{names[name]}{shown}: {first['msg']}.") from None
