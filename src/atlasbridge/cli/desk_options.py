"""What the commands of a desk share: its database, its address, and who runs the command."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click

from atlasbridge.cli.fleet_words import needs

T = TypeVar("T")

database_option = click.option(
    "--database",
    "database_url",
    envvar="ATLASBRIDGE_DESK_DATABASE",
    required=True,
    help="postgresql://user@host/name; also from ATLASBRIDGE_DESK_DATABASE.",
)
url_option = click.option(
    "--url",
    envvar="ATLASBRIDGE_DESK_URL",
    default="http://127.0.0.1:8460",
    show_default=True,
    help="How machines and people reach the desk; also from ATLASBRIDGE_DESK_URL.",
)


def work(database_url: str, call: Callable[[Any], Awaitable[T]]) -> T:
    """Do something with the desk's database."""
    with needs("desk"):
        from atlasbridge.desk.database import Database

    async def run() -> T:
        database = Database(database_url, most=2)
        await database.open()
        try:
            return await call(database)
        finally:
            await database.close()

    return asyncio.run(run())


def operator() -> str:
    """Who runs a command of the desk, for its log."""
    return f"cli:{getpass.getuser()}"
