"""Which message shows which prompt, and when it stood there by the chat's own clock.

In memory for what this process sent, from the hub after a restart.  Which prompt a text means is decided in `target`.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from atlasbridge.channels.outbox import Place
from atlasbridge.core.clock import Clock
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import PromptRecord

KEPT = 1000
READING_S = 1.0  # nobody reads and answers faster; Telegram's clock shows whole seconds
Spot = tuple[str, str, float]  # chat, message, when it was posted (0: not known)


def encode_places(spots: list[Spot]) -> str:
    """The opaque message id that the store keeps: "chat/message/when chat/message/when"."""
    return " ".join(f"{chat}/{message}/{at:.6f}" if at else f"{chat}/{message}" for chat, message, at in spots)


def parse_places(text: str) -> list[Spot]:
    parts = [part.split("/") for part in text.split()]
    return [(part[0], part[1], float(part[2]) if len(part) > 2 else 0.0) for part in parts if len(part) > 1]


@dataclass(frozen=True, slots=True)
class Standing:
    """The prompts that may have stood in a chat at a moment, and whether it is certain that they could be read."""

    prompts: tuple[str, ...]
    certain: bool


@dataclass(slots=True)
class _Life:
    spots: list[Spot] = field(default_factory=list)
    ended_at: float | None = None


class Shown:
    def __init__(self, hub_api: HubApi, channel: str, clock: Clock) -> None:
        self._hub_api, self._channel, self._clock = hub_api, channel, clock
        self._lives: OrderedDict[str, _Life] = OrderedDict()
        self._prompts: dict[Place, str] = {}
        self._references: OrderedDict[Place, str] = OrderedDict()
        self._since = clock.wall()  # what stood open before this process listened is not known for certain
        self._ahead_s = 0.0  # how far the chat's clock is ahead of ours

    def load(self) -> None:
        """What an earlier process had shown and is still open."""
        for record in self._hub_api.open_prompts():
            for delivery in self._hub_api.deliveries(record.prompt_id, self._channel):
                self.places(record.prompt_id, delivery)

    def add(self, prompt_id: str, place: Place, at: float = 0.0) -> None:
        life = self._lives.setdefault(prompt_id, _Life())
        if place not in [spot[:2] for spot in life.spots]:
            life.spots.append((*place, at))
        self._prompts[place] = prompt_id
        while len(self._lives) > KEPT:
            for chat, message, _ in self._lives.popitem(last=False)[1].spots:
                self._prompts.pop((chat, message), None)

    def posted(self, prompt_id: str, place: Place, at: float) -> None:
        """It was posted just now, and the chat says when that was."""
        if at:
            self._ahead_s = at - self._clock.wall()
        self.add(prompt_id, place, at)

    def is_everybodys(self, record: PromptRecord) -> bool:
        """Whether everybody who takes part in this channel may hear of it."""
        return self._hub_api.readers(record.session_id, self._channel) is None

    def refer(self, prompt_id: str, place: Place) -> None:
        """A message that asks for the words of one of its choices: it shows nothing, but a reply to it is meant so."""
        self._references[place] = prompt_id
        while len(self._references) > KEPT:
            self._references.popitem(last=False)

    def words_wanted_at(self, place: Place) -> str:
        return self._references.get(place, "")

    def end(self, prompt_id: str) -> None:
        """It is answered or gone, from now on."""
        life = self._lives.get(prompt_id)
        if life is not None and life.ended_at is None:
            life.ended_at = self.chat_time()

    def chat_time(self) -> float:
        return self._clock.wall() + self._ahead_s

    def spots(self, prompt_id: str) -> list[Spot]:
        life = self._lives.get(prompt_id)
        return list(life.spots) if life else []

    def places(self, prompt_id: str, message_id: str = "") -> list[Place]:
        for chat, message, at in parse_places(message_id):
            self.add(prompt_id, (chat, message), at)
        return [(chat, message) for chat, message, _ in self.spots(prompt_id)]

    def prompt_at(self, place: Place) -> str:
        """The prompt's id, or "" when this message shows none that we know of."""
        return self._prompts.get(place, "")

    def standing(self, chat: str, moment: float) -> Standing:
        """What this chat may have shown when somebody wrote there at this moment."""
        found, certain = [], moment > self._since + self._ahead_s
        for prompt_id, life in self._lives.items():
            shown_at = [at for where, _, at in life.spots if where == chat]
            if not shown_at or min(shown_at) > moment + READING_S:
                continue
            if life.ended_at is not None and life.ended_at < moment - READING_S:
                continue
            found.append(prompt_id)
            certain = certain and min(shown_at) > 0 and moment - min(shown_at) > READING_S
        return Standing(tuple(found), certain)
