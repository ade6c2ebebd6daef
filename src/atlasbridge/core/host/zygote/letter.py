"""What a client writes to the zygote: its words, its environment, its umask, and the numbers of what it has open.

No argument and no variable can hold a NUL byte, so nothing needs to be quoted, and nothing is parsed that could mean
more than it says.  The descriptors themselves go with the first byte.  Light: written by every client.
"""

from __future__ import annotations

import os

from atlasbridge.core.values import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LONGEST = 8 * 1024 * 1024  # beyond what the kernel gives to a program at its start
MOST_FDS = 200  # the kernel takes 253 at once
CWD = "cwd"
HERE, GO = b"here\n", b"go\n"  # the host that was forked, and the client that is still there
_HEAD = 12


@frozen
class Letter:
    """`fds`: for each descriptor that came along the number it had, or `CWD`."""

    surroundings: bytes
    umask: int
    fds: tuple[str, ...]
    words: tuple[bytes, ...]
    environ: dict[bytes, bytes]


def write_letter(
    surroundings: bytes, umask: int, fds: Sequence[str], words: Sequence[str], environ: Mapping[bytes, bytes]
) -> bytes:
    pairs = [name + b"=" + value for name, value in environ.items()]
    parts = [
        surroundings,
        b"%o" % umask,
        " ".join(fds).encode(),
        b"%d" % len(words),
        *(os.fsencode(word) for word in words),
        *pairs,
    ]
    body = b"\0".join(parts)
    return b"%*d" % (_HEAD, len(body)) + body


def whole_length(data: bytes) -> int:
    """How long the letter is that begins so; 0: its head is not there yet.  ValueError: it is none."""
    if len(data) < _HEAD:
        return 0
    length = int(data[:_HEAD])
    if not 0 < length <= LONGEST:
        raise ValueError("a letter of no possible length")
    return _HEAD + length


def read_letter(data: bytes) -> Letter:
    """ValueError: it is none."""
    surroundings, umask, fds, count, *rest = data[_HEAD:].split(b"\0")
    number = int(count)
    if not 0 < number <= len(rest):
        raise ValueError("a letter without words")
    pairs = [pair.partition(b"=") for pair in rest[number:]]
    if any(not name or not equals for name, equals, _ in pairs):
        raise ValueError("a variable without a name")
    environ = {name: value for name, _, value in pairs}
    return Letter(
        surroundings, int(umask, 8) & 0o777, tuple(fds.decode("ascii").split()), tuple(rest[:number]), environ
    )
