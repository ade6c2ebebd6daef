"""Runs a session on the console of this process: refuses what cannot be had there, starts the program, sees it out."""

from __future__ import annotations

import signal

from atlasbridge.core.clock import SystemClock
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.home import Home
from atlasbridge.core.host.console.console_session import ConsoleSession
from atlasbridge.core.host.edges import HostParts
from atlasbridge.core.host.logbook import Logbook
from atlasbridge.core.ids import short_id
from atlasbridge.core.kin import MARK
from atlasbridge.core.session.plan import Plan, child_environ
from atlasbridge.core.session.settings import SessionSettings
from atlasbridge.core.tty import Ending, SpawnRefused
from atlasbridge.os.tty.own_console import OwnConsole
from atlasbridge.os.tty.windows import WindowsPTY


def refuse_on_console(plan: Plan) -> None:
    """Said before anything is looked for."""
    if plan.backend != "conpty":
        raise ConfigError(
            "on Windows sessions are experimental", "say that you know: atlasbridge run --backend conpty ..."
        )
    if plan.detach:
        raise ConfigError("a session on a console ends with it", "leave --detach out")


def run_on_console(plan: Plan, home: Home, parts: HostParts, settings: SessionSettings) -> Ending:
    clock, console = SystemClock(), OwnConsole()
    environ = {**child_environ(plan.environ), MARK: plan.session_id}
    try:
        pty = WindowsPTY.spawn(plan.command, environ, plan.cwd, console.size())
    except SpawnRefused as error:
        return Ending(error.status, str(error), error.hint)
    journal = Logbook(home.sessions / f"{short_id(plan.session_id)}.log", clock)
    journal.note("session started", tool=plan.tool, pid=pty.pid)
    with console:
        session = ConsoleSession(plan, pty, console, parts, settings, clock, journal)
        before = signal.signal(signal.SIGINT, lambda *_: session.interrupt())
        try:
            return Ending(session.run())
        finally:
            signal.signal(signal.SIGINT, before)
            pty.close()
