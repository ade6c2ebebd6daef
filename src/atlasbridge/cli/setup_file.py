"""Writes one channel's table to config.toml. The rest stays unchanged, and an invalid file is never written."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

from atlasbridge.bootstrap import check_configuration
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.home import Home
from atlasbridge.core.system import OWN_FILE, sync_folder

_HEADER = re.compile(r"^\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")


def read_table(home: Home, channel: str) -> dict[str, Any]:
    """The channel's current table in the file; {} if there is none."""
    try:
        data = tomllib.loads(home.config.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise ConfigError("config.toml cannot be read", "see: atlasbridge config check") from None
    table = data.get("channels", {}).get(channel, {})
    return dict(table) if isinstance(table, dict) else {}


def write_table(home: Home, channel: str, table: dict[str, Any]) -> None:
    """Validate the whole file before it replaces the old one. It has mode 0600 from the start."""
    write_checked(home, replace_table(read_text(home), f"channels.{channel}", table))


def read_text(home: Home) -> str:
    return home.config.read_text(encoding="utf-8") if home.config.exists() else ""


def write_checked(home: Home, text: str) -> None:
    """Write the whole file; if it is invalid, the old one stays."""
    home.prepare()
    fresh = home.config.with_name("config.toml.new")
    fresh.unlink(missing_ok=True)
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OWN_FILE, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    try:
        check_configuration(fresh, os.environ)
    except ConfigError as error:
        fresh.unlink()
        raise ConfigError(str(error).replace(fresh.name, home.config.name), error.hint) from None
    _take_place(fresh, home.config)


def _take_place(fresh: Path, target: Path) -> None:
    os.replace(fresh, target)
    sync_folder(target.parent)


def replace_table(text: str, name: str, table: dict[str, Any]) -> str:
    """Return the text with `[name]` and its sub-tables rewritten at the end. Pure."""
    kept: list[str] = []
    skipping = False
    for line in text.splitlines():
        if header := _HEADER.match(line):
            found = ".".join(part.strip().strip("\"'") for part in header[1].split("."))
            skipping = found == name or found.startswith(f"{name}.")
        if not skipping:
            kept.append(line)
    body = "\n".join(kept).rstrip()
    return (f"{body}\n\n" if body else "") + "\n".join([f"[{name}]", *render_table(table)]) + "\n"


def render_table(table: dict[str, Any]) -> list[str]:
    return [f"{key} = {_value(value)}" for key, value in table.items()]


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return json.dumps(str(value), ensure_ascii=False)
