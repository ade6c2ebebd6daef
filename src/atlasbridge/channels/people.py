"""Display names of people: from the configuration, otherwise from the messages they send.

The hub stores the names. They are used in messages only; decisions use ids.
"""

from __future__ import annotations

from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ports import HubApi

NAME_LIMIT = 40
TIMER = "auto:"
PLACES = {"cli": "a terminal", "local": "a terminal", "web": "the page", "grant": "a standing answer"}


class People:
    def __init__(self, hub_api: HubApi, channel: str) -> None:
        self._hub_api, self._channel = hub_api, channel
        self._names: dict[str, str] = {}

    def learn(self, person_id: str, name: object) -> None:
        """`person_id` is the part of an identity after the channel's name."""
        known = escape_controls(str(name or ""), keep_lines=False).strip()[:NAME_LIMIT]
        if known and self._names.get(person_id) != known:
            self._names[person_id] = known
            self._hub_api.remember(_key(self._channel, person_id), known)

    def name(self, person_id: str) -> str:
        return self._names.get(person_id) or self._hub_api.recall(_key(self._channel, person_id))

    def call(self, identity: str) -> str:
        """Return a known name, otherwise a place; an id only as the last resort."""
        if given := self._hub_api.name_of(identity):
            return given
        channel, _, person_id = identity.partition(":")
        known = self.name(person_id) if channel == self._channel else self._hub_api.recall(_key(channel, person_id))
        return known or PLACES.get(channel, "") or escape_controls(identity, keep_lines=False)

    def rename(self, sentence: str, identity: str) -> str:
        """Replace the identity in the sentence by a name."""
        return sentence.replace(identity, self.call(identity)) if identity else sentence


def is_timer(identity: str) -> bool:
    return identity.startswith(TIMER)


def _key(channel: str, person_id: str) -> str:
    return f"{channel}.name.{person_id}"
