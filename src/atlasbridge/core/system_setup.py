"""Where the hub of this user is: the home folder from the environment, and the system-wide setup, in which the hub of
this machine runs as a user of its own. A file owned by root describes it.

`atlasbridge hub install --system` (`cli.system_hub`) writes the file. Every command and session reads it, so this
module imports little; `home` has the paths.
"""

from __future__ import annotations

import os

from atlasbridge.core.values import frozen

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping


PLACE = "/etc/atlasbridge/system"
_LONGEST = 4096


@frozen
class SystemSetup:
    """`members` are the uids of the people whose sessions use this hub."""

    user: str
    uid: int
    home: str
    socket: str
    members: tuple[int, ...] = ()

    def render(self) -> str:
        members = " ".join(map(str, self.members))
        return (
            "# The hub of this machine is a user of its own. Made by: atlasbridge hub install --system\n"
            f"user={self.user}\nuid={self.uid}\nhome={self.home}\nsocket={self.socket}\nmembers={members}\n"
        )

    def concerns(self, uid: int) -> bool:
        return uid == self.uid or uid in self.members


def parse_setup(text: str) -> SystemSetup | None:
    """Returns None if the text does not have our format."""
    lines = (line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#"))
    found = {name: value for name, _, value in lines}
    try:
        members = tuple(int(word) for word in found["members"].split())
        return SystemSetup(found["user"], int(found["uid"]), found["home"], found["socket"], members)
    except (KeyError, ValueError):
        return None


def read_setup(place: str = PLACE) -> SystemSetup | None:
    """Returns None if this machine has no such setup. A file that anyone but root can write is ignored."""
    try:
        descriptor = os.open(place, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return None
    try:
        state = os.fstat(descriptor)
        if state.st_uid != 0 or state.st_mode & 0o022:
            return None
        return parse_setup(os.read(descriptor, _LONGEST).decode("utf-8", "replace"))
    finally:
        os.close(descriptor)


def setup_for(environ: Mapping[str, str]) -> SystemSetup | None:
    """The setup that applies to this user's commands. An explicit home folder or socket in the environment takes
    precedence."""
    if not hasattr(os, "getuid") or environ.get("ATLASBRIDGE_HOME") or environ.get("ATLASBRIDGE_HUB_SOCKET"):
        return None
    setup = read_setup()
    return setup if setup is not None and setup.concerns(os.getuid()) else None


def find_home_folder(environ: Mapping[str, str]) -> str:
    chosen = environ.get("ATLASBRIDGE_HOME", "")
    base = chosen or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".atlasbridge")
    return os.path.abspath(base)
