"""Many sessions ask within ten seconds: `python -m tests.torture fifty_ask [--sessions N]`.

A real hub with the page, Telegram (a strict fake) and push (a fake service).  Reports what each of them received: how
many, in which order, how late the last; then every question is answered in Telegram, and each tool must get its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.support.arena import arena, wait_for
from tests.support.crowd import Directory
from tests.support.fake_push import PushService, Subscriber
from tests.support.fake_telegram import FakeTelegram
from tests.support.page_client import enter_now

ADA = 1001
API = "/api/v1"
CONFIG = """
[channels.web]
port = 0
push_hosts = ["127.0.0.1:{push}"]

[channels.telegram]
bot_token = "{token}"
allowed_users = [{ada}]
api_url = "{url}"
"""
QUESTION = re.compile(r"Question 0 of (n\d+):")


def main(sessions: int = 50) -> int:
    with push_service() as service, FakeTelegram() as telegram:
        ada = telegram.person(ADA)
        config = CONFIG.format(push=service.port, token=telegram.token, ada=ADA, url=telegram.url)
        with arena(config) as place:
            place.start_hub()
            page, phone = Page(place.ask("page", do="link", scope="answer")), Subscriber(service)
            page.subscribe(phone)
            directory = Directory(place, questions=1, pause=1000)
            for number in range(sessions):
                directory.add(number, real_start=True)
            began = time.time()
            gate = os.open(directory.gate, os.O_RDWR)
            wait_for(lambda: len(page.raised) >= sessions, "every question on the page", 120)
            wait_for(lambda: len(cards(telegram)) >= sessions, "every question in Telegram", 300)
            asked = {
                one.name: float(one.file.with_name(f"{one.name}.got.asked").read_text()) for one in directory.fighters
            }
            report(asked, page, telegram, service, phone, began)
            for name, message in messages(ada).items():
                ada.write(f"{name} gets 0", reply_to=message)
            wait_for(lambda: all(one.has_received(1) for one in directory.fighters), "every answer", 300)
            os.close(gate)
            wrong = [one.name for one in directory.fighters if one.received() != [f"0\t{one.name} gets 0"]]
            held = place.ask("audit.verify")["verdict"]["ok"]
            page.close()
    right = sessions - len(wrong)
    print(f"fifty_ask: {right} of {sessions} right answers; the audit log is {'whole' if held else 'NOT whole'}")
    return 1 if wrong or not held else 0


class Page:
    """A browser's event stream: when it heard of each question."""

    def __init__(self, links: dict[str, Any]) -> None:
        self._client = httpx.Client(base_url=links["url"], timeout=httpx.Timeout(60, read=None))
        enter_now(self._client, links["links"]["local"])
        self.raised: dict[str, float] = {}
        self._thread = threading.Thread(target=self._listen, daemon=True, name="page")
        self._thread.start()

    def subscribe(self, phone: Subscriber) -> None:
        told = self._client.post(f"{API}/push/subscriptions", json=phone.to_json())
        assert told.status_code == 200, told.text

    def _listen(self) -> None:
        with contextlib.suppress(httpx.HTTPError), self._client.stream("GET", f"{API}/events") as stream:
            for line in stream.iter_lines():
                if line.startswith("data: "):
                    self._hear(json.loads(line[6:]))

    def _hear(self, event: dict[str, Any]) -> None:
        asked = QUESTION.search((event.get("prompt") or {}).get("excerpt") or "")
        if event["event"] == "prompt.raised" and asked:
            self.raised.setdefault(asked[1], time.time())

    def close(self) -> None:
        self._client.close()


@contextmanager
def push_service() -> Iterator[PushService]:
    """In a thread of its own, as the phone's is."""
    service, ready, loop = PushService(), threading.Event(), asyncio.new_event_loop()

    def serve() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(service.start())
        ready.set()
        loop.run_forever()

    thread = threading.Thread(target=serve, daemon=True, name="push-service")
    thread.start()
    ready.wait(30)
    try:
        yield service
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


def cards(telegram: FakeTelegram) -> dict[str, float]:
    """Session -> when its question was taken by the server."""
    found: dict[str, float] = {}
    for call in list(telegram.calls):
        asked = QUESTION.search(str(call.params.get("text", ""))) if call.method == "sendMessage" else None
        if asked and call.params.get("reply_markup"):
            found.setdefault(asked[1], call.at)
    return found


def messages(person: Any) -> dict[str, Any]:
    seen = [(QUESTION.search(str(one.get("text", ""))), one) for one in person.sees() if one.get("reply_markup")]
    return {asked[1]: one for asked, one in seen if asked}


def report(
    asked: dict[str, float], page: Page, telegram: FakeTelegram, service: PushService, phone: Subscriber, began: float
) -> None:
    span_s = max(asked.values()) - min(asked.values())
    print(f"fifty_ask: {len(asked)} questions within {span_s:.1f} s")
    for name, at in (("page", page.raised), ("Telegram", cards(telegram))):
        late = [at[one] - asked[one] for one in at]
        print(
            f"fifty_ask: {name}: {len(at)} shown, {swapped(asked, at)} out of order, "
            f"median {sorted(late)[len(late) // 2]:.2f} s, the last {max(late):.2f} s after it was asked"
        )
    sends = [call.params for call in telegram.calls if call.method == "sendMessage"]
    loud = sum(not one.get("disable_notification") for one in sends)
    edits = sum(call.method == "editMessageText" for call in telegram.calls)
    print(f"fifty_ask: Telegram took {len(sends)} messages, {loud} with a sound, and {edits} edits")
    told = [phone.open(body) for body in service.bodies]
    covered = sum(int(one["count"]) if "count" in one else 1 for one in told if one["kind"] == "ask")
    last_s = (service.times[-1] - max(asked.values())) if service.times else 0.0
    print(f"fifty_ask: push took {len(told)} messages for {covered} questions, the last {last_s:.2f} s after the last")


def swapped(asked: dict[str, float], shown: dict[str, float]) -> int:
    """Neighbours by the time of asking that were shown the other way round, more than a tenth of a second apart."""
    order = sorted(shown, key=lambda one: asked[one])
    return sum(
        shown[second] < shown[first] and asked[second] - asked[first] > 0.1
        for first, second in itertools.pairwise(order)
    )
