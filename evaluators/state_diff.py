"""What changed between two states, leaf by leaf, and which changes a pattern allows."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from redfirst.evaluators.canonical import equal, same
from redfirst.evaluators.kleene import Truth, any_of
from redfirst.evaluators.paths import ABSENT, parse_path, show_path

ANY_ONE = "*"
ANY_REST = "**"


@dataclass(frozen=True, slots=True)
class Change:
    """A leaf that was added, removed or changed; what was not there is ``ABSENT``."""

    path: tuple[str, ...]
    before: object
    after: object

    def __str__(self) -> str:
        path = show_path(self.path)
        if self.before is ABSENT:
            return f"{path} was added"
        return f"{path} was removed" if self.after is ABSENT else f"{path} was changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """Changes that are no collateral: a path, and what must be true of a change there."""

    segments: tuple[str, ...]
    """Keys as ``show_path`` writes them; ``*`` is any one, a last ``**`` the rest, be it nothing."""
    mentioned: bool = False
    """The key under the first ``*`` stands, as a whole word, in something the user said."""
    to: tuple[object, ...] | None = None
    """The new values that are allowed; a removal has none."""

    def allows(self, change: Change, said: Iterable[str], *, heard: bool = True) -> Truth:
        """Whether it allows the change; ``heard`` says that ``said`` is all that the user said."""
        keys = [show_path((key,)) for key in change.path]
        rest = self.segments[-1] == ANY_REST
        fixed = self.segments[:-1] if rest else self.segments
        if len(keys) < len(fixed) or (len(keys) > len(fixed) and not rest):
            return False
        if any(want not in (ANY_ONE, key) for want, key in zip(fixed, keys, strict=False)):
            return False
        if self.to is not None:
            if change.after is ABSENT:
                return False
            if any_of(equal(change.after, value) for value in self.to) is not True:
                return False
        if not self.mentioned:
            return True
        return mentions(said, change.path[fixed.index(ANY_ONE)]) or (False if heard else None)


def parse_pattern(path: str) -> tuple[str, ...]:
    """The segments of a path with stars.

    Raises:
        ValueError: the path is empty, or ``**`` stands anywhere but last.
    """
    if not path:
        raise ValueError("the path is empty; write ** for everything")
    segments = tuple(
        part if part in (ANY_ONE, ANY_REST) else show_path(parse_path(part)) for part in path.split(".")
    )
    if ANY_REST in segments[:-1]:
        raise ValueError(f"path {path!r}: ** stands for the rest, so it can only come last")
    return segments


def changes(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[Change]:
    """Every leaf that differs, by path. Lists are compared place by place; an empty container is a leaf."""
    yield from _differences((), before, after)


def mentions(said: Iterable[str], word: str) -> bool:
    """Whether a text holds the word as a whole: ``A-1`` is not mentioned by ``A-10``. Case does not count."""
    wanted = re.escape(_folded(word))
    return bool(wanted) and any(re.search(rf"(?<![\w-]){wanted}(?![\w-])", _folded(text)) for text in said)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def _differences(path: tuple[str, ...], before: object, after: object) -> Iterator[Change]:
    old, new = _children(before), _children(after)
    if old is not None and new is not None and isinstance(before, Mapping) is isinstance(after, Mapping):
        for key in sorted({*old, *new}):
            yield from _differences((*path, key), old.get(key, ABSENT), new.get(key, ABSENT))
    elif before is ABSENT:
        yield from _leaves(path, after, added=True)
    elif after is ABSENT:
        yield from _leaves(path, before, added=False)
    elif not same(before, after):
        yield Change(path, before, after)


def _leaves(path: tuple[str, ...], value: object, *, added: bool) -> Iterator[Change]:
    children = _children(value)
    if not children:
        yield Change(path, ABSENT, value) if added else Change(path, value, ABSENT)
        return
    for key, child in sorted(children.items()):
        yield from _leaves((*path, key), child, added=added)


def _children(value: object) -> Mapping[str, object] | None:
    if isinstance(value, Mapping):
        return {str(key): child for key, child in value.items()}
    if isinstance(value, list | tuple):
        return {str(place): child for place, child in enumerate(value)}
    return None
