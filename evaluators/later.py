"""Facts that are worked out when they are first asked for, and look as if they always had been."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class Later(Generic[T]):
    """A value and how to work it out, which happens at most once."""

    __slots__ = ("_make", "_value")

    _value: T

    def __init__(self, make: Callable[[], T]) -> None:
        self._make: Callable[[], T] | None = make

    def get(self) -> T:
        """The value."""
        make = self._make
        if make is not None:
            self._value = make()
            self._make = None
        return self._value

    def __reduce__(self) -> tuple[Callable[[T], T], tuple[T]]:
        """Copied and pickled as its value."""
        return _itself, (self.get(),)


def _itself(value: T) -> T:
    return value


class OnDemand(Generic[T]):
    """A field of a frozen dataclass without slots that may be given as ``Later``.

    Whoever reads the field sees the value, and so do ``repr``, equality, hash and ``replace``.
    """

    __slots__ = ("_default", "_name")

    def __init__(self, default: T) -> None:
        self._default = default
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> T: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> T:
        if instance is None:
            return self._default
        held = instance.__dict__
        value: T | Later[T] = held[self._name]
        if isinstance(value, Later):
            value = value.get()
            held[self._name] = value
        return value

    def __set__(self, instance: object, value: T | Later[T]) -> None:
        instance.__dict__[self._name] = value


def as_held(owner: object, name: str) -> Any:
    """What such a field holds, to be handed on without being worked out."""
    return owner.__dict__[name]
