"""Starts sessions on request of a remote person, and checks the requested folder, arguments and name."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from atlasbridge.core.errors import AtlasBridgeError, ConfigError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.home import Home
from atlasbridge.core.process import own_environ, own_python
from atlasbridge.core.prompt.redact import redact_text
from atlasbridge.core.session.model import LONGEST_NAME
from atlasbridge.core.values import frozen

MOST_WORDS = 64
RECENT = 8
Start = Callable[[tuple[str, ...], str, str], Awaitable[str]]


@frozen
class Launcher:
    """A session that can be started remotely, because the configuration allows it.

    `folders`: additional allowed folders, each including its subfolders. `arguments`: whether a person is allowed to
    add arguments. `start(command, folder, name)` returns the session's id.
    """

    name: str
    command: tuple[str, ...]
    cwd: str
    start: Start
    folders: tuple[str, ...] = ()
    arguments: bool = False

    @classmethod
    def of(
        cls, name: str, command: Sequence[str], cwd: str, folders: Sequence[str], arguments: bool, start: Start
    ) -> Launcher:
        """Creates a launcher from the configuration; `~` is this user's home."""
        roots = tuple(os.path.expanduser(folder) for folder in folders)
        return cls(name, tuple(command), os.path.expanduser(cwd), start, roots, arguments)

    def allows(self, folder: str) -> bool:
        real = os.path.realpath(folder)
        return real == os.path.realpath(self.cwd) or any(_is_below(real, root) for root in self.folders)

    def described(self, known_folders: Iterable[str]) -> dict[str, Any]:
        recent = [folder for folder in dict.fromkeys(known_folders) if self.allows(folder)]
        return {
            "name": self.name,
            "command": list(redact_text(self.command)),
            "cwd": self.cwd,
            "folders": list(self.folders),
            "arguments": self.arguments,
            "recent": recent[:RECENT],
        }

    async def launch(self, folder: str, arguments: tuple[str, ...], label: str) -> str:
        """Raises ConfigError if the configuration does not allow it."""
        place = self._admit(folder, arguments, label)
        return await self.start((*self.command, *arguments), place, escape_controls(label, keep_lines=False))

    def _admit(self, folder: str, arguments: tuple[str, ...], label: str) -> str:
        place = os.path.realpath(os.path.expanduser(folder)) if folder else self.cwd
        if folder and not self.allows(place):
            raise ConfigError(
                f"{escape_controls(folder, keep_lines=False)} is not a folder in which {self.name!r} can be started",
                "add it to its `folders` in config.toml",
            )
        if not os.path.isdir(place):
            raise ConfigError(f"there is no folder {escape_controls(place, keep_lines=False)}")
        if arguments and not self.arguments:
            raise ConfigError(f"{self.name!r} takes no arguments", "set arguments = true in its [[launchers]]")
        if len(arguments) > MOST_WORDS or any("\0" in word for word in arguments):
            raise ConfigError("these words cannot be given to a program")
        if len(label) > LONGEST_NAME:
            raise ConfigError(f"a name has at most {LONGEST_NAME} characters")
        return place


def _is_below(real: str, root: str) -> bool:
    base = os.path.realpath(root)
    return real == base or real.startswith(base.rstrip("/") + "/")


# Starts a session without a terminal. `Launcher` decides what can be started.

START_S = 15


async def launch_session(home: Home, command: tuple[str, ...], cwd: str, name: str = "") -> str:
    """Runs `atlasbridge run --detach` and returns the session's id."""
    words = ("--detach", *(() if hasattr(os, "fork") else ("--backend", "conpty")))  # Windows needs this backend
    process = await asyncio.create_subprocess_exec(
        *own_python("atlasbridge", "run", *words, *(("--name", name) if name else ()), "--", *command),
        cwd=cwd,
        env=own_environ(os.environ, ATLASBRIDGE_HOME=str(home.root)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(START_S):
        out, err = await process.communicate()
    if process.returncode:
        raise AtlasBridgeError(err.decode(errors="replace").strip() or "the session did not start", "")
    return out.decode().split()[-1] if out.split() else ""
