"""A configuration as TOML text: written out whole, or one setting changed while the rest stays as it is.  Pure."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from typing import Any

from atlasbridge.config.locate import locate_settings
from atlasbridge.core.errors import ConfigError

Path = tuple[str, ...]
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEADER = re.compile(r"^\s*\[([^\[\]]+)\]\s*(?:#.*)?$")
_MISSING = object()


def render_toml(table: dict[str, Any], under: Path = ()) -> list[str]:
    """Values first, then the tables below; what is not set is a comment."""
    lines: list[str] = []
    inner = {name: value for name, value in table.items() if isinstance(value, dict)}
    many = {name: value for name, value in table.items() if _is_tables(value)}
    for name, value in table.items():
        if value is None:
            lines.append(f"# {_key(name)} is not set")
        elif name not in inner and name not in many:
            lines.append(f"{_key(name)} = {render_value(value)}")
    if under and (lines or not (inner or many)):
        lines.insert(0, f"[{_dotted(under)}]")
    for name, value in inner.items():
        lines += ["", *render_toml(value, (*under, name))] if lines else render_toml(value, (*under, name))
    for name, value in many.items():
        for item in value:
            lines += [
                "",
                f"[[{_dotted((*under, name))}]]",
                *render_toml({key: _inline(part) for key, part in item.items()}),
            ]
    return lines


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


class _Inline(str):
    """A value that is written already."""


def _inline(value: Any) -> Any:
    return _Inline(render_value(value)) if isinstance(value, dict | list) else value


def render_value(value: Any) -> str:
    if isinstance(value, _Inline):
        return str(value)
    if isinstance(value, dict):
        given = {name: item for name, item in value.items() if item is not None}
        return "{ " + ", ".join(f"{_key(name)} = {render_value(item)}" for name, item in given.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(render_value(item) for item in value) + "]"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return _quoted(str(value))


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _dotted(path: Path) -> str:
    return ".".join(_key(part) for part in path)


def change_setting(text: str, path: Path, value: Any = _MISSING) -> str:
    """The text with this setting given another value, or taken out; every other one means what it meant before.

    Raises ConfigError where the file is written in a way that only a person should touch.
    """
    wanted = _changed(tomllib.loads(text), path, value)
    for candidate in _candidates(text, path, value):
        try:
            if _filled(tomllib.loads(candidate)) == _filled(wanted):
                return candidate
        except tomllib.TOMLDecodeError:
            continue
    raise ConfigError(
        f"{_dotted(path)} cannot be changed without touching more", "change it with: atlasbridge config edit"
    )


def _filled(data: Any) -> Any:
    """Without tables that hold nothing: taking out the last setting of one may leave it, or not."""
    if not isinstance(data, dict):
        return data
    inner = {name: _filled(value) for name, value in data.items()}
    return {name: value for name, value in inner.items() if value != {}}


def _changed(data: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    wanted = copy.deepcopy(data)
    table = wanted
    for name in path[:-1]:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise ConfigError(f"{name} is no table", "look at it with: atlasbridge config show")
    if value is not _MISSING:
        table[path[-1]] = value
    elif table.pop(path[-1], _MISSING) is _MISSING:
        raise ConfigError(f"{_dotted(path)} is not set in the file", "what is set: atlasbridge config show")
    return wanted


def _candidates(text: str, path: Path, value: Any) -> list[str]:
    """Ways to write it, the least change first; a value may stand on several lines."""
    lines = text.splitlines()
    number = locate_settings(text).get(path)
    written = [] if value is _MISSING else [f"{_key(path[-1])} = {render_value(value)}"]
    if number:
        place = number - 1
        key = lines[place].partition("=")[0].rstrip()
        new = [f"{key} = {render_value(value)}"] if written else []
        ends = range(place + 1, len(lines) + 1)
        return [_joined([*lines[:place], *new, *lines[end:]]) for end in ends]
    if len(path) == 1:
        return [_joined([*written, *lines])]
    places = [place for place, line in enumerate(lines) if _heads(line, path[:-1])]
    into = [_joined([*lines[: place + 1], *written, *lines[place + 1 :]]) for place in places]
    return [*into, _joined([*lines, *([""] if lines else []), f"[{_dotted(path[:-1])}]", *written])]


def _heads(line: str, table: Path) -> bool:
    header = _HEADER.match(line)
    return bool(header) and tuple(part.strip().strip("\"'") for part in str(header and header[1]).split(".")) == table


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n" if lines else ""
