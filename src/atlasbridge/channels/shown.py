"""Which message shows which prompt: in memory for what this process sent, from the desk after a restart."""

from __future__ import annotations

from collections import OrderedDict

from atlasbridge.channels.outbox import Place
from atlasbridge.core.ports import Desk

KEPT = 1000


def encode_places(places: list[Place]) -> str:
    """The opaque message id that the store keeps: "chat/message chat/message"."""
    return " ".join(f"{chat}/{message}" for chat, message in places)


def parse_places(text: str) -> list[Place]:
    pairs = [part.partition("/") for part in text.split()]
    return [(chat, message) for chat, _, message in pairs]


class Shown:
    def __init__(self, desk: Desk, channel: str) -> None:
        self._desk, self._channel = desk, channel
        self._places: OrderedDict[str, list[Place]] = OrderedDict()
        self._prompts: dict[Place, str] = {}

    def load(self) -> None:
        """What an earlier process had shown and is still open."""
        for record in self._desk.open_prompts():
            for delivery in self._desk.deliveries(record.prompt_id, self._channel):
                self.places(record.prompt_id, delivery)

    def add(self, prompt_id: str, place: Place) -> None:
        places = self._places.setdefault(prompt_id, [])
        if place not in places:
            places.append(place)
        self._prompts[place] = prompt_id
        while len(self._places) > KEPT:
            for old in self._places.popitem(last=False)[1]:
                self._prompts.pop(old, None)

    def places(self, prompt_id: str, message_id: str = "") -> list[Place]:
        for place in parse_places(message_id):
            self.add(prompt_id, place)
        return list(self._places.get(prompt_id, []))

    def prompt_at(self, place: Place) -> str:
        """The prompt's id, or "" when this message shows none that we know of."""
        return self._prompts.get(place, "")
