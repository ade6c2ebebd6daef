"""`atlasbridge config`: what is set, whether it is right, and where it stands."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from typing import Any

import click

from atlasbridge.bootstrap import load_configuration
from atlasbridge.cli.config_text import change_setting, render_toml, render_value
from atlasbridge.cli.printing import home, json_option, print_json
from atlasbridge.cli.setup_file import read_text, write_checked
from atlasbridge.config.environment import setting_paths, variable
from atlasbridge.config.model import AtlasBridgeConfig
from atlasbridge.config.secrets import hide_secrets
from atlasbridge.core.daemon.lock import lock_holder
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.session.naming import meant, nearest
from atlasbridge.core.visible import visible


@click.group("config")
def command() -> None:
    """Show, check or change the configuration."""


@command.command()
def path() -> None:
    """Where the configuration file is, or would be."""
    click.echo(home().config)


@command.command()
def check() -> None:
    """Check the file and the environment; says line, setting and what is allowed.  Exit status 2 when bad."""
    found = load_configuration(home(), os.environ)
    where = home().config if home().config.exists() else "no file, all defaults"
    click.echo(f"the configuration is good ({where}); channels: {', '.join(['local', *found.channels])}")


@command.command()
@click.option("--env", "variables", is_flag=True, help="List the environment variables instead.")
@json_option
def show(variables: bool, as_json: bool) -> None:
    """Every setting with its value, as TOML; secrets are hidden."""
    if variables:
        for setting in setting_paths(AtlasBridgeConfig):
            click.echo(f"{variable(setting):55} {'.'.join(setting)}")
        return
    if as_json:
        print_json(_values())
        return
    click.echo(visible("\n".join(render_toml(_values()))))


def complete_settings(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    names = (".".join(setting) for setting in setting_paths(AtlasBridgeConfig))
    return [name for name in names if name.startswith(incomplete)]


@command.command("set")
@click.argument("name", shell_complete=complete_settings)
@click.argument("value")
def set_value(name: str, value: str) -> None:
    """Write a setting into the file, such as prompts.timeout_seconds 900; "-" reads the value from standard input.

    The file is checked before it takes the old one's place, and everything else in it stays as it is.
    """
    given = sys.stdin.read().removesuffix("\n") if value == "-" else value
    path, text = tuple(name.split(".")), read_text(home())
    faults: list[ConfigError] = []
    for reading in _readings(given):
        try:
            write_checked(home(), change_setting(text, path, reading))
            return _tell(f"{name} is set")
        except ConfigError as error:
            faults.append(error)
    told = re.sub(r"^config\.toml line \d+: ", "", str(faults[-1]))  # a line of a file that is not there
    raise ConfigError(told, faults[-1].hint)


@command.command()
@click.argument("name", shell_complete=complete_settings)
def get(name: str) -> None:
    """Print one setting, or all below a name such as prompts; a secret is hidden."""
    path, found = tuple(name.split(".")), _values()
    for part in path:
        if not isinstance(found, dict) or part not in found:
            near = nearest(name, [".".join(setting) for setting in setting_paths(AtlasBridgeConfig)])
            raise ConfigError(f"there is no setting {name}", meant(near) or "all of them: atlasbridge config show")
        found = found[part]
    click.echo(visible(_shown(found, path)))


def _shown(value: Any, path: tuple[str, ...]) -> str:
    """A text as it is, for scripts; everything else as TOML; nothing for what is not set."""
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
    """As TOML where it is TOML (numbers, true, lists), else as the text itself."""
    try:
        value = tomllib.loads(f"value = {given}")["value"]
    except tomllib.TOMLDecodeError:
        return [given]
    return [value] if isinstance(value, str | list) else [value, given]


@command.command()
@click.argument("name", shell_complete=complete_settings)
def unset(name: str) -> None:
    """Take a setting out of the file: its default holds again."""
    write_checked(home(), change_setting(read_text(home()), tuple(name.split("."))))
    _tell(f"{name} has its default again")


@command.command()
def edit() -> None:
    """Open the file in your editor ($VISUAL, $EDITOR); only a good one takes the old one's place."""
    text = read_text(home())
    while True:
        changed = click.edit(text, extension=".toml", require_save=False)
        if changed is None or changed == read_text(home()):
            click.echo("nothing was changed")
            return
        try:
            write_checked(home(), changed)
        except ConfigError as error:
            click.echo(f"error: {error}\n{error.hint}".rstrip(), err=True)
            if not click.confirm("Edit it again?", default=True, err=True):
                raise
            text = changed
        else:
            _tell("the configuration is good and in its place")
            return


def _tell(what: str) -> None:
    runs = lock_holder(home().lock) is not None
    click.echo(what + ("; the hub takes it over with: atlasbridge hub reload" if runs else ""))
