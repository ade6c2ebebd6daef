"""One step of an answer: keys, and what must be true before the next step.  The conditions are a closed type.

`core/host/typing/steps.py` is their only interpreter; how they are written for the wire and the store is said here,
beside them.
"""

from __future__ import annotations

from enum import Enum

from atlasbridge.core.values import frozen


class When(Enum):
    """A condition that needs no words; its value is how it is written."""

    AT_ONCE = ""
    DRAINED = "drained"  # the tool has read the keys
    SETTLED = "settled"  # the screen came to rest
    RESTED = "rested"  # for longer
    CHANGED = "changed"  # the screen changed
    REDRAWN = "redrawn"  # it changed and came to rest
    MAY_LEAVE = "left?"  # give the tool a moment to take the key by itself; once the prompt left, no more is typed


@frozen
class Stands:
    """The text is on the screen."""

    text: str


@frozen
class Shows:
    """The text is the highlighted choice."""

    text: str


@frozen
class Reach:
    """The same key again until the text is the highlighted choice."""

    text: str


@frozen
class Only:
    """Once the screen came to rest, the steps that follow are typed only if the text stands there."""

    text: str


Until = When | Stands | Shows | Reach | Only
_WORDED: dict[str, type[Stands | Shows | Reach | Only]] = {
    "stands": Stands,
    "shows": Shows,
    "reach": Reach,
    "only": Only,
}
_NAMES = {kind: name for name, kind in _WORDED.items()}


@frozen
class Step:
    keys: bytes
    until: Until = When.AT_ONCE


def encode_until(until: Until) -> str:
    """As version 0.1.0 wrote it, too: a host and a hub of different versions understand each other."""
    return str(until.value) if isinstance(until, When) else f"{_NAMES[type(until)]}:{until.text}"


def decode_until(written: str) -> Until:
    """The inverse; ValueError for a condition that nobody could wait for."""
    name, colon, text = written.partition(":")
    return _WORDED[name](text) if colon and name in _WORDED else When(written)
