"""`atlasbridge policy migrate`: the rules that say what the old `[[grants]]` of config.toml said."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import click

from atlasbridge.cli.printing import home
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.policy.offer import Migrated, StandingAnswer, migrate
from atlasbridge.core.system import OWN_FILE

HEADER = "[[grants]]"


def show(write: bool) -> None:
    found = find()
    if not found:
        click.echo("config.toml has no [[grants]]: there is nothing to migrate")
        return
    for item in found:
        shown = f"[[grants]] for {item.old.tool}: {item.old.question!r} = {item.old.answer!r}"
        click.echo(f"# {shown}\n{item.rules}" if item.rules else f"# {shown}\n# no rule: {item.why}\n")
    if write:
        take_over(found)
    else:
        click.echo("take them over with: atlasbridge policy migrate --write")


def find() -> list[Migrated]:
    from atlasbridge.bootstrap import load_configuration
    from atlasbridge.config.rules import shell_parser

    old = load_configuration(home(), os.environ).general.grants
    return migrate([StandingAnswer(item.tool, item.question, item.answer) for item in old], shell_parser())


def take_over(found: list[Migrated]) -> None:
    """Rules first: if they cannot be added, the configuration stays as it is."""
    from atlasbridge.cli.policy import append, rule_file

    path = home().config
    before = path.read_text(encoding="utf-8")
    after = comment_out(before)
    rules = "\n".join(item.rules for item in found if item.rules)
    if rules:
        append(rule_file(None), rules)
    replace_file(path, after)
    click.echo(f"{path}: the old [[grants]] are comments now")


def comment_out(text: str) -> str:
    """With every [[grants]] table as a comment, and all else as it was; ConfigError where that cannot be done."""
    lines, inside = [], False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            inside = line.split("#")[0].strip().replace(" ", "") == HEADER
        lines.append(f"# {line}" if inside and line.strip() else line)
    done = "".join(lines)
    wanted = {name: value for name, value in tomllib.loads(text).items() if name != "grants"}
    try:
        same = tomllib.loads(done) == wanted
    except tomllib.TOMLDecodeError:
        same = False
    if not same:
        raise ConfigError("[[grants]] cannot be taken out of config.toml safely", "remove it by hand, then try again")
    return done


def replace_file(path: Path, text: str) -> None:
    draft = path.with_name(path.name + ".draft")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | OWN_FILE, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
