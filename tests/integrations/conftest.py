"""A real hub, and callers without a terminal in front of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.hubs import HubProcess, hub_process
from tests.support.person import Person
from tests.support.waiting import wait_for


class HubApi:
    """The person: sees what is asked and answers it."""

    def __init__(self, hub: HubProcess, person: Person) -> None:
        self.hub = hub
        self._person = person

    def prompts(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.hub.ask("prompts")["prompts"]
        return found

    def next(self) -> dict[str, Any]:
        wait_for(lambda: bool(self.prompts()))
        return self.prompts()[0]

    def answer(self, value: str, **how: Any) -> dict[str, Any]:
        prompt = self.next()
        self.reply(prompt["prompt_id"], value, **how)
        return prompt

    def reply(self, prompt_id: str, value: str, **how: Any) -> str:
        """From a terminal of their own: a program cannot answer what it asks itself.  Returns what they are told."""
        outcome = self._person.request(self.hub.home, "reply", prompt_id=prompt_id, value=value, **how)
        assert outcome["ok"], outcome
        return str(outcome["message"])

    def try_reply(self, prompt_id: str, value: str) -> bool:
        """Whether it was taken; a hub that dies meanwhile has not said so."""
        try:
            return bool(self._person.request(self.hub.home, "reply", prompt_id=prompt_id, value=value)["ok"])
        except (OSError, ValueError):
            return False

    def wait_quiet(self) -> None:
        wait_for(lambda: not self.prompts())

    def audit(self) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.hub.ask("audit")["entries"]
        return entries


@pytest.fixture
def hub_api() -> Iterator[HubApi]:
    person = Person()
    with hub_process() as hub:
        yield HubApi(hub, person)
    person.close()
