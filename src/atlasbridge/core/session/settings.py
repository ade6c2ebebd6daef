"""The settings of a session: every timeout and limit with the default of the reliability document.

`config/session.py` fills them from the configuration file; this module reads nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from atlasbridge.core.values import field, frozen


@frozen
class SessionSettings:
    detach_key: str = "^] d"  # a prefix key and a letter; the prefix twice sends it once
    ring_bytes: int = 256 * 1024  # output that is kept until the analysis reads it
    quiet_ms: float = 20.0  # a pause of the output after which the screen is analysed
    steady_ms: float = 150.0  # how often the screen is analysed while the output does not pause
    flood_ms: float = 1000.0  # the same, if the output overflows the ring: relaying takes precedence
    # how long to wait if the tool has ended, but one of its processes still has its terminal open
    exit_grace_ms: float = 150.0
    injection_timeout_seconds: float = 5.0
    step_timeout_s: float = 2.0  # timeout of one step of a typed answer
    inject_settle_ms: float = 100.0
    effect_timeout_s: float = 5.0
    task_timeout_seconds: float = 30.0
    max_task_restarts: int = 3
    restart_delay_s: float = 1.0
    kill_grace_s: float = 3.0
    hub_retry_min_s: float = 0.25
    hub_retry_max_s: float = 1.0
    hub_farewell_s: float = 5.0  # how long an ended session tries to report to the hub
    zygote: bool = True  # fork the next session's host from a process that has already imported everything
    input_backlog_bytes: int = 64 * 1024  # limit of keys that a tool has not read; beyond it, the keyboard is not read


# What to run and how: the result of the command line, passed to the session host.

PRIVATE_PREFIX = "ATLASBRIDGE_"
HOSTED = "ATLASBRIDGE_HOSTED"  # the id of the session that this process is started for, where a host cannot be forked
SETTINGS_SUFFIX = ".settings"  # of a file beside the session's socket, which exists as long as the session


@frozen
class Plan:
    command: tuple[str, ...]
    session_id: str
    label: str = ""
    channels: tuple[str, ...] | None = None  # None: all configured channels; (): none
    ttl_s: float | None = None
    dialect: str = ""  # "": chosen by the tool's name
    backend: str = ""  # "": chosen by the operating system
    detach: bool = False
    hosted: bool = False  # on Windows: this process was started for the session and has no person's console
    hub: bool = True
    keep: bool = True  # store the last output after the session has ended
    stderr: int = -1  # an inheritable descriptor for the tool's standard error; -1: its terminal
    cwd: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def tool(self) -> str:
        """The program's file name without its folder."""
        return os.path.basename(self.command[0].rstrip("/")) or self.command[0]


def child_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The tool's environment: ours, without AtlasBridge's own variables."""
    return {name: value for name, value in environ.items() if not name.startswith(PRIVATE_PREFIX)}
