"""An older log that is put back is found by a head that the journal, a chat or a receipt has kept."""

from __future__ import annotations

import shutil
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fake_host import FakeHost
from tests.support.hubs import HubProcess, LiveHub, channel_named, hub_process, live_hub
from tests.support.waiting import until

from atlasbridge.core.daemon.audit_heads import AuditHeads, parse_head, read_journal, write_journal
from atlasbridge.core.daemon.rules import HubRules
from atlasbridge.core.operations import SeenHead
from atlasbridge.core.policy.reader import read_policy
from atlasbridge.core.routing.shell_parser import ShellParser
from atlasbridge.core.store.verify import verify_home


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[socket.socket]:
    """What systemd's journal is to those who write: a socket for datagrams."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "j"))
        listening.settimeout(5)
        yield listening


def fields_of(datagram: bytes) -> dict[str, str]:
    return dict(line.split("=", 1) for line in datagram.decode().splitlines())


def heads_of(live: LiveHub, journal: socket.socket) -> AuditHeads:
    live.hub.heads.journal = str(journal.getsockname())
    return live.hub.heads


async def test_the_head_goes_to_the_journal_by_its_own_protocol(journal: socket.socket) -> None:
    async with live_hub() as live:
        live.hub.ledger.note("X")
        heads_of(live, journal).send()
        said = fields_of(journal.recv(4096))
        head = live.hub.ledger.journal.audit_head()
        assert said["ATLASBRIDGE_AUDIT_HEAD"] == f"{head.entries}:{head.hash}"
        assert said["ATLASBRIDGE_HOME"] == str(live.home.root) and said["PRIORITY"] == "6"
        heads_of(live, journal).send()  # nothing new
        journal.settimeout(0.05)
        with pytest.raises(TimeoutError):
            journal.recv(4096)


async def test_it_goes_there_every_hour(journal: socket.socket) -> None:
    async with live_hub() as live:
        heads_of(live, journal)
        live.hub.ledger.note("X")
        live.advance(3601)
        first = fields_of(journal.recv(4096))
        live.hub.ledger.note("Y")
        live.advance(3601)
        assert fields_of(journal.recv(4096))["ATLASBRIDGE_AUDIT_HEAD"] != first["ATLASBRIDGE_AUDIT_HEAD"]


def test_a_machine_without_a_journal_is_no_fault(tmp_path: Path) -> None:
    assert write_journal({"MESSAGE": "x"}, str(tmp_path / "none")) is False
    assert read_journal(tmp_path, 0, "no-such-journalctl") == []


async def test_a_chat_that_is_configured_for_it_keeps_a_head_a_day() -> None:
    async with live_hub(channels=(channel_named("keeper"), channel_named("other")), heads_to=("keeper",)) as live:
        live.hub.ledger.note("X")
        await until(lambda: set(live.people) == {"keeper", "other"}, "both channels")
        live.advance(3600)
        told = await until(lambda: live.people["keeper"].notices, "a head")
        assert parse_head(told[0].rpartition(" ")[2]) is not None
        live.hub.ledger.note("Y")
        live.advance(3600)
        assert len(live.people["keeper"].notices) == 1 and live.people["other"].notices == []


def put_back(hub: HubProcess, copy: Path) -> None:
    for path in copy.iterdir():
        shutil.copy(path, hub.home.root / path.name)


def test_a_log_that_was_put_back_is_found_by_a_head_from_a_receipt_or_the_journal(tmp_path: Path) -> None:
    with hub_process() as hub:
        head = (
            hub.json("status")["audit_head"]
            if "audit_head" in hub.json("status")
            else hub.json("hub", "status")["audit_head"]
        )
        hub.cli("hub", "stop")
        copy = tmp_path / "before"
        copy.mkdir()
        for name in ("atlasbridge.db", "audit.log", "audit.head"):
            shutil.copy(hub.home.root / name, copy)
        hub.start()
        with FakeHost(hub.home):
            later = hub.json("hub", "status")["audit_head"]
        hub.cli("hub", "stop")
        put_back(hub, copy)
        assert hub.json("audit", "verify")["ok"], "nothing on this disk knows better"
        kept = hub.cli("audit", "verify", "--head", f"{head['count']}:{head['hash']}")
        assert kept.returncode == 0, kept.stderr
        found = hub.cli("audit", "verify", "--head", f"{later['count']}:{later['hash']}")
        assert found.returncode == 1 and "seen elsewhere" in found.stderr
        first = verify_home(hub.home.root, [SeenHead(later["count"], later["hash"], "sha256:of-another-log")])
        assert first.ok, "a log that was started again is another one"
        journalctl = tmp_path / "journalctl"
        journalctl.write_text(
            '#!/bin/sh\necho \'{"ATLASBRIDGE_AUDIT_HEAD": "%d:%s"}\'\n' % (later["count"], later["hash"])  # noqa: UP031
        )
        journalctl.chmod(journalctl.stat().st_mode | stat.S_IXUSR)
        hub.environ["PATH"] = f"{tmp_path}:{hub.environ['PATH']}"
        assert hub.cli("audit", "verify").returncode == 1


def test_hub_start_names_the_configuration_and_the_rules() -> None:
    with hub_process(start=False) as hub:
        (hub.home.root / "policy.toml").write_text('[[rule]]\nname = "x"\nverdict = "ask"\nkind = "question"\n')
        hub.start()
        (entry,) = hub.json("audit", "show", "--event", "HUB_START")
        assert len(entry["config"]) == 64 and len(entry["policy"]) == 64
        hub.cli("hub", "stop")
        hub.home.config.write_text(hub.home.config.read_text() + "\n# changed\n")
        hub.start()
        after = hub.json("audit", "show", "--event", "HUB_START")[-1]
        assert after["config"] != entry["config"] and after["policy"] == entry["policy"]


async def test_a_change_of_rules_is_told_once() -> None:
    async with live_hub() as live:
        await until(lambda: live.people, "the channel")
        parser = ShellParser()
        rules = HubRules(
            read_policy('[[rule]]\nname = "x"\nverdict = "deny"\ncommand = ["rm", "**"]\n', parser), parser
        )
        live.hub.heads.compare_rules(rules)
        live.hub.heads.compare_rules(rules)
        await until(lambda: live.person.notices, "the notice")
        live.hub.heads.compare_rules(HubRules())
        await until(lambda: len(live.person.notices) == 2, "the next one")
        assert "have changed (1 rule now)" in live.person.notices[0] and "(0 rules now)" in live.person.notices[1]


@pytest.mark.parametrize("text", ["", "12", "x:sha256:aa", "12:md5:aa", "-1:sha256:aa"])
def test_what_is_no_head_is_none(text: str) -> None:
    assert parse_head(text) is None
