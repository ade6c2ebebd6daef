"""fleet.json: private, whole or not there, and what follows from it for sessions and commands."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest
from tests.support.hubs import hub_process

from atlasbridge.core.errors import ChannelError, ConfigError
from atlasbridge.core.fleet_wire import encode_invitation, from_text, parse_invitation, signing_text, to_text
from atlasbridge.fleet.keys import is_signed, new_key, public_of, sign
from atlasbridge.fleet.member import joining
from atlasbridge.fleet.member.membership import (
    FILE_NAME,
    FleetMembership,
    forget_membership,
    read_membership,
    write_membership,
)

HERE = FleetMembership("http://127.0.0.1:9", "m1", "box", new_key(), public_of(new_key()))


def test_it_is_for_its_user_alone_and_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_membership(tmp_path) is None
    write_membership(tmp_path, HERE)
    assert read_membership(tmp_path) == HERE
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600
    forget_membership(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": 1}', '{"evil": true}'])
def test_one_that_makes_no_sense_is_refused_and_can_be_removed(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(ConfigError, match="cannot be used"):
        read_membership(tmp_path)


def test_a_broken_one_can_be_removed_by_force_and_a_session_may_name_the_fleet_server() -> None:
    with hub_process(start=False) as hub:
        refused = hub.cli("run", "--detach", "--channel", "server", "--", "true")
        assert refused.returncode == 2 and "no channel 'server'" in refused.stderr
        write_membership(hub.home.root, HERE)
        assert hub.cli("run", "--detach", "--channel", "server", "--", "true").returncode == 0
        (hub.home.root / FILE_NAME).write_text("{")
        assert hub.cli("leave").returncode == 2
        assert hub.cli("leave", "--force").returncode == 0 and not (hub.home.root / FILE_NAME).exists()


def test_an_invitation_is_read_as_it_was_written_or_refused() -> None:
    made = encode_invitation("https://desk.example.org/", "secret", "key")
    found = parse_invitation(made)
    assert (found.url, found.token, found.server_key) == ("https://desk.example.org", "secret", "key")
    assert parse_invitation("desk.example.org", "secret.key\n") == found
    for wrong in ("https://desk.example.org", "https://desk.example.org/#secret", "ftp://x/#a.b", "http:///#a.b"):
        with pytest.raises(ConfigError):
            parse_invitation(wrong)


def test_what_was_signed_for_one_purpose_is_good_for_no_other() -> None:
    key = new_key()
    signature = sign(key, signing_text("enter", "nonce", "m1"))
    assert is_signed(public_of(key), signature, signing_text("enter", "nonce", "m1"))
    for other in (("leave", "nonce", "m1"), ("enter", "other", "m1"), ("enter", "nonce", "m2"), ("enter", "nonce")):
        assert not is_signed(public_of(key), signature, signing_text(*other))
    for rubbish in ("", "x", "é", to_text(b"short")):
        assert not is_signed(public_of(key), rubbish, b"text") and not is_signed(rubbish, signature, b"text")
    assert from_text(to_text(b"\x00\xff")) == b"\x00\xff"


@pytest.mark.parametrize("end", ["it takes too long", "it is stopped"])
async def test_a_connection_that_does_not_begin_is_closed(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "DIAL_S", 0.2 if end == "it takes too long" else 60.0)
    asked, closed = asyncio.Event(), asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        assert await reader.read() == b""
        closed.set()
        writer.close()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        dialing = asyncio.create_task(joining.WebSocket.dial(f"http://127.0.0.1:{port}", "/link"))
        await asked.wait()
        if end == "it is stopped":
            dialing.cancel()
        with pytest.raises((ChannelError, asyncio.CancelledError)) as ended:  # keeps what the call had alive
            await dialing
        await closed.wait()
        assert ended.value
