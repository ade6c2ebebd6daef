"""What /proc and the socket diagnostics print, parsed: names with brackets, 32-bit programs, foreign addresses."""

from __future__ import annotations

import os
import socket
import struct
import sys

import pytest

from atlasbridge.core import sockdiag
from atlasbridge.core.sockdiag import Connection, parse_connection
from atlasbridge.os.tty.linux import COMPAT, NATIVE, BlockedCall, Process, Waits, parse_stat, parse_syscall

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel")


def test_a_command_may_hold_brackets_and_spaces() -> None:
    line = b"42 (a) b (c)) S 1 40 40 34816 40 4194304" + b" 0" * 12 + b" 777 0 0\n"
    expected = Process(42, "a) b (c)", "S", 1, 40, os.makedev(136, 0), 40, 777)
    assert parse_stat(line) == expected


def test_a_terminal_beyond_255_is_decoded() -> None:
    line = b"1 (x) S 1 1 1 %d 1 0" % (136 << 8 | 300 & 0xFF | (300 & ~0xFF) << 12) + b" 0" * 13 + b"\n"
    assert parse_stat(line).terminal == os.makedev(136, 300)


def test_blocked_calls_are_parsed() -> None:
    assert parse_syscall(b"0 0x0 0x7f 0x400 0x0 0x0 0x0 0x7ffd 0x7f11\n") == BlockedCall(0, (0, 0x7F, 0x400, 0, 0, 0))
    assert parse_syscall(b"running\n") is None
    assert parse_syscall(b"-1 0x7ffd 0x7f11\n") is None


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_32_bit_number_never_hides_a_64_bit_call(machine: str) -> None:
    blocking = {Waits.READ, Waits.POLL, Waits.PPOLL, Waits.SELECT, Waits.EPOLL}
    both = NATIVE[machine].keys() & COMPAT[machine].keys()
    assert not [number for number in both if NATIVE[machine][number] in blocking]
    assert set(COMPAT[machine].values()) >= blocking


def test_the_tables_know_this_machines_calls() -> None:
    assert NATIVE["x86_64"][0] is NATIVE["aarch64"][63] is Waits.READ
    assert NATIVE["x86_64"][270] is NATIVE["aarch64"][72] is Waits.SELECT
    assert NATIVE["x86_64"][281] is NATIVE["aarch64"][22] is Waits.EPOLL


def diag_message(family: int, local: bytes, remote: bytes, info: bytes = b"") -> bytes:
    head = (
        struct.pack("=BBBB", family, 1, 0, 0) + b"\x1f\x90\x00\x50" + local.ljust(16, b"\0") + remote.ljust(16, b"\0")
    )
    body = head + b"\0" * 12 + struct.pack("=5I", 0, 0, 0, 0, 4711)
    return body + struct.pack("=HH", 5, 9) + b"\0" * 4 + (struct.pack("=HH", 4 + len(info), 2) + info if info else b"")


def tcp_info(sent: int, received: int, acknowledged: int, got: int) -> bytes:
    info = bytearray(232)
    struct.pack_into("=I4xI", info, 44, sent, received)
    struct.pack_into("=QQ", info, 120, acknowledged, got)
    return bytes(info)


def test_a_connection_is_parsed() -> None:
    message = diag_message(socket.AF_INET, b"\x7f\0\0\1", b"\x01\x02\x03\x04", tcp_info(7, 90, 100, 5))
    assert parse_connection(message) == Connection(
        4711, 1, b"\x1f\x90\x7f\0\0\1", b"\0\x50\x01\x02\x03\x04", sent_ms=7, received_ms=90, unanswered=False
    )


def test_ipv4_written_as_ipv6_is_the_same_address() -> None:
    mapped = b"\0" * 10 + b"\xff\xff\x7f\0\0\1"
    message = diag_message(socket.AF_INET6, mapped, b"\xfe" * 16, tcp_info(1, 1, 100, 0))
    found = parse_connection(message)
    assert found.local == b"\x1f\x90\x7f\0\0\1"
    assert len(found.remote) == 18
    assert found.unanswered


def test_a_connection_without_details_is_no_request() -> None:
    assert parse_connection(diag_message(socket.AF_INET, b"", b"")).sent_ms == 0


@needs_linux
def test_the_kernel_tells_who_spoke_last() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        peer, _ = server.accept()
        with peer:
            mine = {os.fstat(client.fileno()).st_ino}
            assert sockdiag.pending(set(), 1e9) == ""
            assert sockdiag.pending(mine, 1e9) in ("", "an answer is streaming in")
            client.send(b"ask")
            assert "no answer" in sockdiag.pending(mine, 1e9)
            assert sockdiag.pending(mine, -1) == ""
            everyone = mine | {os.fstat(peer.fileno()).st_ino}
            assert sockdiag.pending(everyone, 1e9) == ""


@needs_linux
def test_the_kernel_tells_the_other_end_of_a_socket_pair() -> None:
    one, two = socket.socketpair()
    with one, two:
        assert sockdiag.unix_peer(os.fstat(one.fileno()).st_ino) == os.fstat(two.fileno()).st_ino
    assert sockdiag.unix_peer(1) == 0
