"""A receiver for all tests of a file that need nothing special, and a certificate authority."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.otlp.receiver import Receiver, receiving


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    """One that takes bodies of 200,000 bytes."""
    with receiving(tmp_path_factory.mktemp("receiver")) as made:
        yield made


@pytest.fixture(scope="module")
def call(receiver: Receiver) -> Iterator[Callable[..., Any]]:
    """A unary call over gRPC: method and bytes."""
    with grpc.insecure_channel(receiver.grpc) as channel:
        yield lambda method, data, **options: channel.unary_unary(method)(data, timeout=20, **options)


@pytest.fixture
def kept(receiver: Receiver) -> Callable[[], list[Any]]:
    """The spans that were made durable since the test began."""
    before = len(receiver.spans())
    return lambda: receiver.spans()[before:]


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[..., Any]:
    """Makes a receiver of the test's own."""
    return lambda **options: receiving(tmp_path / "journal", **options)
