"""How people are called: as the configuration names them, else as they call themselves in what they send.

Names are kept by the hub and used in every message; only ids decide.
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
        """`person_id` as it stands in an identity behind the channel's name."""
        known = escape_controls(str(name or ""), keep_lines=False).strip()[:NAME_LIMIT]
        if known and self._names.get(person_id) != known:
            self._names[person_id] = known
            self._hub_api.remember(_key(self._channel, person_id), known)

    def name(self, person_id: str) -> str:
        return self._names.get(person_id) or self._hub_api.recall(_key(self._channel, person_id))

    def call(self, identity: str) -> str:
        """A name where one is known, else a place; an id only where there is nothing better."""
        if given := self._hub_api.name_of(identity):
            return given
        channel, _, person_id = identity.partition(":")
        known = self.name(person_id) if channel == self._channel else self._hub_api.recall(_key(channel, person_id))
        return known or PLACES.get(channel, "") or escape_controls(identity, keep_lines=False)

    def rename(self, sentence: str, identity: str) -> str:
        """The same sentence with a name in place of an identity."""
        return sentence.replace(identity, self.call(identity)) if identity else sentence


def is_timer(identity: str) -> bool:
    return identity.startswith(TIMER)


def _key(channel: str, person_id: str) -> str:
    return f"{channel}.name.{person_id}"
