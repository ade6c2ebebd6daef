"""An adapter of another package, announced by entry point and written from the document alone, under `run`."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.hubs import HubProcess, hub_process
from tests.support.terminal import ATLASBRIDGE, Terminal
from tests.support.tier import first_of
from tests.support.waiting import wait_for

from atlasbridge.adapters.entry_points import is_announced

EXAMPLE = Path(__file__).parents[2] / "examples" / "echo_adapter"
AGENT = """#!/bin/sh
printf 'Overwrite the file? [y/N] '; read answer; echo "overwrite=$answer"
printf 'What is its name: '; read name; echo "name=$name"
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder as pip would fill it: the example's module, and what announces it."""
    shutil.copy(EXAMPLE / "echo_adapter.py", tmp_path)
    info = tmp_path / "atlasbridge_echo_adapter-1.0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: atlasbridge-echo-adapter\nVersion: 1.0.0\n")
    (info / "entry_points.txt").write_text("[atlasbridge.adapters]\necho-agent = echo_adapter:EchoAdapter\n")
    agent = tmp_path / "echo-agent"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    return tmp_path


def make_agent(packages: Path, script: str) -> None:
    (packages / "echo-agent").write_text(f"#!/bin/sh\n{script}")


@pytest.fixture
def hub() -> Iterator[HubProcess]:
    with hub_process() as running:
        yield running


def test_an_announcement_is_found_by_the_name_of_its_tool(packages: Path) -> None:
    assert is_announced("echo-agent", [str(packages)])
    assert not is_announced("echo", [str(packages)])
    assert not is_announced("echo-agent", [str(packages / "nowhere")])


def test_a_folder_that_rests_is_read_once_and_again_after_an_installation(packages: Path) -> None:
    (info,) = packages.glob("*.dist-info")
    an_hour_ago = time.time() - 3600
    os.utime(packages, (an_hour_ago, an_hour_ago))
    assert is_announced("echo-agent", [str(packages)])
    (info / "entry_points.txt").unlink()
    assert is_announced("echo-agent", [str(packages)])  # the folder itself has not changed: it was not read again
    shutil.rmtree(info)
    assert not is_announced("echo-agent", [str(packages)])


def test_a_folder_that_has_just_changed_is_read_every_time(packages: Path) -> None:
    (info,) = packages.glob("*.dist-info")
    announcement = info / "entry_points.txt"
    text = announcement.read_text()
    announcement.unlink()  # as an installation leaves it for a moment
    assert not is_announced("echo-agent", [str(packages)])
    announcement.write_text(text)
    assert is_announced("echo-agent", [str(packages)])


def test_the_adapter_of_another_package_asks_and_is_answered_from_afar(packages: Path, hub: HubProcess) -> None:
    environ = {**hub.environ, "PYTHONPATH": f"{packages}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    command = (*ATLASBRIDGE, "run", "--", str(packages / "echo-agent"))
    with Terminal(command, hub.home.root, env=environ) as terminal:
        terminal.wait_for("Overwrite the file?")
        terminal.wait_until(hub.is_asked, "the first prompt")
        first = hub.ask("prompts")["prompts"][0]
        assert (first["type"], first["excerpt"]) == ("yes_no", "Overwrite the file? [y/N]")
        assert first["evidence"][0]["detail"] == "its adapter detected it"
        assert hub.cli("reply", first["prompt_id"], "n").returncode == 0
        terminal.wait_for("overwrite=n")
        terminal.wait_until(
            lambda: [p["type"] for p in hub.ask("prompts")["prompts"]] == ["free_text"], "the second prompt"
        )
        terminal.type("zed\r")  # at the terminal this time
        terminal.wait_for("name=zed")
        assert terminal.wait_exit() == 0
    wait_for(lambda: not hub.is_asked())


def outside(packages: Path, hub: HubProcess) -> Terminal:
    environ = {**hub.environ, "PYTHONPATH": f"{packages}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    return Terminal((*ATLASBRIDGE, "run", "--", str(packages / "echo-agent")), hub.home.root, env=environ)


@pytest.mark.parametrize(("ending", "status"), first_of([("exit 7", 7), ("kill -TERM $$", 128 + 15), ("true", 0)]))
def test_the_session_ends_with_the_status_of_the_tool(
    packages: Path, hub: HubProcess, ending: str, status: int
) -> None:
    make_agent(packages, f"echo here\n{ending}\n")
    with outside(packages, hub) as terminal:
        terminal.wait_for("here")
        assert terminal.wait_exit() == status


def test_keys_typed_while_nothing_is_asked_reach_the_tool_as_they_are(packages: Path, hub: HubProcess) -> None:
    make_agent(
        packages,
        "printf 'send me a line\\n'; read line; echo \"line=$line\"\n"
        "stty raw -echo; printf 'now a key\\r\\n'; key=$(dd bs=1 count=1 2>/dev/null); stty sane; echo \"key=$key.\"\n",
    )
    with outside(packages, hub) as terminal:
        terminal.wait_for("send me a line")
        terminal.type("nobody asked\r")
        terminal.wait_for("line=nobody asked")
        terminal.wait_for("now a key")
        terminal.type("k")  # no Enter
        terminal.wait_for("key=k.")
        assert terminal.wait_exit() == 0
    assert not hub.is_asked()


def test_ctrl_c_is_the_tools_own_also_while_it_asks(packages: Path, hub: HubProcess) -> None:
    make_agent(packages, "trap 'echo caught; exit 9' INT\nprintf 'Go on? [y/N] '; read answer\n")
    with outside(packages, hub) as terminal:
        terminal.wait_until(hub.is_asked, "the prompt")
        terminal.type("\x03")
        terminal.wait_for("caught")
        assert terminal.wait_exit() == 9


def test_the_tools_terminal_is_as_large_as_the_persons(packages: Path, hub: HubProcess) -> None:
    make_agent(packages, 'while sleep 0.1; do echo "size=$(stty size)."; done\n')
    with outside(packages, hub) as terminal:
        terminal.wait_for(f"size={terminal.screen.rows} {terminal.screen.cols}.")


OWN = """
from atlasbridge.adapters.pty import PtyAdapter as GenericAdapter


class OwnAdapter(GenericAdapter):
    async def detect_prompt(self, buffer):
        found = await super().detect_prompt(buffer)
        {found}
        return found
"""


def own_adapter(hub: HubProcess, found: str) -> None:
    """A file in the home folder is enough: no package, no entry point."""
    folder = hub.home.root / "adapters"
    folder.mkdir(mode=0o700)
    (folder / "echo-agent.py").write_text(OWN.format(found=found))


def test_what_an_adapter_leaves_out_is_raised_by_the_usual_detector_and_answered(
    packages: Path, hub: HubProcess
) -> None:
    own_adapter(hub, "found = None")
    with outside(packages, hub) as terminal:
        terminal.wait_until(hub.is_asked, "the first prompt")
        first = hub.ask("prompts")["prompts"][0]
        assert (first["type"], first["excerpt"]) == ("yes_no", "Overwrite the file? [y/N]")
        assert "its adapter detected it" not in str(first["evidence"])
        assert hub.cli("reply", first["prompt_id"], "n").returncode == 0
        terminal.wait_for("overwrite=n")
        terminal.wait_until(hub.is_asked, "the second prompt")
        terminal.type("zed\r")
        terminal.wait_for("name=zed")
        assert terminal.wait_exit() == 0
    wait_for(lambda: not hub.is_asked())


def test_a_question_longer_than_the_interface_allows_is_asked_and_the_fault_is_said(
    packages: Path, hub: HubProcess
) -> None:
    own_adapter(hub, "if found: found.excerpt = 'Overwrite ' + 'x' * 300 + '? [y/N]'")
    with outside(packages, hub) as terminal:
        terminal.wait_for("over 200 characters")
        terminal.wait_until(hub.is_asked, "the prompt")
        first = hub.ask("prompts")["prompts"][0]
        assert first["excerpt"].endswith("…") and first["screen"].endswith("x? [y/N]")
        assert first["evidence"][0]["detail"] == "its adapter detected it"
        assert hub.cli("reply", first["prompt_id"], "y").returncode == 0
        terminal.wait_for("overwrite=y")


def test_an_adapter_that_cannot_be_loaded_says_why(packages: Path, hub: HubProcess) -> None:
    own_adapter(hub, "(")
    with outside(packages, hub) as terminal:
        terminal.wait_for("was never closed")
        assert terminal.wait_exit() == 127


FAULTY = """
import asyncio

from atlasbridge.adapters.base import AdapterInjectionError, ReplayAttackError, make_idempotency_key
from atlasbridge.adapters.pty import PtyAdapter
from atlasbridge.core.ids import new_id

WRONG = {wrong}
LOG = {log!r}


class FaultyAdapter(PtyAdapter):
    TOOL_NAME = "echo-agent"
    times = 0

    async def inject_reply(self, reply):
        type(self).times += 1
        with open(LOG, "a") as log:
            print(reply.value, reply.channel_identity, reply.nonce, file=log)
        if WRONG == "inject once" and self.times == 1:
            raise AdapterInjectionError("the pipe is full")
        if WRONG == "replay once" and self.times == 1:
            raise ReplayAttackError("this nonce was used before")
        if WRONG == "os error once" and self.times == 1:
            raise OSError("no such device")
        await super().inject_reply(reply)
        if WRONG == "slow":
            await asyncio.sleep(2)

    async def detect_prompt(self, buffer):
        if WRONG == "detect":
            raise ValueError("cannot parse this")
        found = await super().detect_prompt(buffer)
        if WRONG == "again and again":
            self.last = found or getattr(self, "last", None)
            if self.last and b"overwrite=" not in buffer:
                self.last.idempotency_key = make_idempotency_key(self.last.session_id, self.last.excerpt, 1)
                with open(LOG + ".keys", "a") as log:
                    print(self.last.idempotency_key, file=log)
                return self.last
        return found

    async def read_stream(self):
        async for chunk in super().read_stream():
            yield chunk
            if WRONG == "read":
                raise RuntimeError("cannot read on")

    async def snapshot_context(self):
        return {{**await super().snapshot_context(), "model": "large"}}
"""


def faulty_adapter(hub: HubProcess, wrong: str) -> Path:
    folder = hub.home.root / "adapters"
    folder.mkdir(mode=0o700)
    log = hub.home.root / "replies"
    (folder / "echo-agent.py").write_text(FAULTY.format(wrong=repr(wrong), log=str(log)))
    return log


@pytest.mark.parametrize(
    ("wrong", "said"),
    first_of(
        [
            ("inject once", "the pipe is full"),
            ("replay once", "this nonce was used before"),
            ("os error once", "no such device"),
        ]
    ),
)
def test_an_adapter_that_refuses_a_reply_is_heard_and_the_question_is_asked_again(
    packages: Path, hub: HubProcess, wrong: str, said: str
) -> None:
    log = faulty_adapter(hub, wrong)
    with outside(packages, hub) as terminal:
        terminal.wait_until(hub.is_asked, "the prompt")
        first = hub.ask("prompts")["prompts"][0]
        done = hub.cli("reply", first["prompt_id"], "y")
        assert done.returncode != 0 and said in done.stdout + done.stderr, done
        assert "overwrite=" not in terminal.text()
        terminal.wait_until(hub.is_asked, "the same question once more")
        again = hub.ask("prompts")["prompts"][0]
        assert again["prompt_id"] != first["prompt_id"] and again["excerpt"] == first["excerpt"]
        assert hub.cli("reply", again["prompt_id"], "y").returncode == 0
        terminal.wait_for("overwrite=y")
    events = [entry["event"] for entry in hub.ask("audit")["entries"] if entry.get("prompt_id") == first["prompt_id"]]
    assert "REPLY_INJECTED" not in events and any("FAIL" in event for event in events), events
    value, identity, nonce = log.read_text().splitlines()[0].split()
    assert (value, identity) == ("y", f"cli:{os.environ.get('USER', 'root')}") or identity.startswith("cli:")
    assert len(nonce) == 32


def test_a_next_prompt_that_is_reported_before_the_reply_is_done_does_not_make_it_stale(
    packages: Path, hub: HubProcess
) -> None:
    faulty_adapter(hub, "slow")
    with outside(packages, hub) as terminal:
        terminal.wait_until(hub.is_asked, "the prompt")
        done = hub.cli("reply", hub.ask("prompts")["prompts"][0]["prompt_id"], "y")
        assert done.returncode == 0 and "Sent" in done.stdout, done
        terminal.wait_for("overwrite=y")
        terminal.wait_until(
            lambda: [p["type"] for p in hub.ask("prompts")["prompts"]] == ["free_text"], "the second prompt"
        )


@pytest.mark.parametrize("wrong", first_of(["detect", "read"]))
def test_a_session_outlives_the_faults_of_its_adapter_and_status_names_it(
    packages: Path, hub: HubProcess, wrong: str
) -> None:
    faulty_adapter(hub, wrong)
    with outside(packages, hub) as terminal:
        terminal.wait_until(hub.is_asked, "the prompt, by the usual detector")
        assert "Traceback" not in terminal.text()
        first = hub.ask("prompts")["prompts"][0]
        status = hub.cli("status")
        assert "failed: FaultyAdapter" in status.stdout, status.stdout
        assert hub.cli("reply", first["prompt_id"], "n").returncode == 0
        terminal.wait_for("overwrite=n")


def test_one_prompt_stays_one_however_often_it_is_reported(packages: Path, hub: HubProcess) -> None:
    log = faulty_adapter(hub, "again and again")
    with outside(packages, hub) as terminal:
        terminal.wait_until(hub.is_asked, "the prompt")
        first = hub.ask("prompts")["prompts"][0]
        keys = Path(f"{log}.keys")
        terminal.wait_until(lambda: len(set(keys.read_text().split())) >= 4, "four reports with keys of their own")
        (still,) = hub.ask("prompts")["prompts"]
        assert still["prompt_id"] == first["prompt_id"]
        assert hub.cli("reply", first["prompt_id"], "y").returncode == 0
        terminal.wait_for("overwrite=y")


def test_what_an_adapter_says_of_its_session_is_shown(packages: Path, hub: HubProcess) -> None:
    faulty_adapter(hub, "")
    with outside(packages, hub) as terminal:
        terminal.wait_until(hub.is_asked, "the prompt")
        terminal.wait_until(lambda: "adapter" in hub.ask("sessions")["sessions"][0], "the adapter's words")
        for command in ("status", "doctor"):
            told = hub.cli(command).stdout
            assert "model=large" in told and "pty_alive=True" in told, told


def test_where_an_adapter_sees_nothing_the_usual_detector_helps_after_three_seconds(
    packages: Path, hub: HubProcess
) -> None:
    own_adapter(hub, "found = None")
    with outside(packages, hub) as terminal:
        terminal.wait_for("Overwrite the file?")
        begun = time.monotonic()
        terminal.wait_until(hub.is_asked, "the prompt")
        took_s = time.monotonic() - begun
    assert took_s < 6.0, took_s  # three on a machine without other work
