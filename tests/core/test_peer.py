"""Who is at the other end of a Unix socket on macOS, from structures as its kernel fills them."""

from __future__ import annotations

import socket
import struct
import sys

import pytest

from atlasbridge.core import peer
from atlasbridge.core.peer import (
    GONE,
    HOST_NAME,
    FalsePeer,
    Peer,
    Process,
    prove_above,
    prove_outside,
    read_audit_token,
)
from atlasbridge.core.process_table import MacProcess, parse_process, parse_version

PID, UID, VERSION, STARTED = 4711, 501, 99, 1_700_000_000_000_042
NO_OPTION = OSError(42, "Protocol not available")


def words(*values: int) -> bytes:
    return struct.pack(f"={len(values)}i", *values)


class MacLink:
    """`options` 1: LOCAL_PEERCRED, 2: LOCAL_PEERPID, 6: LOCAL_PEERTOKEN; one that is missing is not known there."""

    def __init__(self, options: dict[int, bytes]) -> None:
        self._options = options

    def getsockopt(self, level: int, option: int, size: int, /) -> bytes:
        assert level == 0, "SOL_LOCAL"
        if option not in self._options:
            raise NO_OPTION
        return self._options[option]


CRED = words(0, UID) + bytes(68)
TOKEN = words(0, UID, 20, UID, 20, PID, 100005, VERSION)
WITH_TOKEN = {1: CRED, 6: TOKEN}


@pytest.fixture(autouse=True)
def mac(monkeypatch: pytest.MonkeyPatch) -> dict[int, tuple[int, int]]:
    """The processes that live: start and version of each number."""
    lives = {PID: (STARTED, VERSION)}
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(peer, "started_at", lambda pid: lives.get(pid, (0, 0))[0])
    monkeypatch.setattr(peer, "version_of", lambda pid: lives.get(pid, (0, 0))[1])
    return lives


def test_the_audit_token_names_the_process_for_good() -> None:
    assert peer.read_peer(MacLink(WITH_TOKEN)) == Peer(PID, UID, STARTED)


def test_a_number_that_was_given_away_again_is_nobodys(mac: dict[int, tuple[int, int]]) -> None:
    mac[PID] = (STARTED + 5, VERSION + 1)
    assert peer.read_peer(MacLink(WITH_TOKEN)).started == GONE


def test_a_process_that_has_ended_is_gone(mac: dict[int, tuple[int, int]]) -> None:
    mac.clear()
    assert peer.read_peer(MacLink(WITH_TOKEN)).started == GONE


def test_an_older_system_gives_the_number_alone() -> None:
    assert peer.read_peer(MacLink({1: CRED, 2: words(PID)})) == Peer(PID, UID)
    assert peer.read_peer(MacLink({1: CRED})) == Peer(0, UID)
    assert peer.read_peer(MacLink({})) == Peer(0, -1)


def test_what_is_no_audit_token_is_refused() -> None:
    with pytest.raises(OSError, match="no audit token"):
        read_audit_token(TOKEN[:-4])


@pytest.mark.parametrize(("listens", "above", "believed"), [(PID, True, True), (PID, False, False), (0, True, False)])
def test_a_hook_speaks_only_to_a_host_above_it(
    listens: int, above: bool, believed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = (Process(9, PID, 2), Process(PID if above else 8, 1, 1, name=HOST_NAME))
    monkeypatch.setattr(peer, "trace_ancestry", lambda pid, look: line)
    link = MacLink({**WITH_TOKEN, 6: words(0, UID, 20, UID, 20, listens, 1, VERSION if listens else 0)})
    if believed:
        prove_above(link)
    else:
        with pytest.raises(FalsePeer):
            prove_above(link)


def test_a_hook_does_not_speak_to_a_socket_of_a_process_whose_number_its_host_has_now(
    mac: dict[int, tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    mac[PID] = (STARTED + 5, VERSION + 1)
    monkeypatch.setattr(peer, "trace_ancestry", lambda pid, look: (Process(9, PID, 2), Process(PID, 1, 1)))
    with pytest.raises(FalsePeer):
        prove_above(MacLink(WITH_TOKEN))


def bsdinfo(name: bytes, terminal: int) -> bytes:
    """struct proc_bsdinfo of <sys/proc_info.h>."""
    head = struct.pack("<12I", 0, 2, 0, PID, 1, UID, 20, UID, 20, UID, 20, 0)
    return head + struct.pack("<16s32s5IiQQ", b"python3.11", name, 8, PID, 0, terminal, 0, 0, 1_700_000_000, 42)


def test_a_process_is_read_from_the_kernels_structure() -> None:
    assert len(bsdinfo(b"", 0)) == 136
    found = MacProcess(PID, 1, PID, 2, HOST_NAME, str(0x10000003), STARTED)
    assert parse_process(bsdinfo(HOST_NAME.encode(), 0x10000003)) == found
    assert parse_process(bsdinfo(b"", 0xFFFFFFFF)) == MacProcess(PID, 1, PID, 2, "python3.11", "", STARTED)
    assert parse_process(b"") is None


def test_the_version_of_a_number_is_read_from_the_kernels_structure() -> None:
    """struct proc_uniqidentifierinfo."""
    assert parse_version(struct.pack("<16sQQiiQQ", b"", 1, 2, VERSION, 3, 0, 0)) == VERSION
    assert parse_version(b"") == 0


HUB, HOST, INIT = Process(30, 20, 1), Process(20, 1, 1, name=HOST_NAME), Process(1, 0, 1)


@pytest.mark.parametrize(("later", "is_believed"), [((HUB, INIT), True), ((HUB, HOST, INIT), False), ((), False)])
def test_a_hub_whose_starter_ends_is_believed_as_soon_as_it_has_another_parent(
    monkeypatch: pytest.MonkeyPatch, later: tuple[Process, ...], is_believed: bool
) -> None:
    """A host that ends confirms nothing any more; the command of a person was refused in that moment."""
    lines = iter([(HUB, HOST, INIT), (HUB, HOST, INIT)])
    monkeypatch.setattr(peer, "meet", lambda _: Peer(HUB.pid, UID))
    monkeypatch.setattr(peer, "ancestry_of", lambda _: next(lines, later))
    with socket.socket() as link:
        if is_believed:
            assert prove_outside(link, [UID]).pid == HUB.pid
        else:
            with pytest.raises(FalsePeer, match="inside a session"):
                prove_outside(link, [UID])
