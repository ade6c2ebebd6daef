"""The two journeys of `docs/architecture.md`, followed as they run: every file that a reader passes is counted.

The page states both numbers.  A run may pass a few files less, when a timer or an event does not come.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.integration.test_hub_replies import ask
from tests.support.fake_hub_api import FakeHub
from tests.support.hubs import live_hub
from tests.support.journey import followed
from tests.support.sample_prompt import MENU
from tests.support.waiting import in_thread, wait_for
from tests.web.conftest import log_in

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.host.analysis import BareSession
from atlasbridge.core.prompt.answer import encode_answer
from atlasbridge.core.prompt.model import Answer, AnswerKind
from atlasbridge.core.session.settings import SessionSettings
from atlasbridge.core.tty import Size
from atlasbridge.os.tty import make_probe
from atlasbridge.os.tty.posix import PosixPTY

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
SLACK = 8  # files that only a timer or an event passes


def stated(title: str) -> int:
    """The number of files that the page states under this heading."""
    section = PAGE.read_text("utf-8").partition(f"### {title}\n")[2].partition("\n#")[0]
    found = re.search(r"\b(\d+) files\b", section)
    assert found, f"docs/architecture.md states no number of files under {title!r}"
    return int(found.group(1))


def check(title: str, seen: set[str]) -> None:
    print(f"{title}: {len(seen)} files\n" + "\n".join(sorted(seen)))
    number = stated(title)
    assert number - SLACK <= len(seen) <= number, f"{len(seen)} files, the page says {number}: " + " ".join(
        sorted(seen)
    )


@contextmanager
def asking_session() -> Iterator[BareSession]:
    command = ["sh", "-c", "printf 'Overwrite? [y/N] '; read answer; sleep 30"]
    pty = PosixPTY.spawn(command, dict(os.environ), None, Size(), None)
    detector, probe = Detector(load_dialect("generic"), 24, 80), make_probe(pty.fileno(), pty.pid)
    session = BareSession(pty, detector, probe, encode_answer, SystemClock(), SessionSettings())
    over = threading.Event()

    def read() -> None:
        while not over.wait(0.005):
            try:
                session.take_in(os.read(pty.fileno(), 4096))
            except BlockingIOError:
                continue
            except OSError:
                return

    reader = threading.Thread(target=read)
    try:
        reader.start()
        session.start()
        yield session
    finally:
        over.set()
        reader.join()
        session.stop()
        for pause_s in pty.end_steps(0.0):
            over.wait(pause_s)
        pty.close()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="follows the probe of Linux")
def test_from_a_byte_to_a_raised_prompt() -> None:
    with followed() as seen, asking_session() as session:
        seen.clear()  # what made the parts is another story
        wait_for(lambda: session.opened, "the prompt")
        passed = set(seen)
    check("From a byte to a raised prompt", passed)


async def test_from_the_page_to_the_keys(tmp_path: Path) -> None:
    page, hub, host = await through_the_page(tmp_path), await through_the_hub(), await in_thread(through_the_host)
    check("From the page to the keys", page | hub | host)


async def through_the_page(folder: Path) -> set[str]:
    hub = FakeHub(folder, SystemClock())
    await hub.start()
    try:
        record = await hub.raise_prompt(hub.hub_api.add_session(), MENU)
        async with httpx.AsyncClient(base_url=hub.channel.url, timeout=30) as client:
            await log_in(hub, client)
            with followed() as seen:
                answer = await client.post(f"/api/v1/prompts/{record.prompt_id}/reply", json={"value": "1"})
        assert answer.status_code == 200, answer.text
        return set(seen)
    finally:
        await hub.stop()


async def through_the_hub() -> set[str]:
    async with live_hub() as live:
        host, _ = await ask(live)
        await live.person.until(lambda: live.person.shown)
        with followed() as seen:
            live.person.say(live.person.shown[0], "y", identity="memory:anna")
            await in_thread(host.answer_typing)
        host.close()
        return {name for name in seen if not name.startswith("channels/")}  # the memory channel stands for the page


def through_the_host() -> set[str]:
    with asking_session() as session:
        wait_for(lambda: session.opened, "the prompt")
        opened = session.opened
        assert opened is not None
        with followed() as seen:
            assert session.type(opened.prompt_id, Answer(AnswerKind.NO)).outcome == "typed"
        return set(seen)
