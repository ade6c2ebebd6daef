"""The task adapters: exact command lines (by a fake tool on PATH that prints what it got), and statuses from output.

The JSON lines of finished tasks are of the shape that the real tools print today: Claude Code 2.1.325, Codex 0.166.0,
Gemini CLI 0.61.0, OpenCode 1.18.33; those of failed tasks follow their documents.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.ptypool.waiting import read_all
from tests.support.terminal import SCRIPT

from ptypool import PtyPool, SpawnFailed
from ptypool.cli import CliAdapter, CliType, adapter_for

TASK = "--help me; echo 'x' $(y)\nand a second line"
FAKE = (
    SCRIPT
    + """import json, os, sys
print(json.dumps({"argv": sys.argv[1:], "cwd": os.getcwd(), "tty": os.isatty(0), "mine": os.environ.get("MINE")}))
"""
)


@pytest.fixture
async def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PtyPool]:
    """A pool in whose PATH every known tool is a fake that prints its arguments."""
    (tmp_path / "bin").mkdir()
    for name in CliType:
        (tmp_path / "bin" / name).write_text(FAKE)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    async with PtyPool(2) as pool:
        yield pool


async def arguments_of(pool: PtyPool, adapter: CliAdapter, workdir: Path) -> list[str]:
    seen = json.loads(await read_all(await adapter.spawn(pool, TASK, workdir)))
    assert seen["cwd"] == str(workdir) and seen["tty"]
    return list(seen["argv"])


@pytest.mark.parametrize(
    ("cli_type", "expected"),
    [
        ("claude", ["-p", "--", TASK]),
        ("codex", ["exec", "--skip-git-repo-check", "--", TASK]),
        ("gemini", [f"--prompt={TASK}"]),
        ("opencode", ["run", "--", TASK]),
    ],
)
async def test_a_task_reaches_the_tool_as_one_argument(
    pool: PtyPool, tmp_path: Path, cli_type: str, expected: list[str]
) -> None:
    assert await arguments_of(pool, adapter_for(cli_type), tmp_path) == expected


@pytest.mark.parametrize(
    ("cli_type", "flags"),
    [
        ("claude", ["--dangerously-skip-permissions"]),
        ("codex", ["--sandbox", "workspace-write"]),
        ("gemini", ["--approval-mode", "yolo"]),
        ("opencode", ["--auto"]),
    ],
)
async def test_permissions_are_skipped_only_by_the_argument_that_says_so(
    pool: PtyPool, tmp_path: Path, cli_type: str, flags: list[str]
) -> None:
    careful = await arguments_of(pool, adapter_for(cli_type), tmp_path)
    careless = await arguments_of(pool, adapter_for(cli_type, dangerously_skip_permissions=True), tmp_path)
    assert not set(flags) & set(careful)
    assert [word for word in careless if word not in careful] == flags


@pytest.mark.parametrize(
    ("cli_type", "flags"),
    [
        ("claude", ["--output-format", "stream-json", "--verbose"]),
        ("codex", ["--json"]),
        ("gemini", ["--output-format", "stream-json"]),
        ("opencode", ["--format", "json"]),
    ],
)
async def test_json_events_are_switched_on(pool: PtyPool, tmp_path: Path, cli_type: str, flags: list[str]) -> None:
    plain = await arguments_of(pool, adapter_for(cli_type), tmp_path)
    with_events = await arguments_of(pool, adapter_for(cli_type, json_events=True), tmp_path)
    assert [word for word in with_events if word not in plain] == flags


@pytest.mark.parametrize("cli_type", list(CliType))
def test_an_adapter_tells_its_tool(cli_type: CliType) -> None:
    adapter: CliAdapter = adapter_for(cli_type)
    assert (adapter.cli_type, adapter.binary_name) == (cli_type, cli_type.value)
    assert isinstance(adapter.default_args, tuple)


async def test_the_environment_of_the_caller_is_added(pool: PtyPool, tmp_path: Path) -> None:
    handle = await adapter_for("gemini").spawn(pool, "task", tmp_path, env={"MINE": "yes"}, size=(40, 120))
    assert handle.size == (40, 120)
    assert json.loads(await read_all(handle))["mine"] == "yes"


def test_an_unknown_tool_is_refused() -> None:
    with pytest.raises(ValueError, match="emacs"):
        adapter_for("emacs")


async def test_an_empty_task_is_refused(pool: PtyPool, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs a task"):
        await adapter_for("claude").spawn(pool, "  \n", tmp_path)


async def test_a_tool_that_is_not_installed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    async with PtyPool(1) as pool:
        with pytest.raises(SpawnFailed) as caught:
            await adapter_for("codex").spawn(pool, "task", tmp_path)
        assert (caught.value.errno, caught.value.stage) == (errno.ENOENT, "program")


async def test_a_missing_workdir_is_reported(pool: PtyPool, tmp_path: Path) -> None:
    with pytest.raises(SpawnFailed) as caught:
        await adapter_for("codex").spawn(pool, "task", tmp_path / "missing")
    assert caught.value.stage == "cwd"


WORKING = {
    "claude": '{"type":"assistant","message":{"content":[{"type":"text","text":"All done."}]}}',
    "codex": '{"type":"item.completed","item":{"id":"item_0","type":"error","message":"Model metadata not found."}}',
    "gemini": '{"type":"tool_result","tool_id":"run_1","status":"success","output":""}',
    "opencode": '{"type":"step_finish","part":{"reason":"tool-calls","type":"step-finish"}}',
}
COMPLETED = {
    "claude": '{"duration_ms":12,"type":"result","subtype":"success","is_error":false,"result":"All done."}',
    "codex": '{"type":"turn.completed","usage":{"input_tokens":20}}',
    "gemini": '{"type":"result","status":"success","stats":{"total_tokens":40}}',
    "opencode": '{"type":"step_finish","part":{"reason":"stop","type":"step-finish"}}',
}
FAILED = {
    "claude": '{"type":"result","subtype":"error_during_execution","is_error":true}',
    "codex": '{"type":"turn.failed","error":{"message":"stream disconnected"}}',
    "gemini": '{"type":"result","status":"error","error":{"message":"quota"}}',
    "opencode": '{"type":"error","error":{"name":"APIError"}}',
}


@pytest.mark.parametrize("cli_type", list(CliType))
@pytest.mark.parametrize(("lines", "status"), [(WORKING, None), (COMPLETED, "completed"), (FAILED, "error")])
def test_the_status_is_read_from_events(cli_type: CliType, lines: dict[str, str], status: str | None) -> None:
    output = "Warning: some text\r\n\x1b[1m{ no json\x1b[0m\r\n" + WORKING[cli_type] + "\r\n" + lines[cli_type] + "\r\n"
    assert adapter_for(cli_type).parse_status_output(output) == status


@pytest.mark.parametrize("cli_type", list(CliType))
def test_a_line_that_is_cut_short_is_no_status_yet(cli_type: CliType) -> None:
    assert adapter_for(cli_type).parse_status_output(COMPLETED[cli_type][:-5]) is None


@pytest.mark.parametrize(
    ("cli_type", "output", "status"),
    [
        ("claude", "The error: it was in main()\r\n", None),
        ("claude", "\x1b[31mAPI Error: 500 overloaded\x1b[0m\r\n", "error"),
        ("codex", "\x1b[35mcodex\x1b[0m\r\nAll done.\r\n\x1b[2mtokens used\x1b[0m\r\n40\r\n", "completed"),
        ("opencode", "\x1b[91m\x1b[1mError: \x1b[0mThe user rejected permission.\r\n", "error"),
        ("gemini", "All done.\r\n", None),
    ],
)
def test_plain_text_tells_a_little(cli_type: str, output: str, status: str | None) -> None:
    assert adapter_for(cli_type).parse_status_output(output) == status
