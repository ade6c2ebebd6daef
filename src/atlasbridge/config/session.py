"""Session settings for the client and the host: standard library only, because a session starts in milliseconds.

A file is checked by the full model once per content; a stamp beside it says that this very content was good.
"""

from __future__ import annotations

import os
from binascii import crc32
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from atlasbridge.core.errors import ConfigError
from atlasbridge.core.home import Home
from atlasbridge.core.host.zygote.environment_fingerprint import SWITCH
from atlasbridge.core.kin import MARK
from atlasbridge.core.session.settings import SessionSettings

STAMP = "config.checked"
_SHIPPED = ("web", "telegram", "slack")
_SECTIONS = ("ATLASBRIDGE_SESSION_", "ATLASBRIDGE_DETECTION_")

# setting in config.toml -> field of SessionSettings
_FIELDS: dict[tuple[str, str], str] = {
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


def load_session_settings(
    home: Home, environ: Mapping[str, str], check: Callable[[], object]
) -> tuple[SessionSettings, dict[str, Any]]:
    """The settings, and the `[detection]` table.  `check` loads the whole configuration and raises ConfigError."""
    try:
        content = home.config.read_bytes()
    except FileNotFoundError:
        content = b""
    relevant = {name: value for name, value in environ.items() if name.startswith("ATLASBRIDGE_")}
    relevant.pop("ATLASBRIDGE_HOME", None)
    relevant.pop(MARK, None)  # a session inside a session
    relevant.pop(SWITCH, None)  # looked at before any configuration
    if not content.strip() and not relevant:
        return SessionSettings(), {}
    _check_once(home, content, relevant, check)
    import tomllib

    data = tomllib.loads(content.decode())
    _lay_over(data, relevant)
    return _settings(data), dict(data.get("detection", {}))


def refuse_unknown_channels(chosen: Iterable[str], home: Home, load: Callable[[], Mapping[str, Any]]) -> None:
    """A channel that is not there would ask nobody, without a word.  `load`: those of the whole configuration."""
    unknown = set(chosen) - _channels_of_the_file(home)
    known = {"local", *load()} if unknown else set()
    for name in sorted(unknown - known):
        from difflib import get_close_matches

        near = get_close_matches(name, known | {"none", *_SHIPPED}, 1)
        off = "" if not near or near[0] in known | {"none"} else " It is off: turn it on with atlasbridge setup"
        hint = f"did you mean {near[0]}?{off}" if near else f"there are: {', '.join(sorted(known))}, none"
        raise ConfigError(f"no channel {name!r} is configured", hint)


def _channels_of_the_file(home: Home) -> set[str]:
    """Those that are on, as far as a quick look tells."""
    import tomllib

    try:
        tables = tomllib.loads(home.config.read_text("utf-8")).get("channels", {})
    except (OSError, ValueError):
        tables = {}
    usual = {"local": {}, "web": {}, **tables}
    if (home.root / "desk.json").exists():
        usual["desk"] = {}  # it has joined a desk of many machines
    return {name for name, table in usual.items() if not isinstance(table, dict) or table.get("enabled", True)}


def _check_once(home: Home, content: bytes, relevant: Mapping[str, str], check: Callable[[], object]) -> None:
    given = repr((content, sorted(relevant.items()))).encode()
    digest = f"{len(given)} {crc32(given):08x}"  # who could forge a sum could write the stamp as well; a hash is 2 MB
    stamp = home.root / STAMP
    try:
        if stamp.read_text(encoding="ascii") == digest:
            return
    except OSError:
        pass  # never checked
    check()
    stamp.write_text(digest, encoding="ascii")


def apart(check: Callable[[], object]) -> Callable[[], None]:
    """`check` in a process of its own: the libraries that check would stay with the session for its whole life."""

    def check_apart() -> None:
        if not hasattr(os, "fork"):  # Windows
            check()
            return
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                check()
                status = 0
            finally:
                os._exit(status)
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
            check()  # once more, to say here what is wrong

    return check_apart


def _lay_over(data: dict[str, Any], relevant: Mapping[str, str]) -> None:
    for name, value in relevant.items():
        for prefix in _SECTIONS:
            if name.startswith(prefix):
                section = prefix.removeprefix("ATLASBRIDGE_").rstrip("_").lower()
                data.setdefault(section, {})[name.removeprefix(prefix).lower()] = _number(value)


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _settings(data: Mapping[str, Any]) -> SessionSettings:
    given = {field: data.get(section, {}).get(key) for (section, key), field in _FIELDS.items()}
    return SessionSettings(**{field: value for field, value in given.items() if value is not None})
