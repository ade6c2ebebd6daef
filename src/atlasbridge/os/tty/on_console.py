"""Runs a session on the console of this process, or without one for consoles that come later: refuses what cannot be
had there, starts the program, opens the session's line, sees the program out.
"""

from __future__ import annotations

import signal
import socket

from atlasbridge.core.client.line_client import LineClient
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.daemon.kin_tcp import find_peer
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.home import Home
from atlasbridge.core.host.console.console_session import ConsoleSession
from atlasbridge.core.host.console.line_door import Address
from atlasbridge.core.host.edges import HostParts
from atlasbridge.core.host.logbook import Logbook
from atlasbridge.core.ids import short_id
from atlasbridge.core.peer import Peer
from atlasbridge.core.session.plan import SETTINGS_SUFFIX, Plan
from atlasbridge.core.session.settings import SessionSettings
from atlasbridge.core.tty import Ending, SpawnRefused
from atlasbridge.os.tty.hosted import tell_starter
from atlasbridge.os.tty.own_console import NoConsole, OwnConsole, heed_interrupts
from atlasbridge.os.tty.windows import WindowsPTY


def refuse_on_console(plan: Plan) -> None:
    """Said before anything is looked for."""
    if plan.backend != "conpty":
        raise ConfigError(
            "on Windows sessions are experimental", "say that you know: atlasbridge run --backend conpty ..."
        )


def run_on_console(plan: Plan, home: Home, parts: HostParts, settings: SessionSettings) -> Ending:
    """Where the session is hosted for others, whoever started this process is told how it went."""
    clock, door = SystemClock(), home.sessions / f"{short_id(plan.session_id)}.sock"
    console = NoConsole() if plan.hosted else OwnConsole()
    if plan.hosted:
        heed_interrupts()
    try:
        pty = parts.spawn(plan, console.size(), None)
    except SpawnRefused as error:
        ending = Ending(error.status, str(error), error.hint)
        if plan.hosted:
            tell_starter(ending)
        return ending
    assert isinstance(pty, WindowsPTY)
    journal = Logbook(door.with_suffix(".log"), clock)
    journal.note("session started", tool=plan.tool, pid=pty.pid)
    with console:
        session = ConsoleSession(plan, pty, console, parts, settings, clock, journal)
        before = signal.signal(signal.SIGINT, lambda *_: session.interrupt())
        try:
            session.listen(door, _whose)
            if plan.hosted:
                tell_starter(None)
            return Ending(session.run())
        finally:
            signal.signal(signal.SIGINT, before)
            pty.close()
            door.with_suffix(SETTINGS_SUFFIX).unlink(missing_ok=True)


def attach_on_console(link: socket.socket) -> Ending:
    """Show a session on the console of this process, and type into it, until it ends or is left."""
    with OwnConsole() as console:
        client = LineClient(link, console)
        before = signal.signal(signal.SIGINT, lambda *_: client.type(b"\x03"))
        try:
            return client.run()
        finally:
            signal.signal(signal.SIGINT, before)


def _whose(client: Address, server: Address) -> Peer:
    return find_peer(client, server, ())
