"""The part of the configuration that a session needs, and secrets: standard library only, because a session starts in
milliseconds.

Only `load.py` reads the configuration. Its result for this file and environment is cached beside the file for sessions;
if either has changed, the whole configuration is read again.
"""

from __future__ import annotations

import json
import os
from binascii import crc32
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from atlasbridge import __version__
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.home import Home
from atlasbridge.core.host.spawn_request import SWITCH
from atlasbridge.core.peer import MARK
from atlasbridge.core.session.settings import SessionSettings
from atlasbridge.core.values import frozen

if TYPE_CHECKING:
    from atlasbridge.config.load import Configuration
import re
from pathlib import Path

KEPT = "config.checked"

# setting in config.toml -> field of SessionSettings
FIELDS: dict[tuple[str, str], str] = {
    ("session", "detach_key"): "detach_key",
    ("session", "effect_timeout_seconds"): "effect_timeout_s",
    ("session", "inject_settle_ms"): "inject_settle_ms",
    ("session", "injection_timeout_seconds"): "injection_timeout_seconds",
    ("session", "step_timeout_seconds"): "step_timeout_s",
    ("session", "task_timeout_seconds"): "task_timeout_seconds",
    ("session", "max_task_restarts"): "max_task_restarts",
    ("session", "task_restart_delay_seconds"): "restart_delay_s",
    ("session", "kill_grace_seconds"): "kill_grace_s",
    ("session", "zygote"): "zygote",
    ("detection", "buffer_size_bytes"): "ring_bytes",
}


@frozen
class SessionConfig:
    settings: SessionSettings
    detection: Mapping[str, Any]  # the whole `[detection]` table
    channels: tuple[str, ...]  # the enabled ones


def part_for_sessions(config: Configuration) -> dict[str, Any]:
    """The part of the configuration that a session needs, as plain JSON values."""
    general = config.general
    return {
        "session": general.session.model_dump(),
        "detection": general.detection.model_dump(),
        "channels": list(config.channels),
    }


def read_session_config(home: Home, environ: Mapping[str, str], read: Callable[[], dict[str, Any]]) -> SessionConfig:
    """`read` reads the whole configuration, raises ConfigError, and returns its `part_for_sessions`."""
    try:
        content = home.config.read_bytes()
    except FileNotFoundError:
        content = b""
    relevant = {name: value for name, value in environ.items() if name.startswith("ATLASBRIDGE_")}
    relevant.pop("ATLASBRIDGE_HOME", None)
    relevant.pop(MARK, None)  # set for a session inside a session
    off = relevant.get(SWITCH) in ("0", "false")  # usually set for one session only, so nothing has to be read for it
    if off:
        del relevant[SWITCH]
    if not content.strip() and not relevant:
        return SessionConfig(SessionSettings(zygote=not off), {}, ("web",))
    found = _kept_or_read(home, content, relevant, read)
    given = {field: found[section][key] for (section, key), field in FIELDS.items()}
    given["zygote"] = given["zygote"] and not off
    return SessionConfig(SessionSettings(**given), found["detection"], tuple(found["channels"]))


def refuse_unknown_channels(
    chosen: Iterable[str], home: Home, config: SessionConfig, existing: Callable[[], Iterable[str]]
) -> None:
    """A missing channel would silently ask no one. `existing` returns all channels that could be enabled."""
    known = {"local", *config.channels}
    if home.membership.exists():
        known.add("server")
    for name in sorted(set(chosen) - known):
        from difflib import get_close_matches

        near = get_close_matches(name, sorted(known | {"none", *existing()}), 1)
        off = "" if not near or near[0] in known | {"none"} else " It is off: turn it on with atlasbridge setup"
        hint = f"did you mean {near[0]}?{off}" if near else f"there are: {', '.join(sorted(known))}, none"
        raise ConfigError(f"no channel {name!r} is configured", hint)


def _kept_or_read(
    home: Home, content: bytes, relevant: Mapping[str, str], read: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    given = repr((__version__, content, sorted(relevant.items()))).encode()
    # a checksum is enough: an attacker who could forge it could also write the cache; hashlib would need 2 MB
    digest = f"{len(given)} {crc32(given):08x}"
    kept = home.root / KEPT
    try:
        last = json.loads(kept.read_bytes())
        if last["of"] == digest:
            return dict(last["is"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # never read, or cached by another version
    found = read()
    kept.write_text(json.dumps({"of": digest, "is": found}), encoding="utf-8")
    return found


def apart(read: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """Run `read` in a separate process: otherwise the validation libraries would stay in the session's memory."""

    def read_apart() -> dict[str, Any]:
        if not hasattr(os, "fork"):  # Windows
            return read()
        out, into = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.close(out)
                with open(into, "wb") as pipe:
                    pipe.write(json.dumps(read()).encode())
                status = 0
            finally:
                os._exit(status)
        os.close(into)
        with open(out, "rb") as pipe:
            told = pipe.read()
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
            return read()  # again, to raise its error in this process
        return dict(json.loads(told))

    return read_apart


# Secrets in the configuration: where else they can be stored, and how they are hidden when settings are shown.


HIDDEN = "(hidden)"
SHORTEST = 6  # shorter values are not hidden
_SECRET_NAME = re.compile(r"token|secret|password|passphrase|api_?key|credential", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None


def secret_values(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Values of the tool's environment whose names look like secrets. They are never sent in an excerpt."""
    return tuple(value for name, value in environ.items() if is_secret_name(name) and len(value) >= SHORTEST)


def resolve(value: Any, where: str, environ: Mapping[str, str]) -> Any:
    """Replace `env:NAME` and `file:PATH` by their content; everything else stays unchanged."""
    if not isinstance(value, str):
        return value
    if value.startswith("env:"):
        name = value[4:]
        if name not in environ:
            raise ConfigError(f"{where} names the environment variable {name}, which is not set", f"export {name}=...")
        return environ[name]
    if value.startswith("file:"):
        return _read_secret(Path(os.path.expanduser(value[5:])), where)
    return value


def _read_secret(path: Path, where: str) -> str:
    try:
        if os.name != "nt" and _others_read(path.stat()):
            raise ConfigError(f"{where}: other users can read {path}", f"chmod 600 {path}")
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError(f"{where}: cannot read {path}: {error.strerror}", "write the secret into that file") from None


def _others_read(status: os.stat_result) -> bool:
    """A file of another user can be there for this user's group, as Kubernetes and systemd hand secrets over."""
    own = status.st_uid == os.geteuid()
    return bool(status.st_mode & (0o077 if own else 0o007))


def hide_secrets(data: Any, name: str = "") -> Any:
    """A copy that is safe to show: every value whose name looks like a secret is hidden, at any depth."""
    if isinstance(data, Mapping):
        return {key: hide_secrets(value, str(key)) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [hide_secrets(item, name) for item in data]
    return HIDDEN if data and is_secret_name(name) else data
