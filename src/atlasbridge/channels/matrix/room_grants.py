"""Allowing something for a while in a room: a reaction to the question brings the offer, keycaps under it decide.

Which offer is whose is kept by the desk: a restart forgets none.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from atlasbridge.channels import grant_card
from atlasbridge.channels.grant_card import GrantWords
from atlasbridge.channels.matrix import looks
from atlasbridge.channels.matrix.api import MatrixApi
from atlasbridge.core.ids import new_id
from atlasbridge.core.ports import Desk
from atlasbridge.core.prompt.model import PromptRecord


class RoomGrants:
    def __init__(self, desk: Desk, api: MatrixApi, edit: Callable[[str, str], None]) -> None:
        self._desk, self._api, self._edit = desk, api, edit

    def knows(self, meant: str, record: PromptRecord | None, key: str) -> bool:
        """Whether this reaction is about a grant: the clock under a question, or anything under an offer."""
        if record is not None:
            return looks.is_while(key) and looks.offers_grant(record.prompt)
        return bool(meant and self._desk.recall(_note(meant)))

    async def take(self, meant: str, record: PromptRecord | None, key: str, identity: str) -> None:
        if record is not None:
            await self._show(meant, record, grant_card.press(self._desk, record, "", identity))
            return
        kept = json.loads(self._desk.recall(_note(meant)))
        value, offered = looks.grant_choice(kept["values"], key), self._desk.prompt(kept["prompt_id"])
        if value is not None and offered is not None:
            await self._show(meant, offered, grant_card.press(self._desk, offered, value, identity))

    async def _show(self, beside: str, record: PromptRecord, words: GrantWords | str) -> None:
        if isinstance(words, str):
            await self._say(looks.reply_message(beside, words, loud=False))
            return
        event_id = beside
        if words.beside:
            event_id = await self._say(looks.reply_message(beside, looks.render_grant(words), loud=False))
        else:
            self._edit(beside, looks.render_grant(words))
        values = [value for _, value in words.buttons]
        self._desk.remember(_note(event_id), json.dumps({"prompt_id": record.prompt_id, "values": values}))
        for key in looks.KEYCAPS[: len(values)] if words.beside else ():
            await self._api.send("m.reaction", looks.reaction(event_id, key), f"grant.{new_id()}")

    async def _say(self, content: dict[str, object]) -> str:
        return await self._api.send("m.room.message", content, f"grant.{new_id()}")


def _note(event_id: str) -> str:
    return f"matrix.grant.{event_id}"
