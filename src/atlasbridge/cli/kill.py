"""`atlasbridge kill`: end a session's tool, the whole process group."""

from __future__ import annotations

import click

from atlasbridge.cli.by_name import find_session_id, sessions_of
from atlasbridge.cli.completing import complete_sessions
from atlasbridge.cli.printing import hub_client


@click.command("kill")
@click.argument("session", shell_complete=complete_sessions)
@click.option("--force", is_flag=True, help="SIGKILL at once, without SIGTERM before.")
def command(session: str, force: bool) -> None:
    """End a session: SIGTERM, and SIGKILL when it does not end.  SESSION is a name, an id, or the beginning of one."""
    with hub_client() as hub:
        session_id = find_session_id(session, sessions_of(hub, include_ended=True))
        answer = hub.ask("kill", session_id=session_id, force=force)
    click.echo(f"session {answer['session_id'][:8]} is being ended (process {answer['pid']})")
