"""`atlasbridge config`: what is set, whether it is right, and where it stands."""

from __future__ import annotations

import os

import click

from atlasbridge.bootstrap import load_configuration
from atlasbridge.cli.printing import home, json_option, print_json
from atlasbridge.config.environment import setting_paths, variable
from atlasbridge.config.model import AtlasBridgeConfig
from atlasbridge.config.secrets import hide_secrets


@click.group("config")
def command() -> None:
    """Show or check the configuration."""


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
    """Every setting with its value; secrets are hidden."""
    if variables:
        for setting in setting_paths(AtlasBridgeConfig):
            click.echo(f"{variable(setting):55} {'.'.join(setting)}")
        return
    found = load_configuration(home(), os.environ)
    values = hide_secrets({**found.general.model_dump(mode="json"), "channels": dict(found.channels)})
    if as_json:
        print_json(values)
        return
    for line in render(values, ""):
        click.echo(line)


def render(table: dict[str, object], under: str) -> list[str]:
    lines: list[str] = []
    for name, value in table.items():
        dotted = f"{under}{name}"
        if isinstance(value, dict):
            lines += render(value, f"{dotted}.") or [f"{dotted} = {{}}"]
        else:
            lines.append(f"{dotted} = {value!r}")
    return lines
