"""`atlasbridge config`: shows, checks and changes settings, and tells where the file is."""

from __future__ import annotations

import copy
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable
from typing import Any

import click

from atlasbridge.bootstrap import check_configuration, load_configuration
from atlasbridge.cli.printing import Renaming, echo, home, hub_client, json_option, print_json
from atlasbridge.cli.run import print_error
from atlasbridge.config.load import locate_settings, setting_paths, variable
from atlasbridge.config.model import AtlasBridgeConfig
from atlasbridge.config.session import hide_secrets
from atlasbridge.core.daemon.request import lock_holder
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.home import Home
from atlasbridge.core.session.model import did_you_mean, nearest
from atlasbridge.core.system import sync_file, sync_folder, write_private

# The configuration as TOML text: rendered completely, or with one setting changed and the rest unchanged. Pure.

Path = tuple[str, ...]
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEADER = re.compile(r"^\s*\[([^\[\]]+)\]\s*(?:#.*)?$")
_MISSING = object()


def render_toml(table: dict[str, Any], under: Path = ()) -> list[str]:
    """Render values first, then sub-tables; unset values become comments."""
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
    """A value that is already rendered."""


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
    """Return the text with this setting changed or removed; all other settings keep their values.

    Raises ConfigError if the file cannot be changed safely and a person must edit it.
    """
    wanted = _changed(_parsed(text), path, value)
    for candidate in _candidates(text, path, value):
        try:
            if _filled(tomllib.loads(candidate)) == _filled(wanted):
                return candidate
        except (ValueError, RecursionError):
            continue
    raise ConfigError(
        f"{_dotted(path)} cannot be changed without touching more", "change it with: atlasbridge config edit"
    )


def _filled(data: Any) -> Any:
    """Remove empty tables, because removing the last setting of a table can leave an empty one."""
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
            raise ConfigError(f"{name} is not a table", "show it with: atlasbridge config show")
    if value is not _MISSING:
        table[path[-1]] = value
    elif table.pop(path[-1], _MISSING) is _MISSING:
        raise ConfigError(f"{_dotted(path)} is not set in the file", "show all settings with: atlasbridge config show")
    return wanted


def _candidates(text: str, path: Path, value: Any) -> list[str]:
    """Possible new texts, the smallest change first. The old value can span several lines."""
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


# The file itself: an invalid text is never written.


def read_table(home: Home, channel: str) -> dict[str, Any]:
    """The channel's current table in the file; {} if there is none."""
    table = _parsed(read_text(home)).get("channels", {}).get(channel, {})
    return dict(table) if isinstance(table, dict) else {}


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"config.toml cannot be read: {error}", "correct it with: atlasbridge config edit") from None


def write_table(home: Home, channel: str, table: dict[str, Any]) -> None:
    """Set each of these in the channel's table; the other settings and the comments stay."""
    text = read_text(home)
    for name, value in table.items():
        text = change_setting(text, ("channels", channel, name), value)
    write_checked(home, text)


def read_text(home: Home) -> str:
    try:
        return home.config.read_text(encoding="utf-8") if home.config.exists() else ""
    except UnicodeDecodeError:
        raise ConfigError("config.toml is not UTF-8 text", f"save it as UTF-8: {home.config}") from None


def write_checked(home: Home, text: str) -> None:
    """Write the whole file; if it is invalid, the old one stays."""
    home.prepare()
    fresh = home.config.with_name("config.toml.new")
    write_private(fresh, text)
    sync_file(fresh)
    try:
        check_configuration(fresh, os.environ)
    except ConfigError as error:
        fresh.unlink()
        raise ConfigError(str(error).replace(fresh.name, home.config.name), error.hint) from None
    os.replace(fresh, home.config)
    sync_folder(home.config.parent)


@click.group("config", cls=Renaming, renamed={"unset": "remove"})
def command() -> None:
    """Show, check or change the configuration."""


@command.command()
def path() -> None:
    """Print the path of the configuration file."""
    click.echo(home().config)


@command.command()
def check() -> None:
    """Check the file and the environment, and show the line of each mistake.  Exit status 2 if invalid."""
    found = load_configuration(home(), os.environ)
    for hint in found.hints:
        click.echo(f"hint: {hint}")
    where = home().config if home().config.exists() else "no file, all defaults"
    echo(f"the configuration is valid ({where}); channels: {', '.join(['local', *found.channels])}")


@command.command()
@click.option("--env", "variables", is_flag=True, help="List the environment variables instead.")
@json_option
def show(variables: bool, as_json: bool) -> None:
    """Show every setting with its value, as TOML; secrets are hidden."""
    if variables:
        for setting in setting_paths(AtlasBridgeConfig):
            click.echo(f"{variable(setting):55} {'.'.join(setting)}")
        return
    if as_json:
        print_json(_values())
        return
    click.echo(escape_controls("\n".join(render_toml(_values()))))


def complete_settings(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    names = (".".join(setting) for setting in setting_paths(AtlasBridgeConfig))
    return [name for name in names if name.startswith(incomplete)]


@command.command("set")
@click.argument("name", shell_complete=complete_settings)
@click.argument("value")
def set_value(name: str, value: str) -> None:
    """Write a setting into the file, such as prompts.timeout_seconds 900; "-" reads the value from standard input.

    The file is checked before it is saved, and everything else in it stays as it is.  A running hub uses it at once.
    """
    given = sys.stdin.read().removesuffix("\n") if value == "-" else value
    path, text = tuple(name.split(".")), read_text(home())
    faults: list[ConfigError] = []
    for reading in _readings(given):
        try:
            write_checked(home(), change_setting(text, path, reading))
            return apply_change(f"{name} is set")
        except ConfigError as error:
            faults.append(error)
    # the line number would be wrong, because this text is not in the file
    told = re.sub(r"^config\.toml line \d+: ", "", str(faults[-1]))
    raise ConfigError(told, faults[-1].hint)


@command.command()
@click.argument("name", shell_complete=complete_settings)
def get(name: str) -> None:
    """Print one setting, or all below a name such as prompts; a secret is hidden."""
    path, found = tuple(name.split(".")), _values()
    for part in path:
        if not isinstance(found, dict) or part not in found:
            near = nearest(name, [".".join(setting) for setting in setting_paths(AtlasBridgeConfig)])
            raise ConfigError(
                f"there is no setting {name}", did_you_mean(near) or "show all settings with: atlasbridge config show"
            )
        found = found[part]
    click.echo(escape_controls(_shown(found, path)))


def _shown(value: Any, path: tuple[str, ...]) -> str:
    """Text unchanged, for scripts; other values as TOML; "" for unset values."""
    match value:
        case None | str():
            return value or ""
        case dict():
            return "\n".join(render_toml(value, path))
        case _:
            return render_value(value)


def _values() -> Any:
    found = load_configuration(home(), os.environ)
    return hide_secrets({**found.general.model_dump(mode="json"), "channels": dict(found.channels)})


def _readings(given: str) -> list[Any]:
    """Possible values: the TOML value if it is valid TOML (numbers, true, lists), and the text itself."""
    try:
        value = tomllib.loads(f"value = {given}")["value"]
    except (ValueError, RecursionError):
        return [given]
    return [value] if isinstance(value, str | list) else [value, given]


@command.command("remove")
@click.argument("name", shell_complete=complete_settings)
def remove(name: str) -> None:
    """Remove a setting from the file: its default applies again."""
    write_checked(home(), change_setting(read_text(home()), tuple(name.split("."))))
    apply_change(f"{name} has its default again")


@command.command()
def edit() -> None:
    """Open the file in your editor ($VISUAL, $EDITOR); it is saved only if it is valid."""
    text = read_text(home())
    while True:
        changed = click.edit(text, extension=".toml", require_save=False)
        if changed is None or changed == read_text(home()):
            click.echo("nothing was changed")
            return
        try:
            write_checked(home(), changed)
        except ConfigError as error:
            print_error(str(error), error.hint, error.exit_code)
            if not click.confirm("Edit it again?", default=True, err=True):
                raise
            text = changed
        else:
            apply_change("the configuration is valid and saved")
            return


def apply_change(what: str, say: Callable[..., str] = str.format) -> None:
    """Print what was changed, and reload a running hub so that it applies at once. `say` translates."""
    if lock_holder(home().lock) is None:
        click.echo(what)
        return
    with hub_client() as hub:
        answer = hub.request("reload")
    if answer.get("ok"):
        echo(say("{what}; the hub uses it now. Running sessions keep their detection settings.", what=what))
    else:
        echo(f"{what}; the hub still uses the old settings: {answer.get('message', '')}")
        click.echo("try: atlasbridge hub restart")
