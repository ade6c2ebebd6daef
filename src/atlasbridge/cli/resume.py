"""`atlasbridge resume`: what `fg` would do for a stopped session that no shell holds."""

from __future__ import annotations

import click

from atlasbridge.cli.by_name import find_session_id, sessions_of
from atlasbridge.cli.completing import complete_sessions
from atlasbridge.cli.printing import hub_client
from atlasbridge.core.ids import short_id


@click.command("resume")
@click.argument("session", shell_complete=complete_sessions)
def command(session: str) -> None:
    """Let a session that was stopped (Ctrl-Z) go on.  SESSION is a name, an id, or the beginning of one.

    Attaching to it does the same; a session that runs is left as it is.
    """
    with hub_client() as hub:
        sessions = sessions_of(hub)
        session_id = find_session_id(session, sessions)
        hub.ask("resume", session_id=session_id)
    click.echo(f"session {short_id(session_id)} goes on")
