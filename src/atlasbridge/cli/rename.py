"""`atlasbridge rename`: what a session is called from now on."""

from __future__ import annotations

import click

from atlasbridge.cli.by_name import find_session_id, sessions_of, warn_of_same_name
from atlasbridge.cli.completing import complete_sessions
from atlasbridge.cli.printing import hub_client
from atlasbridge.core.ids import short_id


@click.command("rename")
@click.argument("session", shell_complete=complete_sessions)
@click.argument("name")
def command(session: str, name: str) -> None:
    """Give a session another name; an empty one takes its name away."""
    with hub_client() as hub:
        known = sessions_of(hub)
        session_id = find_session_id(session, known)
        answer = hub.ask("rename", session_id=session_id, label=name)
    named = f"is called {answer['label']} now" if answer["label"] else "has no name any more"
    click.echo(f"session {short_id(session_id)} {named}")
    said = warn_of_same_name(answer["label"], [item for item in known if item.id != session_id])
    if said:
        click.echo(f"atlasbridge: {said}", err=True)
