"""What may be started from afar, and what of a person's wish is allowed: the folder, further words, a name.

How a session is started is left to `started_afar`.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from atlasbridge.core.errors import ConfigError
from atlasbridge.core.prompt.discreet import discreet_words
from atlasbridge.core.session.naming import LONGEST_NAME
from atlasbridge.core.values import frozen
from atlasbridge.core.visible import visible

MOST_WORDS = 64
RECENT = 8
Start = Callable[[tuple[str, ...], str, str], Awaitable[str]]


@frozen
class Launcher:
    """A session that may be started from afar, because the configuration says so.

    `folders`: where, besides `cwd`; each with all that is below it.  `arguments`: whether a person may add words.
    `start(command, folder, name)` returns the session's id.
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
        """As the configuration writes it: `~` is this user's home."""
        roots = tuple(os.path.expanduser(folder) for folder in folders)
        return cls(name, tuple(command), os.path.expanduser(cwd), start, roots, arguments)

    def allows(self, folder: str) -> bool:
        real = os.path.realpath(folder)
        return real == os.path.realpath(self.cwd) or any(_is_below(real, root) for root in self.folders)

    def described(self, known_folders: Iterable[str]) -> dict[str, Any]:
        recent = [folder for folder in dict.fromkeys(known_folders) if self.allows(folder)]
        return {
            "name": self.name,
            "command": list(discreet_words(self.command)),
            "cwd": self.cwd,
            "folders": list(self.folders),
            "arguments": self.arguments,
            "recent": recent[:RECENT],
        }

    async def launch(self, folder: str, arguments: tuple[str, ...], label: str) -> str:
        """ConfigError: the configuration does not allow it."""
        place = self._admit(folder, arguments, label)
        return await self.start((*self.command, *arguments), place, visible(label, keep_lines=False))

    def _admit(self, folder: str, arguments: tuple[str, ...], label: str) -> str:
        """The folder in which it is started."""
        place = os.path.realpath(os.path.expanduser(folder)) if folder else self.cwd
        if folder and not self.allows(place):
            raise ConfigError(
                f"{visible(folder, keep_lines=False)} is not a folder in which {self.name!r} may be started",
                "add it to its `folders` in config.toml",
            )
        if not os.path.isdir(place):
            raise ConfigError(f"there is no folder {visible(place, keep_lines=False)}")
        if arguments and not self.arguments:
            raise ConfigError(f"{self.name!r} takes no further words", "set arguments = true in its [[launchers]]")
        if len(arguments) > MOST_WORDS or any("\0" in word for word in arguments):
            raise ConfigError("these words cannot be given to a program")
        if len(label) > LONGEST_NAME:
            raise ConfigError(f"a name has at most {LONGEST_NAME} characters")
        return place


def _is_below(real: str, root: str) -> bool:
    base = os.path.realpath(root)
    return real == base or real.startswith(base.rstrip("/") + "/")
