"""Settings from the environment: ATLASBRIDGE_SECTION_KEY=value is laid over the file, and means the same as there."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from atlasbridge.core.errors import ConfigError

PREFIX = "ATLASBRIDGE_"

Path = tuple[str, ...]


def setting_paths(model: type[BaseModel], under: Path = ()) -> list[Path]:
    """Every setting that has a name of its own; lists of tables have not."""
    paths: list[Path] = []
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            paths += setting_paths(kind, (*under, name))
        else:
            paths.append((*under, name))
    return paths


def variable(path: Path) -> str:
    return PREFIX + "_".join(path).upper().replace("-", "_")


def lay_over(data: dict[str, Any], environ: Mapping[str, str], paths: Iterable[Path]) -> dict[Path, str]:
    """Put what the environment says into `data`.  Returns which setting came from which variable."""
    known = {variable(path): path for path in paths}
    sections = tuple({PREFIX + path[0].upper() + "_" for path in known.values()})
    taken: dict[Path, str] = {}
    for name in sorted(environ):
        if name in known:
            set_value(data, known[name], _parse(environ[name]))
            taken[known[name]] = name
        elif name.startswith(sections):
            raise ConfigError(f"{name} is not a setting", "list them with: atlasbridge config show --env")
    return taken


def _parse(text: str) -> Any:
    """As TOML where it is TOML (numbers, true, lists), otherwise the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        return text


def set_value(data: dict[str, Any], path: Path, value: Any) -> None:
    for name in path[:-1]:
        inner = data.setdefault(name, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{name} must be a table", f"write it as [{name}]")
        data = inner
    data[path[-1]] = value
