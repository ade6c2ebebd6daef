"""Secrets in the configuration: where else they can be stored, and how they are hidden when settings are shown."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from atlasbridge.core.errors import ConfigError

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
        return _read(Path(os.path.expanduser(value[5:])), where)
    return value


def _read(path: Path, where: str) -> str:
    try:
        if os.name != "nt" and path.stat().st_mode & 0o077:
            raise ConfigError(f"{where}: other users can read {path}", f"chmod 600 {path}")
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError(f"{where}: cannot read {path}: {error.strerror}", "write the secret into that file") from None


def hide_secrets(data: Any, name: str = "") -> Any:
    """A copy that is safe to show: every value whose name looks like a secret is hidden, at any depth."""
    if isinstance(data, Mapping):
        return {key: hide_secrets(value, str(key)) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [hide_secrets(item, name) for item in data]
    return HIDDEN if data and is_secret_name(name) else data
