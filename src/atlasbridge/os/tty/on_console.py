"""A session on a Windows console: one process, this console, nobody is asked from elsewhere."""

from __future__ import annotations

from atlasbridge.core.errors import ConfigError
from atlasbridge.core.session.plan import Plan, child_environ
from atlasbridge.core.tty import Ending, Size, SpawnRefused


def run_on_console(plan: Plan) -> Ending:
    from atlasbridge.os.tty.windows import WindowsPTY, console_key, show_on_console

    if plan.backend != "conpty":
        raise ConfigError(
            "on Windows sessions are experimental", "say that you know: atlasbridge run --backend conpty ..."
        )
    try:
        pty = WindowsPTY.spawn(plan.command, child_environ(plan.environ), plan.cwd, Size())
    except SpawnRefused as error:
        return Ending(error.status, str(error), error.hint)
    return Ending(show_on_console(pty, console_key))
