"""Allowing something for a while from the cards of Telegram and Slack, in a real hub: in words, used, revoked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.channels.test_channels_end_to_end import ADA, config
from tests.integration.test_hub_rules import asking
from tests.support.chat_stage import buttons_of, text_of
from tests.support.fake_host import FakeHost
from tests.support.fake_slack import FakeSlack
from tests.support.fake_telegram import FakeTelegram
from tests.support.hubs import HubProcess, hub_process
from tests.support.waiting import wait_for

OFFER = "⏱ Allow for a while …"
Message = dict[str, Any]


class Hand:
    """One person in one chat: sees, presses."""

    def __init__(self, server: Any, person: Any, press: Callable[[Message, str], Any]) -> None:
        self.server, self.person, self.press = server, person, press

    def reads(self, words: str, button: str = "") -> Message:
        def found() -> Message | None:
            seen = [one for one in self.person.sees() if words in text_of(one)]
            fitting = [one for one in seen if not button or button in buttons_of(one)]
            return fitting[-1] if fitting else None

        return self.server.wait_for(found, f"{words!r}")

    def press_on(self, words: str, button: str) -> Message:
        message = self.reads(words, button)
        self.press(message, button)
        return message


@pytest.fixture
def hub(server: FakeTelegram, slack: FakeSlack) -> Iterator[HubProcess]:
    server.person(ADA)
    slack.person("U0ADA")
    with hub_process(config(server, slack)) as made:
        wait_for(lambda: all(channel["state"] == "ok" for channel in made.ask("status")["channels"]))
        yield made


@pytest.fixture(params=["telegram", "slack"])
def hand(request: pytest.FixtureRequest, hub: HubProcess, server: FakeTelegram, slack: FakeSlack) -> Hand:
    if request.param == "telegram":
        ada = server.person(ADA)
        return Hand(server, ada, ada.tap)
    work = slack.person("U0ADA")
    return Hand(slack, work, work.click)


def test_a_card_offers_it_in_words_gives_it_and_takes_it_back(hub: HubProcess, hand: Hand) -> None:
    with FakeHost(hub.home, tool="claude") as host:
        host.raise_prompt(asking("npm run test"))
        hand.press_on("npm run test", OFFER)
        offer = hand.reads(
            "AtlasBridge would allow this without asking: `npm run test` with files of tests and these options"
        )
        lines = text_of(offer).splitlines()
        assert [line[0] for line in lines[1:10]] == ["✅", "✅", "✅", "❌", " ", "❌", " ", "❌", " "]
        assert "   Asked: the wildcard of the grant does not cover it: 'deploy' " in text_of(offer)
        assert "✅ npm run test" in lines and "❌ npm run test && rm -rf x" in lines
        assert buttons_of(offer) == ["For 30 minutes", "5 times", "In this session", "In this folder", "✖ No, ask me"]
        assert hub.json("grants", "list", "--json") == []

        hand.press(offer, "5 times")
        assert host.answer_typing()["answer"] == {"kind": "choice", "value": "1"}
        given = hand.reads("Granted: `npm run test` with files of tests and these options: ")
        host.raise_prompt(asking("npm run test --silent"))
        assert host.answer_typing()["answer"] == {"kind": "choice", "value": "1"}
        (grant,) = hub.json("grants", "list", "--json")
        assert grant["uses_left"] == 3 and grant["by"].startswith(("telegram:1001", "slack:"))

        hand.press(given, "✖ Revoke")
        hand.reads("Revoked. AtlasBridge asks you again.")
        assert hub.json("grants", "list", "--json") == []
        host.raise_prompt(asking("npm run test --again"))
        hand.reads("npm run test --again", OFFER)


def test_what_cannot_be_granted_is_said_and_what_is_not_whole_is_not_offered(hub: HubProcess, hand: Hand) -> None:
    with FakeHost(hub.home, tool="claude") as host:
        host.raise_prompt(asking("npm run test $(evil)"))
        message = hand.reads("npm run test $(evil)", OFFER)
        pressed = hand.press(message, OFFER)

        def is_told() -> bool:
            said = getattr(pressed, "toast", "") or "".join(map(text_of, hand.person.sees()))
            return "This cannot be granted: it is not certain what would run" in said

        hand.server.wait_for(is_told, "why not")
        assert hub.json("grants", "list", "--json") == []
        host.raise_prompt(asking("npm run other", certain=False))
        assert OFFER not in buttons_of(hand.reads("npm run other"))
