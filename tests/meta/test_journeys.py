"""The two journeys of `docs/architecture.md`, followed: how many files a reader opens, and that the page names them.

A room with a face (the screen, the widgets, the probe, the tables) counts as its face: what stands behind it is read
for its own sake.  The ground floor, which everybody uses, is not counted.
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
from tests.channels.web.conftest import log_in
from tests.integration.test_hub_replies import ask
from tests.support.fake_desk import FakeHub
from tests.support.hubs import live_hub
from tests.support.journey import followed
from tests.support.sample_prompt import MENU
from tests.support.waiting import in_thread, wait_for

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.host.bare import BareSession
from atlasbridge.core.prompt.answer import encode_answer
from atlasbridge.core.prompt.model import Answer, AnswerKind
from atlasbridge.core.session.settings import SessionSettings
from atlasbridge.core.tty import Size
from atlasbridge.os.tty import make_probe
from atlasbridge.os.tty.posix import PosixPTY

HERE = "core/host/bare.py"  # stands where the host stands
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
GROUND = re.compile(
    r"core/(?:errors|ids|clock|values|patterns|visible|home|wire|tty|rate|durable|own_python|vocabulary)\.py"
)
FACES = {
    "core/screen/": "core/screen/screen.py",
    "core/recognition/widgets/": "core/recognition/recognise.py",
    "os/tty/": "os/tty/linux.py",
    "core/store/": "core/store/ledger.py",
    "core/audit/": "core/store/ledger.py",
    "core/prompt/hidden.py": "core/prompt/redact.py",
}
# On the way to the keys the detector and the page's logins are asked one question each; what others are told meanwhile
# (events, receipts, figures, and what hides secrets from them) and the tool's output are not on the way.
BESIDE = (
    *("core/daemon/stream.py", "core/daemon/receipts.py", "core/prompt/redact.py", "core/prompt/hidden.py"),
    *("channels/web/metrics.py", "channels/web/stream.py", "channels/web/view.py"),
    *("channels/web/push.py", "channels/web/push_send.py", "channels/web/push_text.py"),
    *("core/host/terminal/relay.py", "core/host/terminal/ring.py", "core/host/terminal/wakeup.py"),
    "core/host/typing/hook_line.py",  # a hook that waits takes the answer instead of the keys: another journey
)
PASSAGES = ("core/store/rounds.py",)  # decisions that share a commit are made by whoever brought them
BETWEEN = {
    "core/host/hub/link.py",
    "core/host/hub/hubside.py",
}  # how hub and host, followed apart, speak
KEYS_FACES = {
    **FACES,
    "core/detection/": "core/detection/detector.py",
    "channels/web/access.py": "channels/web/access.py",
    "channels/web/device.py": "channels/web/access.py",
    "channels/web/proof.py": "channels/web/access.py",
    **dict.fromkeys(BESIDE, ""),
}


def to_open(seen: set[str]) -> set[str]:
    return {name for name in seen if name and name != HERE and not GROUND.fullmatch(name)}


def named(title: str) -> set[str]:
    """The files that the page names under this heading."""
    section = PAGE.read_text("utf-8").partition(f"### {title}\n")[2].partition("\n#")[0]
    return set(re.findall(r"`((?:core|channels|os)/[\w/]+\.py)`", section))


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
def test_from_a_byte_to_a_raised_prompt_a_reader_opens_at_most_thirty_files() -> None:
    with followed(FACES) as seen, asking_session() as session:
        seen.clear()  # what made the parts is another story
        wait_for(lambda: session.opened, "the prompt")
    opened = to_open(seen)
    assert len(opened) <= 30, " ".join(sorted(opened))
    assert named("From a byte to a raised prompt") <= opened


async def test_from_the_page_to_the_keys_a_reader_opens_at_most_twenty_five_files(tmp_path: Path) -> None:
    page, hub, host = await through_the_page(tmp_path), await through_the_hub(), await in_thread(through_the_host)
    opened = to_open(page | hub | host) | BETWEEN
    assert named("From the page to the keys") <= opened
    assert len(opened) <= 25, " ".join(sorted(opened))


async def through_the_page(folder: Path) -> set[str]:
    hub = FakeHub(folder, SystemClock())
    await hub.start()
    try:
        record = await hub.raise_prompt(hub.desk.add_session(), MENU)
        async with httpx.AsyncClient(base_url=hub.channel.url, timeout=30) as client:
            await log_in(hub, client)
            with followed(KEYS_FACES, PASSAGES) as seen:
                answer = await client.post(f"/api/v1/prompts/{record.prompt_id}/reply", json={"value": "1"})
        assert answer.status_code == 200, answer.text
        return set(seen)
    finally:
        await hub.stop()


async def through_the_hub() -> set[str]:
    async with live_hub() as live:
        host, _ = await ask(live)
        await live.person.until(lambda: live.person.shown)
        with followed(KEYS_FACES, PASSAGES) as seen:
            live.person.say(live.person.shown[0], "y", identity="memory:anna")
            await in_thread(host.answer_typing)
        host.close()
        return {name for name in seen if not name.startswith("channels/")}


def through_the_host() -> set[str]:
    with asking_session() as session:
        wait_for(lambda: session.opened, "the prompt")
        opened = session.opened
        assert opened is not None
        with followed(KEYS_FACES, PASSAGES) as seen:
            assert session.type(opened.prompt_id, Answer(AnswerKind.NO)).outcome == "typed"
        return set(seen)
