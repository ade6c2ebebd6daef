"""The example asks a real hub; only "Allow" allows."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.conftest import HubApi
from tests.support.hubs import hub_process
from tests.support.person import Person

from atlasbridge.client import AsyncClient


def _example() -> Any:
    spec = importlib.util.spec_from_file_location("ask_before_tools", Path(__file__).with_name("ask_before_tools.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("value", "as_text", "allowed"), [("y", False, True), ("n", False, False), ("no!", True, False)]
)
async def test_only_a_person_allows(value: str, as_text: bool, allowed: bool) -> None:
    person = Person()
    with hub_process() as hub:
        hub_api = HubApi(hub, person)
        client = AsyncClient(hub.home.root)
        asked = asyncio.create_task(_example().ask_for("Bash", {"command": "rm -rf build"}, client))
        prompt = await asyncio.to_thread(hub_api.answer, value, as_text=as_text)
        assert bool(await asked) is allowed
        assert prompt["subject"]["text"] == "rm -rf build"
    person.close()
