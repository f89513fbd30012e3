"""Real backends that are told verdicts by a real ``redfirst serve``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.backends.servers import Gate, Jaeger, MlflowBackend, PhoenixBackend
from tests.frameworks.conftest import programs, pytest_runtest_protocol, serve

__all__ = ["programs", "pytest_runtest_protocol", "serve"]


@pytest.fixture(scope="session")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PhoenixBackend]:
    """Phoenix with an empty database."""
    folder = tmp_path_factory.mktemp("phoenix")
    made = PhoenixBackend(folder, folder / "beyond-loopback")
    try:
        made.start()
        yield made
    finally:
        made.end()
    assert not (folder / "beyond-loopback").exists()


@pytest.fixture(scope="session")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowBackend]:
    """MLflow with an empty database."""
    folder = tmp_path_factory.mktemp("mlflow")
    made = MlflowBackend(folder, folder / "beyond-loopback")
    try:
        made.start()
        yield made
    finally:
        made.end()
    assert not (folder / "beyond-loopback").exists()


@pytest.fixture(scope="session")
def jaeger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jaeger]:
    """Jaeger that holds nothing."""
    made = Jaeger(tmp_path_factory.mktemp("jaeger"))
    try:
        made.start()
        yield made
    finally:
        made.end()


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Shut, before no backend."""
    made = Gate()
    yield made
    made.shut()
