"""An example channel: every prompt is posted as JSON to an address of yours, and answers are fetched from there.

It shows all that a channel needs: the four methods of the specification, settings of its own, and one background task.
Each request carries a signature, `X-AtlasBridge-Signature: sha256=<hmac of the body>`, made with the shared secret.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

import httpx
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from atlasbridge.channels.base import BaseChannel
from atlasbridge.channels.outbox import Backoff
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt, Reject
from atlasbridge.core.session.model import SessionRecord


class WebhookSettings(BaseModel):
    """The table [channels.webhook]."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    url: str = Field(description="Where prompts are posted; answers come from the same address + /replies.")
    secret: SecretStr = Field(description="What both sides sign with.")
    allowed_users: list[str] = Field(default=[], description="The names whose answers count.")
    retry_s: float = Field(default=1.0, gt=0, description="First pause when the address does not answer.")


class WebhookChannel(BaseChannel):
    name = "webhook"
    settings_model = WebhookSettings  # this is how `atlasbridge config check` knows the table

    def __init__(self, settings: Mapping[str, Any], hub_api: HubApi, clock: Clock) -> None:
        super().__init__(settings, hub_api, clock)
        self._own = WebhookSettings.model_validate(dict(settings))
        self._http = httpx.AsyncClient(timeout=8.0)
        self._replies: asyncio.Queue[InboundReply] = asyncio.Queue()
        self._fetching: asyncio.Task[None] | None = None
        self._state = "starting"

    async def start(self) -> None:
        """What an earlier process had accepted and not settled counts first."""
        for update_id, payload in self.hub_api.pending_updates("webhook"):
            self._pass_on(update_id, json.loads(payload))
        self._fetching = asyncio.create_task(self._fetch_for_ever(), name="webhook-replies")

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        """The nonce goes along: only who saw the prompt can answer it."""
        shown = {**event.to_json(), "nonce": event.nonce, "session": session.to_json()}
        await self._post({"event": "prompt", "prompt": shown})
        return event.prompt_id

    async def receive_reply(self) -> InboundReply:
        return await self._replies.get()

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        await self.hub_api.settle_update("webhook", str(reply.token))
        taken = isinstance(outcome, Receipt)
        await self._post({"event": "outcome", "id": reply.token, "taken": taken, "sentence": outcome.sentence})

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        news = {"stage": receipt.stage, "sentence": receipt.sentence, "by": receipt.by}
        await self._post({"event": "update", "prompt_id": message_id, **news})

    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        await self._post({"event": "notice", "message": message, "session_id": session.session_id if session else ""})

    async def close(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)
        await self._http.aclose()

    def health(self) -> dict[str, Any]:
        return {"state": self._state}

    async def _post(self, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        await self._request("POST", self._own.url, data)

    async def _request(self, method: str, url: str, data: bytes = b"") -> httpx.Response:
        """One try.  The hub tries again: a channel only has to say that it failed."""
        digest = hmac.new(self._own.secret.get_secret_value().encode(), data, hashlib.sha256).hexdigest()
        headers = {"X-AtlasBridge-Signature": f"sha256={digest}", "Content-Type": "application/json"}
        try:
            response = await self._http.request(method, url, content=data, headers=headers)
            response.raise_for_status()
        except httpx.HTTPError as fault:
            raise ChannelError(f"the webhook did not take it ({type(fault).__name__})", "check its address") from None
        return response

    async def _fetch_for_ever(self) -> None:
        backoff = Backoff(self._own.retry_s)
        while True:
            try:
                after = self.hub_api.recall("webhook.after", "0")
                response = await self._request("GET", f"{self._own.url}/replies?after={after}")
                for reply in response.json():
                    await self._take(reply)
                self._state = "ok"
                backoff.reset()
            except (ChannelError, ValueError, KeyError) as fault:
                self._state = f"failing: {fault}"
                await asyncio.sleep(backoff.next_wait())

    async def _take(self, reply: dict[str, Any]) -> None:
        """Into the hub's inbox first, so that an answer that comes twice counts once."""
        update_id = str(reply["id"])
        fresh = await self.hub_api.accept_update("webhook", update_id, json.dumps(reply))
        self.hub_api.remember("webhook.after", update_id)
        if fresh:
            self._pass_on(update_id, reply)

    def _pass_on(self, update_id: str, reply: dict[str, Any]) -> None:
        if (who := str(reply["by"])) in self._own.allowed_users:
            self._replies.put_nowait(
                InboundReply(
                    channel="webhook",
                    identity=f"webhook:{who}",
                    prompt_id=str(reply["prompt_id"]),
                    value=str(reply["value"]),
                    nonce=str(reply["nonce"]),
                    session_id=str(reply["session_id"]),
                    token=update_id,
                )
            )
