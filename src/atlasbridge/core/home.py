"""The home folder: the paths of all files of one user's AtlasBridge. Imports no third-party package."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.system_setup import find_home_folder, setup_for
from atlasbridge.core.values import frozen

MAX_SOCKET_PATH = 100  # the limit of sun_path is 104 bytes on macOS and 108 on Linux


class _Inside:
    """The path of a file in the home folder."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, home: Home, owner: type) -> Path:
        return home.root / self._name


@frozen
class Home:
    root: Path
    hub: Path | None = None  # the socket of a hub outside this folder, such as another user's
    system: bool = False  # the hub of this machine, which runs as a user of its own

    lock, log, config = _Inside("hub.lock"), _Inside("hub.log"), _Inside("config.toml")
    starting = _Inside("hub.starting")  # a process that starts a hub has a shared lock on it until the hub has `lock`
    database, audit, sessions = _Inside("atlasbridge.db"), _Inside("audit.log"), _Inside("sessions")
    membership = _Inside("fleet.json")  # of a machine that has joined a fleet server

    @classmethod
    def find(cls, environ: Mapping[str, str]) -> Home:
        setup = setup_for(environ)
        if setup is not None:
            own = setup.home if os.getuid() == setup.uid else find_home_folder(environ)
            return cls(Path(own), Path(setup.socket), system=True)
        elsewhere = environ.get("ATLASBRIDGE_HUB_SOCKET", "")
        return cls(Path(find_home_folder(environ)), Path(elsewhere) if elsewhere else None)

    @property
    def socket(self) -> Path:
        return self.hub or self.root / "hub.sock"

    @property
    def may_start_hub(self) -> bool:
        """A hub whose socket is elsewhere can be started only by a user who is allowed to write there."""
        return not self.system and (self.hub is None or os.access(self.hub.parent, os.W_OK))

    def prepare(self) -> None:
        """Creates the folders, accessible to this user only. The mode of an existing folder is corrected."""
        if os.name != "nt" and len(os.fsencode(self.sessions / "01234567.sock")) > MAX_SOCKET_PATH:
            raise AtlasBridgeError(
                f"the home folder's path is too long for a socket: {self.root}",
                "set ATLASBRIDGE_HOME to a shorter path",
            )
        for folder in (self.root, self.sessions):
            try:
                if not os.path.isdir(folder):
                    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                if os.stat(folder).st_mode & 0o077:
                    os.chmod(folder, 0o700)
            except OSError as error:
                raise AtlasBridgeError(
                    f"cannot use the home folder {folder}: {error.strerror}", "set ATLASBRIDGE_HOME to a folder you own"
                ) from error
