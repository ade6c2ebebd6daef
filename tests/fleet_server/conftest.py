"""One PostgreSQL server for all of these tests, a new database for each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.support.fleet import HubApi, fleet_server_on, short_root
from tests.support.postgres import Postgres, postgres

from atlasbridge.fleet.member import channel as link


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PostgreSQL is more than Python alone."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.heavy)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is held asks again soon."""
    monkeypatch.setattr(link, "HELD_S", 0.2)


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


@pytest.fixture
def database(server: Postgres) -> str:
    return server.new_database()


@pytest.fixture
async def fleet_server(database: str) -> AsyncIterator[HubApi]:
    async with fleet_server_on(database) as running:
        yield running


@pytest.fixture
def root() -> Iterator[Path]:
    with short_root() as folder:
        yield folder
