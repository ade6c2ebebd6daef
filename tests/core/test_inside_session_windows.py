"""Who started whom on Windows, from tables made up here; the job on Windows also asks the system itself."""

from __future__ import annotations

import os
import socket
import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlasbridge.core.peer import Process, SessionProcesses, decide_inside_session, trace_ancestry
from atlasbridge.core.process_table import TaskRow, describe, find_owner, look_on_windows, owner_of, read_connections

CLIENT, SERVER = ("127.0.0.1", 50123), ("127.0.0.1", 49807)


def row(own: tuple[str, int], far: tuple[str, int], pid: int) -> bytes:
    """As MIB_TCPROW_OWNER_PID: addresses and ports in the network's order, each in a double word."""

    def end(address: tuple[str, int]) -> bytes:
        return socket.inet_aton(address[0]) + struct.pack("!H", address[1]) + b"\0\0"

    return struct.pack("<I", 5) + end(own) + end(far) + struct.pack("<I", pid)


def table(*rows: bytes) -> bytes:
    return struct.pack("<I", len(rows)) + b"".join(rows)


def test_the_owner_is_the_one_of_the_clients_own_end() -> None:
    found = table(row(SERVER, CLIENT, 4), row(("10.0.0.2", 50123), SERVER, 5), row(CLIENT, SERVER, 4711))
    assert find_owner(found, CLIENT, SERVER) == 4711
    assert find_owner(found, SERVER, CLIENT) == 4
    assert find_owner(found, CLIENT, ("127.0.0.1", 1)) == 0
    assert find_owner(b"", CLIENT, SERVER) == 0


@given(st.binary(max_size=200))
def test_a_table_of_any_bytes_is_read_as_far_as_it_goes(data: bytes) -> None:
    assert len(list(read_connections(data))) <= max(0, len(data) - 4) // 24


def test_a_table_that_says_more_than_it_holds_is_cut() -> None:
    assert len(list(read_connections(table(row(CLIENT, SERVER, 1))[:-1]))) == 0
    assert len(list(read_connections(struct.pack("<I", 9) + row(CLIENT, SERVER, 1)))) == 1


# A desktop, a terminal, a session in it (20 runs the tool 30), and a person's other console
LISTED = {
    4: TaskRow(0, "System"),
    10: TaskRow(9, "explorer.exe"),  # 9 is long gone, as always
    11: TaskRow(10, "WindowsTerminal.exe"),
    12: TaskRow(11, "powershell.exe"),
    20: TaskRow(12, "python.exe"),
    30: TaskRow(20, "claude.exe"),
    31: TaskRow(30, "cmd.exe"),
    32: TaskRow(31, "python.exe"),
    40: TaskRow(11, "pwsh.exe"),
    41: TaskRow(40, "python.exe"),
    50: TaskRow(33, "python.exe"),  # left by a child of the tool that has ended since
    60: TaskRow(61, "python.exe"),  # its parent's number was given away
    61: TaskRow(10, "notepad.exe"),
}
STARTED = {4: 1, 10: 10, 11: 11, 12: 12, 20: 20, 30: 30, 31: 31, 32: 32, 40: 40, 41: 41, 50: 50, 60: 60, 61: 99}
SESSION = SessionProcesses("s1", 20, 30, 20)


def look(pid: int) -> Process | None:
    told = describe(pid, LISTED, lambda number: STARTED.get(number, 0))
    return None if told is None else Process(pid, told[0], told[1], name=told[2])


@pytest.mark.parametrize(("pid", "inside_session"), [(41, ""), (12, ""), (32, "s1"), (31, "s1"), (30, "s1")])
def test_a_line_leads_into_a_session_or_to_the_desktop(pid: int, inside_session: str) -> None:
    line = trace_ancestry(pid, look)
    assert line[-1].name == "explorer.exe" and decide_inside_session(line, [SESSION]) == inside_session


@pytest.mark.parametrize("pid", [50, 60, 77])
def test_a_line_that_breaks_off_tells_nothing(pid: int) -> None:
    assert trace_ancestry(pid, look) == ()


@pytest.mark.skipif(sys.platform != "win32", reason="asks Windows itself; the Windows job runs this")
def test_windows_names_us_as_the_owner_of_our_connection_and_our_line_is_whole() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname()[:2])
        ends = client.getsockname()[:2], client.getpeername()[:2]
        assert owner_of(*ends) == os.getpid()
        client.shutdown(socket.SHUT_WR)
        assert owner_of(*ends) == os.getpid(), "also when it has said its last word"
        client.close()
    us = look_on_windows(os.getpid())
    assert us is not None and us[0] == os.getppid() and us[1] > 0
