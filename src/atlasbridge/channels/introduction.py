"""What `atlasbridge setup` needs of a chat service: is the token good, who is this person, does a tap arrive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Person:
    person_id: str
    name: str


class Introduction(Protocol):
    """Talks to the service before there is a channel.  Every method may raise ChannelError."""

    async def check(self) -> str:
        """Try the tokens against the server; returns how the bot is called there."""

    async def find_person(self, word: str, patience_s: float) -> Person | None:
        """Wait until somebody sends this word to the bot; None: nobody did."""

    async def prove(self, person_id: str, patience_s: float) -> bool:
        """Send a test prompt and wait for that person's tap."""

    def settings(self, person_ids: list[str]) -> dict[str, Any]:
        """What belongs into the channel's table, besides the tokens."""

    async def close(self) -> None: ...
