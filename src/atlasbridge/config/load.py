"""Reads and checks the whole configuration: file, environment, channel tables.

Any error raises ConfigError with the line, the setting and the allowed values; then nothing is started.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, SecretStr, TypeAdapter, ValidationError, create_model

from atlasbridge.config.model import SPELT_SECONDS, AtlasBridgeConfig
from atlasbridge.config.session import resolve
from atlasbridge.core.errors import ConfigError

# Finds the line of a setting in a TOML text, for error messages. It parses loosely, because tomllib has validated the
# text before.

SettingPath = tuple[str | int, ...]

_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")


def locate_settings(text: str) -> dict[SettingPath, int]:
    """Line numbers, starting at 1, of every table and key in the text."""
    lines: dict[SettingPath, int] = {}
    seen: Counter[SettingPath] = Counter()
    table: SettingPath = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _split(header[2])
            if header[1] == "[[":
                seen[table] += 1
                table = (*table, seen[table] - 1)
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, *_split(key[1])), number)
    return lines


def line_of(lines: dict[SettingPath, int], path: SettingPath) -> int | None:
    """The line of a setting, or of the nearest enclosing table in the text."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None


def _split(dotted: str) -> SettingPath:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


# Settings from the environment: ATLASBRIDGE_SECTION_KEY=value overrides the file, with the same meaning.

PREFIX = "ATLASBRIDGE_"

SettingName = tuple[str, ...]


def setting_paths(model: type[BaseModel], under: SettingName = ()) -> list[SettingName]:
    """Every setting with its own name; entries in lists of tables have none."""
    paths: list[SettingName] = []
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            paths += setting_paths(kind, (*under, name))
        else:
            paths.append((*under, name))
    return paths


def variable(path: SettingName) -> str:
    return PREFIX + "_".join(path).upper().replace("-", "_")


def lay_over(data: dict[str, Any], environ: Mapping[str, str], paths: Iterable[SettingName]) -> dict[SettingName, str]:
    """Apply the environment to `data`. Returns which setting came from which variable."""
    known = {variable(path): path for path in paths}
    sections = tuple({PREFIX + path[0].upper() + "_" for path in known.values()})
    taken: dict[SettingName, str] = {}
    for name in sorted(environ):
        if name in known:
            set_value(data, known[name], _parse(environ[name]))
            taken[known[name]] = name
        elif name.startswith(sections):
            raise ConfigError(f"{name} is not a setting", "list them with: atlasbridge config show --env")
    return taken


def _parse(text: str) -> Any:
    """As TOML if it is valid TOML (numbers, true, lists), otherwise the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError, KeyError):
        return text


def set_value(data: dict[str, Any], path: SettingName, value: Any) -> None:
    for name in path[:-1]:
        inner = data.setdefault(name, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{name} must be a table", f"write it as [{name}]")
        data = inner
    data[path[-1]] = value


# The tables of channels: the channel's own model checks each, with `enabled` added and unknown keys refused.

ON_BY_DEFAULT = frozenset({"web"})

_FLAG = TypeAdapter(bool)

SettingsClass = Callable[[str], type | None]  # a channel's name to its settings class, or None


def table_model(name: str, settings: type | None) -> type[BaseModel]:
    """The pydantic model of `[channels.NAME]`."""
    shows = '"whole": the whole question; "excerpt": at most 200 characters of it, and no screen.'
    extra: dict[str, Any] = {
        "enabled": (bool, Field(True, description="Whether this channel is used.")),
        "show": (Literal["whole", "excerpt"], Field("whole", description=shows)),
    }
    if settings is None:
        return create_model(f"{name}_table", __config__=ConfigDict(extra="allow", frozen=True), **extra)
    if issubclass(settings, BaseModel):
        return create_model(f"{name}_table", __base__=settings, __cls_kwargs__={"extra": "forbid"}, **extra)
    if is_dataclass(settings):
        hints = get_type_hints(settings)
        for item in fields(settings):
            default = item.default if item.default is not MISSING else ...
            if item.default_factory is not MISSING:
                default = Field(default_factory=item.default_factory)
            spelt = item.name.endswith("_s") and hints[item.name] is float
            extra[item.name] = (Annotated[float, SPELT_SECONDS] if spelt else hints[item.name], default)
        return create_model(f"{name}_table", __config__=ConfigDict(extra="forbid", frozen=True), **extra)
    raise TypeError(f"the settings of channel {name} are neither a pydantic model nor a dataclass")


def is_enabled(name: str, table: Mapping[str, Any] | None) -> bool:
    """A channel is enabled if its table exists and does not disable it; the page needs no table."""
    if table is None:
        return name in ON_BY_DEFAULT
    try:
        return _FLAG.validate_python(table.get("enabled", True))
    except ValidationError:
        return True  # the check of the table reports the error


def plain(model: BaseModel) -> dict[str, Any]:
    """The checked values for a channel: secrets as text, without the settings that every channel has."""
    return {
        name: value.get_secret_value() if isinstance(value, SecretStr) else value
        for name, value in model.model_dump().items()
        if name not in ("enabled", "show")
    }


T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Configuration:
    """The checked configuration: the general settings, and those of each enabled channel."""

    general: AtlasBridgeConfig
    channels: Mapping[str, Mapping[str, Any]]
    raw: Mapping[str, Any]  # file and environment together, secrets not yet resolved
    excerpt_only: frozenset[str] = frozenset()  # channels that get at most an excerpt
    hints: tuple[str, ...] = ()  # old names that were accepted, with their new names


@dataclass(frozen=True, slots=True)
class _Source:
    """Where settings came from, for error messages."""

    path: Path
    lines: Mapping[tuple[str | int, ...], int]
    variables: Mapping[tuple[str, ...], str]
    environ: Mapping[str, str]

    def as_text(self, location: tuple[str | int, ...]) -> str | None:
        """The exact text of a variable; None if the setting came from the file."""
        variable = self.variables.get(tuple(str(part) for part in location))
        return self.environ[variable] if variable else None

    def place(self, location: tuple[str | int, ...]) -> str:
        variable = self.variables.get(tuple(str(part) for part in location))
        if variable:
            return variable
        line = line_of(dict(self.lines), location)
        return f"{self.path.name} line {line}" if line else self.path.name


def load_config(
    path: Path,
    environ: Mapping[str, str],
    settings_class: SettingsClass,
    known_channels: list[str],
    adjust: Callable[[dict[str, Any]], None] = lambda data: None,
) -> Configuration:
    """The caller provides `settings_class` and `known_channels`; `adjust` changes the data after reading."""
    text = _read(path)
    data = _parse_file(path, text)
    _rename_older(data)
    lines = locate_settings(text)
    hints = _place_flat(data, lines, known_channels, path.name)
    adjust(data)
    tables = data["channels"] if isinstance(data.get("channels"), dict) else {}
    mentioned = {
        name for name in known_channels if any(one.startswith(variable(("channels", name, ""))) for one in environ)
    }
    named = [name for name in known_channels if name == "web" or name in tables or name in mentioned]
    models = {name: table_model(name, settings_class(name)) for name in named}
    paths = setting_paths(AtlasBridgeConfig)
    for name, model in models.items():
        paths += setting_paths(model, ("channels", name))
    source = _Source(path, lines, lay_over(data, environ, paths), environ)
    general = _check(AtlasBridgeConfig, data, (), source)
    channels = _check_channels(general.channels, models, known_channels, source, environ)
    strict = general.prompts.strict_excerpt
    narrow = [name for name in channels if strict or general.channels.get(name, {}).get("show") == "excerpt"]
    return Configuration(general, channels, data, frozenset(narrow), hints)


def _check_channels(
    tables: Mapping[str, Any],
    models: Mapping[str, type[BaseModel]],
    known: list[str],
    source: _Source,
    environ: Mapping[str, str],
) -> dict[str, dict[str, Any]]:
    for name, table in tables.items():
        if name not in known:
            place = source.place(("channels", name))
            raise ConfigError(f"{place}: there is no channel named {name!r}", f"known: {', '.join(known)}")
        if not isinstance(table, dict):
            raise ConfigError(f"{source.place(('channels', name))}: channels.{name} must be a table", "")
    checked = {}
    for name, model in models.items():
        if is_enabled(name, tables.get(name)):
            table = dict(tables.get(name, {}))
            resolved = {key: resolve(value, f"channels.{name}.{key}", environ) for key, value in table.items()}
            checked[name] = plain(_check(model, resolved, ("channels", name), source))
    return checked


def _rename_older(data: dict[str, Any]) -> None:
    """Files from before 0.1.0 use `[[ladders]]`, and `desk` for the channels of this machine."""
    if "ladders" in data and "escalation" not in data:
        data["escalation"] = data.pop("ladders")
    entries = data.get("escalation")
    for entry in entries if isinstance(entries, list) else []:
        steps = entry.get("steps") if isinstance(entry, dict) else None
        for step in steps if isinstance(steps, list) else []:
            if isinstance(step, dict) and isinstance(step.get("channels"), list):
                step["channels"] = ["here" if name == "desk" else name for name in step["channels"]]


# Settings that the specification names without a table.
FLAT: Final = {
    name: (table, name)
    for table, names in {
        "prompts": "timeout_seconds free_text_enabled",
        "detection": "detection_threshold stuck_timeout_seconds stuck_poll_interval_seconds buffer_size_bytes",
        "session": "inject_settle_ms injection_timeout_seconds task_timeout_seconds max_task_restarts",
        "retention": "session_max_age_hours",
    }.items()
    for name in names.split()
}
_OF_THE_CHANNEL: Final = ("bot_token", "allowed_users")


def _place_flat(
    data: dict[str, Any], lines: dict[tuple[str | int, ...], int], channels: list[str], file: str
) -> tuple[str, ...]:
    """Move settings that are outside their tables, as in the specification, to their tables."""
    named = str(data.get("channel", "telegram"))
    places: dict[str, tuple[str, ...]] = {**FLAT}
    places |= {name: ("channels", named, name) for name in _OF_THE_CHANNEL}
    places |= {name: ("channels", name) for name in channels if isinstance(data.get(name), dict)}
    hints = []
    if "channel" in data:
        line = lines.get(("channel",), 1)
        hints.append(
            f'{file} line {line}: `channel = "{named}"` is understood; today it is a table, [channels.{named}]'
        )
        del data["channel"]
        tables = data.setdefault("channels", {})
        if isinstance(tables, dict) and named != "none":
            tables.setdefault(named, {})
            lines.setdefault(("channels", named), line)
    for name, place in places.items():
        if name not in data:
            continue
        line = lines.get((name,), 1)
        if _is_set(data, place):
            raise ConfigError(
                f"{file} line {line}: {name} and {'.'.join(place)} are the same setting", "keep one of them"
            )
        set_value(data, place, data.pop(name))
        for path in [path for path in lines if path[0] == name]:
            lines.setdefault((*place, *path[1:]), lines[path])
        hints.append(f"{file} line {line}: {name} is understood; its name today is {'.'.join(place)}")
    return tuple(hints)


def _is_set(data: Any, place: tuple[str, ...]) -> bool:
    for name in place:
        if not isinstance(data, dict) or name not in data:
            return False
        data = data[name]
    return True


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise ConfigError(f"{path.name} is not UTF-8 text", f"save it as UTF-8: {path}") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", "check its owner and mode") from None


def _parse_file(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number that is too long, and tables within tables
        line = re.search(r"line (\d+)", str(error))
        place = f"{path.name} line {line[1]}" if line else path.name
        problem = re.sub(r" \(at .*\)$", "", str(error))
        raise ConfigError(f"{place}: {problem[:1].lower()}{problem[1:]}", f"edit {path}") from None


def _check(model: type[T], data: dict[str, Any], under: tuple[str, ...], source: _Source) -> T:
    """If a variable looks like a number but a text is expected (a name, a key), use its text."""
    while True:
        try:
            return model.model_validate(data)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            text = source.as_text((*under, *first["loc"])) if first["type"] == "string_type" else None
            if text is None or first["input"] == text:
                raise _explain(model, dict(first), under, source) from None
            set_value(data, tuple(str(part) for part in first["loc"]), text)


def _explain(model: type[BaseModel], error: dict[str, Any], under: tuple[str, ...], source: _Source) -> ConfigError:
    location = tuple(part for part in error["loc"] if not str(part).endswith("]"))
    whole = (*under, *location)
    name = ".".join(str(part) for part in whole)
    place = source.place(whole)
    table = _model_at(model, location[:-1])
    if error["type"] == "extra_forbidden":
        from difflib import get_close_matches  # imported only for an error

        known = list(table.model_fields) if table else []
        close = get_close_matches(str(location[-1]), known, 1)
        elsewhere = [".".join(path) for path in setting_paths(AtlasBridgeConfig) if path[-1] == location[-1]]
        meant = close or (elsewhere if not under else [])
        hint = f"did you mean {meant[0]}?" if meant else f"known here: {', '.join(known)}"
        if name == "grants":  # in files from before 0.1.0
            hint = "rules in policy.toml took its place (atlasbridge policy); remove it from this file"
        return ConfigError(f"{place}: there is no setting {name}", hint)
    if error["type"] == "missing":
        return ConfigError(f"{place}: {name} is missing", _allowed(table, location, error))
    given = "" if "token" in name or "secret" in name else f" (it is {error['input']!r})"
    problem = str(error["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    return ConfigError(f"{place}: {name} {problem[:1].lower()}{problem[1:]}{given}", _allowed(table, location, error))


def _model_at(model: type[BaseModel], location: tuple[Any, ...]) -> type[BaseModel] | None:
    """The table that contains a location; list positions are skipped."""
    current: type[BaseModel] | None = model
    for part in location:
        if isinstance(part, int):
            continue
        field = current.model_fields.get(str(part)) if current else None
        current = _table_of(field.annotation) if field else None
    return current


def _table_of(annotation: Any) -> type[BaseModel] | None:
    candidates: list[Any] = [annotation, *getattr(annotation, "__args__", ())]
    return next((item for item in candidates if isinstance(item, type) and issubclass(item, BaseModel)), None)


def _allowed(table: type[BaseModel] | None, location: tuple[Any, ...], error: dict[str, Any]) -> str:
    """The hint of an error: the meaning of the setting, and its default."""
    field = table.model_fields.get(str(location[-1])) if table else None
    if field is None:
        return "remove it, or look it up with: atlasbridge config show"
    parts = [field.description or ""]
    if not field.is_required():
        parts.append(f"The default is {field.get_default(call_default_factory=True)!r}.")
    return " ".join(part for part in parts if part) or "give it a value"
