"""What is to be run, and how: the outcome of the command line, handed to the session host."""

from __future__ import annotations

import os
from collections.abc import Mapping

from atlasbridge.core.values import field, frozen

PRIVATE_PREFIX = "ATLASBRIDGE_"
HOSTED = "ATLASBRIDGE_HOSTED"  # the id of the session that this process is started for, where none can be forked
SETTINGS_SUFFIX = ".settings"  # of a file beside the session's socket that lives as long as it


@frozen
class Plan:
    command: tuple[str, ...]
    session_id: str
    label: str = ""
    channels: tuple[str, ...] | None = None  # None: all that are configured; (): none
    ttl_s: float | None = None
    dialect: str = ""  # "": by the tool's name
    backend: str = ""  # "": what the operating system offers
    detach: bool = False
    hosted: bool = False  # on Windows: this process was started for the session, and has no console of a person's
    hub: bool = True
    cwd: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def tool(self) -> str:
        """The name people know the program by: its file name without a folder."""
        return os.path.basename(self.command[0].rstrip("/")) or self.command[0]


def child_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The tool's environment: ours, without what is AtlasBridge's own business."""
    return {name: value for name, value in environ.items() if not name.startswith(PRIVATE_PREFIX)}
