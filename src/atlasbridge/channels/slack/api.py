"""Calls Slack's Web API through slack-sdk. A call returns the answer or raises one of two errors; the outbox
retries."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from atlasbridge.channels.outbox import Params, Place, Posted, Refused, Unreachable

QUERIES = {"users.info"}  # Slack accepts no JSON for these methods
FILE_HOSTS = {"files.slack.com", "slack-files.com"}
OK, CHUNK, DOWNLOAD_S = 200, 65536, 60.0
PASSING = {"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"}
GONE = {"channel_not_found", "is_archived", "not_in_channel", "user_disabled", "user_not_found", "cannot_dm_bot"}
BAD_TOKEN = {
    "invalid_auth",
    "not_authed",
    "token_revoked",
    "token_expired",
    "account_inactive",
    "not_allowed_token_type",
}
_TOKEN = re.compile(r"x(?:ox[a-z]|app)-[\w-]+|(?<=ticket=)[\w-]+|(?<=/link/)[\w?=&-]+")


class HideTokens(logging.Filter):
    """Removes tokens, tickets and tracebacks (which contain both) from the SDK's log records."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = _TOKEN.sub("<token>", record.getMessage()), ()
        record.exc_info, record.exc_text = None, None
        return True


sdk_log = logging.getLogger(f"{__name__}.sdk")
sdk_log.setLevel(logging.INFO)  # at DEBUG the SDK logs the messages of people
sdk_log.addFilter(HideTokens())


class SlackRefused(Refused):
    def __init__(self, method: str, error: str, flood_s: float | None = None) -> None:
        super().__init__(f"Slack refused {method}: {error}", flood_s=flood_s, gone=error in GONE)
        self.error = error

    @property
    def bad_token(self) -> bool:
        return self.error in BAD_TOKEN


class SlackApi:
    def __init__(self, token: str, base_url: str, timeout_s: float) -> None:
        self._token, self._base_url, self._timeout_s = token, base_url, timeout_s
        self._session: aiohttp.ClientSession | None = None
        self._client = AsyncWebClient()

    def __repr__(self) -> str:
        return "SlackApi(<token>)"

    def _web(self) -> AsyncWebClient:
        """One client for the life of the channel. It belongs to the event loop that first uses it."""
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=self._timeout_s))
            self._client = AsyncWebClient(
                self._token,
                base_url=self._base_url,
                session=self._session,
                logger=sdk_log,
                retry_handlers=[],  # a hidden retry could post a message twice
            )
        return self._client

    async def call(self, method: str, params: Params | None = None) -> dict[str, Any]:
        sent: dict[str, Any] = {"json": params or {}}
        if method in QUERIES:
            sent = {"http_verb": "GET", "params": params or {}}
        try:
            response = await self._web().api_call(method, **sent)
        except SlackApiError as fault:
            raise _judge(method, fault) from None
        except (aiohttp.ClientError, SlackClientError, TimeoutError, OSError, ValueError) as fault:
            raise Unreachable(f"Slack cannot be reached ({type(fault).__name__})") from None
        return dict(response.data) if isinstance(response.data, dict) else {}

    async def post(self, chat: str, params: Params) -> Posted:
        """Post a message, a message for a single person (`only_for`), or a file if params has a `document`."""
        if "document" in params:
            return Posted(await self._upload(chat, params))
        rest = {name: value for name, value in params.items() if name != "only_for"}
        sent = {"channel": chat, "unfurl_links": False, "unfurl_media": False, **rest}
        if only_for := params.get("only_for"):
            answer = await self.call("chat.postEphemeral", {**sent, "user": only_for})
            return Posted(str(answer.get("message_ts", "")))
        ts = str((await self.call("chat.postMessage", sent))["ts"])
        return Posted(ts, moment_of(ts))

    async def edit(self, place: Place, params: Params) -> None:
        """Edit a message. Its thread cannot change."""
        rest = {name: value for name, value in params.items() if name not in ("thread_ts", "reply_broadcast")}
        await self.call("chat.update", {"channel": place[0], "ts": place[1], **rest})

    async def download(self, url: str, kind: str, most: int) -> bytes | None:
        """Download a file; None if it is larger than `most` bytes. The token is sent to Slack's own hosts only."""
        if not self._is_slacks(url):
            raise Unreachable("the file is not at Slack")
        self._web()
        if self._session is None:
            raise Unreachable("the channel is closed")
        patience = aiohttp.ClientTimeout(total=DOWNLOAD_S)
        headers = {"Authorization": f"Bearer {self._token}"}
        content = bytearray()
        try:
            async with self._session.get(url, headers=headers, allow_redirects=False, timeout=patience) as response:
                if response.status != OK or (response.content_type == "text/html" and kind != "text/html"):
                    raise Unreachable("Slack does not give the file; has the app the scope files:read?")
                async for chunk in response.content.iter_chunked(CHUNK):
                    content += chunk
                    if len(content) > most:
                        return None
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as fault:
            raise Unreachable(f"Slack cannot be reached ({type(fault).__name__})") from None
        return bytes(content)

    def _is_slacks(self, url: str) -> bool:
        asked, own = urlsplit(url), urlsplit(self._base_url)
        if (asked.scheme, asked.netloc) == (own.scheme, own.netloc):
            return True
        return asked.scheme == "https" and (asked.hostname or "") in FILE_HOSTS

    async def open_dm(self, user_id: str) -> str:
        answer = await self.call("conversations.open", {"users": user_id})
        return str(answer["channel"]["id"])

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
            await asyncio.sleep(0)  # transports close their sockets in the next iteration of the loop

    async def _upload(self, chat: str, params: Params) -> str:
        name, content = params["document"]
        try:
            await self._web().files_upload_v2(
                channel=chat,
                filename=name,
                content=content,
                title=params.get("text") or name,
                thread_ts=params.get("thread_ts"),
            )
        except SlackApiError as fault:
            raise _judge("files.upload", fault) from None
        except (aiohttp.ClientError, SlackClientError, TimeoutError, OSError) as fault:
            raise Unreachable(f"Slack cannot be reached ({type(fault).__name__})") from None
        return ""


def moment_of(ts: object) -> float:
    """Return when a message was posted, by Slack's clock; 0 if `ts` is not a timestamp."""
    try:
        return float(str(ts))
    except ValueError:
        return 0.0


def _judge(method: str, fault: SlackApiError) -> Refused | Unreachable:
    """Classify the error. A broken answer has no error code and is worth a retry."""
    status = int(getattr(fault.response, "status_code", 0) or getattr(fault.response, "status", 0) or 0)
    data = getattr(fault.response, "data", None)
    error = str(data.get("error", "")) if isinstance(data, dict) else ""
    if status == 429 or error == "ratelimited":
        headers = getattr(fault.response, "headers", None) or {}
        return SlackRefused(method, "ratelimited", flood_s=float(headers.get("Retry-After", 1)))
    if status >= 500 or not error or error in PASSING:
        return Unreachable(f"Slack has a fault of its own ({status} {error})")
    return SlackRefused(method, error)
