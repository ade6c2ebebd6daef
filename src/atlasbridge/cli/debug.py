"""`atlasbridge debug bundle`: collects the files for a bug report, and verifies that no known secret is in them."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import click

from atlasbridge.bootstrap import load_configuration
from atlasbridge.cli.doctor import run_checks
from atlasbridge.cli.printing import home
from atlasbridge.cli.records import database_schema, versions
from atlasbridge.config.secrets import HIDDEN, hide_secrets, is_secret_name
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home
from atlasbridge.core.prompt.redact import leaves

LOG_TAIL_BYTES = 1_000_000
SHORTEST_SECRET = 4  # shorter values occur everywhere


@click.group("debug")
def command() -> None:
    """Help for bug reports."""


@command.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("atlasbridge-debug.tar.gz"))
def bundle(output: Path) -> None:
    """Write logs, schema and the configuration without secrets into one file.  It contains no prompt and no answer."""
    secrets = known_secrets(home(), dict(os.environ))
    members = {name: leaves(text, tuple(secrets)) for name, text in collect(home()).items()}
    refuse_leaks(members, secrets)
    write(output, members)
    click.echo(f"written to {output}: {', '.join(sorted(members))}")


def collect(place: Home) -> dict[str, str]:
    members = {
        "versions.json": _json(versions()),
        "doctor.json": _json([check.to_json() for check in run_checks(place)]),
        "config.json": _json(_config(place)),
        "schema.sql": database_schema(place),
        "files.json": _json(_files(place)),
    }
    for path in sorted(place.root.glob("hub.log*")) + sorted(place.sessions.glob("*.log")):
        members[f"logs/{path.name}"] = _tail(path)
    return members


def known_secrets(place: Home, environ: dict[str, str]) -> set[str]:
    """All values whose names look like secrets, from the environment and from the effective configuration."""
    found = {value for name, value in environ.items() if is_secret_name(name)}
    try:
        found |= _secret_values({"channels": dict(load_configuration(place, environ).channels)}, "")
    except AtlasBridgeError:
        pass  # an invalid configuration is reported by its error only, never by its content
    return {value for value in found if len(value) >= SHORTEST_SECRET}


def _secret_values(data: Any, name: str) -> set[str]:
    if isinstance(data, dict):
        return set().union(*(_secret_values(value, str(key)) for key, value in data.items()), set())
    if isinstance(data, list | tuple):
        return set().union(*(_secret_values(item, name) for item in data), set())
    return {str(data)} if data and is_secret_name(name) else set()


def refuse_leaks(members: dict[str, str], secrets: set[str]) -> None:
    """Raise an error if a secret is found; then nothing is written."""
    for name, text in members.items():
        if any(secret in text for secret in secrets):
            raise AtlasBridgeError(f"a secret would have been written into {name}", "please report this as a bug")


def write(output: Path, members: dict[str, str]) -> None:
    output.touch(mode=0o600)
    with tarfile.open(output, "w:gz") as archive:
        for name, text in sorted(members.items()):
            data = text.encode()
            info = tarfile.TarInfo(f"atlasbridge-debug/{name}")
            info.size, info.mode = len(data), 0o600
            archive.addfile(info, io.BytesIO(data))


def _config(place: Home) -> Any:
    try:
        found = load_configuration(place, os.environ)
    except AtlasBridgeError as error:
        return {"error": str(error)}
    general = found.general.model_dump(mode="json")
    general["grants"] = [{**grant, "question": HIDDEN, "answer": HIDDEN} for grant in general["grants"]]
    general["launchers"] = [{**one, "command": _program(one["command"])} for one in general["launchers"]]
    return hide_secrets({**general, "channels": dict(found.channels)})


def _program(words: list[str]) -> list[str]:
    """Keep only the program, because arguments can contain anything."""
    return [Path(words[0]).name, *([f"({len(words) - 1} more words)"] if words[1:] else [])]


def _files(place: Home) -> list[dict[str, Any]]:
    return [
        {"name": str(path.relative_to(place.root)), "mode": oct(path.stat().st_mode), "bytes": path.stat().st_size}
        for path in sorted(place.root.rglob("*"))
        if not path.is_symlink()
    ]


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LOG_TAIL_BYTES))
        return file.read().decode(errors="replace")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
