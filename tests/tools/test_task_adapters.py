"""ptypool's task adapters with the real tools, offline against the mock model: a task is given and seen as done."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.real_tools.mockmodel import MockModel
from tests.real_tools.realtool import find_tool, prepare_launch

from ptypool import PtyPool
from ptypool.cli import adapter_for

pytestmark = [pytest.mark.tools, pytest.mark.timeout(180)]
ALL = os.environ.get("ATLASBRIDGE_LAB_REAL") == "1"
WANTED = ("claude", "codex", "gemini", "opencode") if ALL else ("claude", "codex")
DEFAULT_TOOLS = Path(__file__).parents[2] / ".venv" / "tools"


@pytest.mark.parametrize("tool", WANTED)
async def test_a_task_is_given_to_the_real_tool_and_seen_as_done(tool: str, tmp_path: Path) -> None:
    os.environ.setdefault("ATLASBRIDGE_TOOLS", str(DEFAULT_TOOLS))
    binary = find_tool(tool)
    assert binary is not None, f"{tool} is missing: run tools/install-extras"
    with MockModel(str(tmp_path / "work")).serving() as model:
        launch = prepare_launch(tool, binary, tmp_path, model.address)
        env = {**launch.env, "PATH": f"{binary.parent}{os.pathsep}{launch.env['PATH']}"}
        adapter = adapter_for(tool, json_events=True)
        async with PtyPool(1) as pool, asyncio.timeout(150):
            handle = await adapter.spawn(pool, "please lab:say now", launch.folder, env=env)
            output = "".join([chunk.decode(errors="replace") async for chunk in handle])
            status = await handle.wait()
    assert adapter.parse_status_output(output) == "completed", output[-2000:]
    assert status == 0
    assert any(scene == "say" for _, scene, _, _ in model.requests)
