"""The hub as a login service: a systemd user unit, or a launchd agent on macOS.

It only writes the file, and notifies the service manager if that is available.
"""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from atlasbridge.core.daemon.starter import stop_hub
from atlasbridge.core.home import Home
from atlasbridge.core.process import own_python

UNIT = "atlasbridge-hub.service"
AGENT = "io.atlasbridge.hub"
_PATIENCE_S = 20.0


def service_file(platform: str = sys.platform) -> Path:
    home = Path(os.path.expanduser("~"))
    if platform == "darwin":
        return home / "Library" / "LaunchAgents" / f"{AGENT}.plist"
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    return config / "systemd" / "user" / UNIT


def render_unit(home: Home) -> str:
    """A hub that exits because another one runs has succeeded, and is not restarted."""
    words = " ".join(quoted(word) for word in own_python("atlasbridge", "hub", "start", "--foreground"))
    return f"""[Unit]
Description=AtlasBridge hub
Documentation=man:atlasbridge(1)

[Service]
ExecStart={words}
ExecReload=/bin/kill -HUP $MAINPID
Environment={quoted(f"ATLASBRIDGE_HOME={home.root}")}
UMask=0077
KillMode=process
Restart=on-failure
RestartSec=2

[Install]
WantedBy=default.target
"""


def render_agent(home: Home) -> str:
    return plistlib.dumps(
        {
            "Label": AGENT,
            "ProgramArguments": list(own_python("atlasbridge", "hub", "start", "--foreground")),
            "EnvironmentVariables": {"ATLASBRIDGE_HOME": str(home.root)},
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "Umask": 0o077,
            "AbandonProcessGroup": True,
            "StandardErrorPath": str(home.log),
        }
    ).decode()


def install_service(home: Home, now: bool, platform: str = sys.platform) -> Iterator[str]:
    """Install the service and yield a line for each step."""
    path = service_file(platform)
    text = render_agent(home) if platform == "darwin" else render_unit(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    yield f"written: {path}"
    commands = _start_commands(path, now, platform)
    if not _answers(platform):
        yield "the system's service manager does not answer here; after the next login, or with it, run:"
        yield from (f"  {' '.join(words)}" for words in commands)
        return
    if now and stop_hub(home):
        yield "the running hub has stopped; sessions continue"
    for words in commands:
        yield f"{' '.join(words)}: {_told(words)}"


def uninstall_service(platform: str = sys.platform) -> Iterator[str]:
    path = service_file(platform)
    if not path.exists():
        yield "the hub is no service here"
        return
    if _answers(platform):
        for words in _stop_commands(path, platform):
            yield f"{' '.join(words)}: {_told(words)}"
    path.unlink()
    yield f"removed: {path}"


def _start_commands(path: Path, now: bool, platform: str) -> list[list[str]]:
    if platform == "darwin":
        return [["launchctl", "load", "-w", str(path)]]
    return [["systemctl", "--user", "daemon-reload"], ["systemctl", "--user", "enable", *(["--now"] * now), UNIT]]


def _stop_commands(path: Path, platform: str) -> list[list[str]]:
    if platform == "darwin":
        return [["launchctl", "unload", "-w", str(path)]]
    return [["systemctl", "--user", "disable", "--now", UNIT]]


def _answers(platform: str) -> bool:
    """Whether a service manager runs for this login: containers and some ssh sessions have only the command."""
    if platform == "darwin":
        return shutil.which("launchctl") is not None
    return shutil.which("systemctl") is not None and _told(["systemctl", "--user", "show-environment"]) == "done"


def _told(words: list[str]) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"failed ({error})"
    return "done" if done.returncode == 0 else f"failed ({(done.stderr or done.stdout).strip()})"


def quoted(word: str) -> str:
    """Quote for systemd: `%` starts a specifier, and `$` a variable."""
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{plain}"' if plain != word or " " in word or "=" in word else word
