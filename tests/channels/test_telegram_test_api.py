"""One conversation against telegram-test-api, a Bot API server that others wrote (`make test-landing` installs it)."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.channels import prompts
from tests.channels.conftest import serving
from tests.channels.mini_hub import MiniHub
from tests.support.waiting import until

from atlasbridge.channels.telegram.channel import TelegramChannel
from atlasbridge.core.clock import SystemClock

pytestmark = pytest.mark.heavy
ADA = 1001
TOKEN = "123:outside"
SERVER = """
const TelegramServer = require(process.argv[1]);
const net = require('net').createServer().listen(0, '127.0.0.1', async () => {
  const port = net.address().port;
  net.close(async () => {
    const server = new TelegramServer({port, host: '127.0.0.1'});
    await server.start();
    console.log(server.config.apiURL);
  });
});
"""


@pytest.fixture
def outside() -> Iterator[str]:
    tools = Path(os.environ.get("ATLASBRIDGE_TOOLS") or Path(__file__).parents[2] / ".venv" / "tools")
    package = tools / "telegram-test-api" / "node_modules" / "telegram-test-api"
    node = shutil.which("node")
    assert node and package.is_dir(), "run tools/install-extras first"
    process = subprocess.Popen([node, "-e", SERVER, str(package)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), url
        yield url
    finally:
        process.terminate()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


class Phone:
    """The client side of that server's own HTTP interface."""

    def __init__(self, url: str, http: httpx.AsyncClient) -> None:
        self.url, self.http = url, http

    async def history(self) -> list[dict[str, Any]]:
        answer = await self.http.post(f"{self.url}/getUpdatesHistory", json={"token": TOKEN})
        return [entry for entry in answer.json()["result"] if "chat_id" in entry.get("message", {})]

    async def sees(self, words: str) -> dict[str, Any]:
        for _ in range(600):
            for entry in await self.history():
                if words in entry["message"]["text"]:
                    return entry
            await asyncio.sleep(0.05)
        raise AssertionError(f"never seen: {words}")

    async def tap(self, entry: dict[str, Any], label: str) -> None:
        rows = entry["message"]["reply_markup"]["inline_keyboard"]
        (data,) = [button["callback_data"] for row in rows for button in row if label in button["text"]]
        shown = {"message_id": entry["messageId"], "chat": {"id": ADA, "type": "private"}, "text": "", "date": 1}
        query = {"botToken": TOKEN, "from": {"id": ADA, "first_name": "Ada"}, "message": shown, "data": data}
        await self.http.post(f"{self.url}/sendCallback", json=query)

    async def write(self, text: str) -> None:
        message = {"botToken": TOKEN, "from": {"id": ADA, "first_name": "Ada"}, "text": text, "date": 1}
        await self.http.post(f"{self.url}/sendMessage", json={**message, "chat": {"id": ADA, "type": "private"}})


async def test_a_conversation_with_a_server_that_others_wrote(outside: str) -> None:
    hub = MiniHub()
    settings = {
        "bot_token": TOKEN, "allowed_users": [ADA], "api_url": outside, "backoff_first_s": 0.05, "messages_per_s": 99,
    }  # fmt: skip
    channel = TelegramChannel(settings, hub, SystemClock())
    async with httpx.AsyncClient() as http, serving(hub, channel):
        phone = Phone(outside, http)
        session = hub.add_session()
        yes_no = hub.add_prompt(session, prompts.YES_NO)
        await hub.ask(channel, yes_no)
        await phone.tap(await phone.sees("Continue? (y/n)"), "Yes")
        await until(lambda: yes_no.prompt_id in hub.answers)
        await phone.sees("Yes · Ada")
        text = hub.add_prompt(session, prompts.TEXT)
        await hub.ask(channel, text)
        await phone.write("blue")  # so soon that nobody can have read the question
        await phone.tap(await phone.sees("Which one do you mean?"), "project")
        await until(lambda: text.prompt_id in hub.answers)
        await phone.sees("“blue” · Ada")
        await phone.write("/sessions")
        await phone.sees("project · Claude Code · runs")
    assert [reply.value for reply in hub.replies] == ["y", "blue"]
