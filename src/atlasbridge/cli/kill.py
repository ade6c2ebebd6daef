"""`atlasbridge kill`: end a session's tool, the whole process group."""

from __future__ import annotations

import click

from atlasbridge.cli.printing import hub_client


@click.command("kill")
@click.argument("session_id")
@click.option("--force", is_flag=True, help="SIGKILL at once, without SIGTERM before.")
def command(session_id: str, force: bool) -> None:
    """End a session: SIGTERM, and SIGKILL when it does not end."""
    with hub_client() as hub:
        answer = hub.ask("kill", session_id=session_id, force=force)
    click.echo(f"session {answer['session_id'][:8]} is being ended (process {answer['pid']})")
