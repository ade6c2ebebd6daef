"""The client's way to a zygote: find the one for its surroundings, make sure whose it is, hand over all that counts.

None means: take the plain way, which gives the same session.  Nothing has been started then.  Light, as all of a
client's first steps.
"""

from __future__ import annotations

import os
import sys

from atlasbridge.core.home_folder import find_home_folder
from atlasbridge.core.host.terminal.lending import fill_standard_streams, send_with_fds
from atlasbridge.core.host.zygote.letter import CWD, GO, HERE, MOST_FDS, write_letter
from atlasbridge.core.host.zygote.surroundings import address, read_surroundings, wants_zygote
from atlasbridge.core.kin import is_inside, look_at, trace_line
from atlasbridge.core.lean import socket
from atlasbridge.core.shield import hide_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PLAIN = ("-h", "--help", "--backend")  # seldom said, and not worth a host
_PATIENCE_S = 2.0  # for a zygote that has been stopped, or a machine that has no time
_INT = 4


def ask_zygote(words: Sequence[str], environ: Mapping[str, str]) -> socket.socket | None:
    """A connection to the host that is going to run this; it reads the words as `atlasbridge run` does."""
    if not words or any(word.startswith(_PLAIN) for word in words) or not wants_zygote(environ):
        return None
    surroundings = read_surroundings(environ)
    if not surroundings:
        return None
    fill_standard_streams()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(_PATIENCE_S)
        connection.connect(address(find_home_folder(environ), surroundings))
        if _is_trusted(connection) and _hand_over(connection, surroundings, words):
            connection.settimeout(None)
            return connection
    except (OSError, ValueError):
        pass  # none is there, or it is not for us
    connection.close()
    return None


def _is_trusted(connection: socket.socket) -> bool:
    """Of this user, and not started inside a session: a tool must not host the sessions of the person it asks."""
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 3 * _INT)
    pid, uid = (int.from_bytes(told[place : place + _INT], sys.byteorder, signed=True) for place in (0, _INT))
    line = trace_line(pid, look_at) if pid > 0 else ()
    return uid == os.getuid() and bool(line) and not is_inside(line)


def _hand_over(connection: socket.socket, surroundings: bytes, words: Sequence[str]) -> bool:
    hide_memory()
    numbers = [0, 1, 2, *_inherited()]
    if len(numbers) >= MOST_FDS:
        return False
    umask = os.umask(0o077)
    os.umask(umask)
    letter = write_letter(surroundings, umask, [CWD, *map(str, numbers)], words, os.environb)
    folder = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        send_with_fds(connection, letter, (folder, *numbers))
    finally:
        os.close(folder)
    import atlasbridge.core.client.client  # noqa: F401  # needed next: while the host is being forked it costs nothing

    if connection.recv(len(HERE)) != HERE:
        return False
    connection.sendall(GO)  # not before: who gave up waiting must not start it twice
    return True


def _inherited() -> list[int]:
    """What a tool would inherit from us beside its terminal: a shell's `9<file`."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
        except OSError:
            continue  # the listing's own descriptor
    return sorted(found)
