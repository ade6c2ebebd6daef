"""One call of Telegram's Bot API over HTTPS: the answer, or one of two errors.  Retrying is left to the callers.

The token is part of every URL, so nothing here logs a URL, and httpx's own log lines are cleaned.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

import httpx

from atlasbridge.channels import outbox
from atlasbridge.channels.outbox import Params, Place, Posted, Unreachable

log = logging.getLogger(__name__)
FILES = {"document": "sendDocument", "photo": "sendPhoto"}
LOOK_BACK = 8  # messages that may have come in between
_TOKEN = re.compile(r"/bot\d+:[^/\s\"']+")


class Refused(outbox.Refused):
    def __init__(self, code: int, description: str, retry_after_s: float) -> None:
        gone = code == 403 or "chat not found" in description
        flood_s = retry_after_s if code == 429 else None
        super().__init__(f"Telegram refused: {description} ({code})", flood_s=flood_s, gone=gone)
        self.code, self.description = code, description


class HideToken(logging.Filter):
    """Cleans the request line that httpx logs at INFO."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = _TOKEN.sub("/bot<token>", record.getMessage()), ()
        return True


logging.getLogger("httpx").addFilter(HideToken())


class BotApi:
    def __init__(self, token: str, base_url: str, timeout_s: float) -> None:
        self._prefix = f"{base_url.rstrip('/')}/bot{token}/"
        self._files = f"{base_url.rstrip('/')}/file/bot{token}/"
        self._timeout_s = timeout_s
        self._client = httpx.AsyncClient(timeout=timeout_s)
        self._doubtful: set[str] = set()
        self._last: dict[str, int] = {}
        self.is_known: Callable[[Place], object] = lambda place: False  # whether this message shows an open prompt

    def __repr__(self) -> str:
        return "BotApi(<token>)"

    async def call(
        self,
        method: str,
        params: Params | None = None,
        *,
        wait_s: float = 0.0,
        files: dict[str, tuple[str, bytes]] | None = None,
    ) -> Any:
        """`wait_s` is how long the server itself may take, for long polls; of `files`, each is (name, content)."""
        timeout = httpx.Timeout(self._timeout_s, read=self._timeout_s + wait_s)
        sent: dict[str, Any] = {"json": params or {}}
        if files:
            sent = {"data": params, "files": files}
        try:
            response = await self._client.post(self._prefix + method, timeout=timeout, **sent)
            answer = response.json()
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            raise Unreachable(f"Telegram cannot be reached ({type(fault).__name__})") from None
        except ValueError:
            raise Unreachable("Telegram's answer makes no sense") from None
        return _result(answer)

    async def post(self, chat: str, params: Params) -> Posted:
        """A message, a file where params has a `document`, a picture where it has a `photo`."""
        files = {name: params[name] for name in FILES if name in params}
        rest = {name: value for name, value in params.items() if name not in files}
        method = next((FILES[name] for name in files), "sendMessage")
        try:
            message = await self.call(method, {"chat_id": int(chat), **rest}, files=files)
        except Unreachable:
            self._doubtful.add(chat)  # it may stand there all the same, with live buttons
            raise
        number = int(message["message_id"])
        if chat in self._doubtful:
            self._doubtful.discard(chat)
            await self._disarm(chat, range(max(self._last.get(chat, 0) + 1, number - LOOK_BACK), number))
        self._last[chat] = number
        return Posted(str(number), float(message.get("date") or 0))

    async def _disarm(self, chat: str, numbers: range) -> None:
        """Take the buttons off what was posted without our knowledge since the last message we know of.

        Numbers that belong to people, to nobody, or to messages without buttons are refused by the server.
        """
        for number in numbers:
            if self.is_known((chat, str(number))):
                continue
            try:
                await self.call("editMessageReplyMarkup", {"chat_id": int(chat), "message_id": number})
            except (Refused, Unreachable) as fault:
                log.debug("message %s in %s keeps its looks: %s", number, chat, fault)

    async def download(self, file_id: str, most: int) -> bytes | None:
        """What a person sent; None: it is larger than `most` bytes."""
        known = await self.call("getFile", {"file_id": file_id})
        content = bytearray()
        try:
            async with self._client.stream("GET", self._files + str(known.get("file_path"))) as response:
                if response.status_code != httpx.codes.OK:
                    raise Unreachable(f"Telegram does not give the file ({response.status_code})")
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > most:
                        return None
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            raise Unreachable(f"Telegram cannot be reached ({type(fault).__name__})") from None
        return bytes(content)

    async def edit(self, place: Place, params: Params) -> None:
        try:
            await self.call("editMessageText", {"chat_id": int(place[0]), "message_id": int(place[1]), **params})
        except Refused as fault:
            if "message is not modified" not in fault.description:
                raise

    async def close(self) -> None:
        await self._client.aclose()


def _result(answer: Any) -> Any:
    if not isinstance(answer, dict):
        raise Unreachable("Telegram's answer makes no sense")
    if answer.get("ok"):
        return answer.get("result")
    code, description = int(answer.get("error_code") or 500), str(answer.get("description") or "")
    if code >= 500:
        raise Unreachable(f"Telegram has a fault of its own ({code})")
    parameters = answer.get("parameters") or {}
    raise Refused(code, description, float(parameters.get("retry_after") or 0))
