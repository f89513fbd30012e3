"""The services of ``tests/service``."""

from tests.service.conftest import served, tools

__all__ = ["served", "tools"]  # fixtures
