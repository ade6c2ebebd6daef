"""`atlasbridge events`: prints events for other programs."""

from __future__ import annotations

import select

import click

from atlasbridge.cli.by_name import find_session_id, sessions_of
from atlasbridge.cli.completion import complete_sessions
from atlasbridge.cli.printing import hub_client, print_line
from atlasbridge.core.clock import SystemClock, iso, local_time
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.errors import HubUnavailable
from atlasbridge.core.escape import escape_controls

REMEMBERED = 10_000
RETRY_S = 0.2


@click.command("events")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
@click.option("-f", "--follow", is_flag=True, help="Print open prompts, then events as they happen.")
@click.option("--session", default="", shell_complete=complete_sessions, help="Only this session: its name or id.")
def command(as_json: bool, follow: bool, session: str) -> None:
    """Print events as they happen.  With --follow it continues over a restart of the hub, which is an event, too."""
    told = Told()
    hub = hub_client(start=True)
    while True:
        with hub:
            if session:
                session = find_session_id(session, sessions_of(hub, include_ended=True))
            for event in hub.stream("events", follow=follow, session=session, recent=told.interrupted):
                if told.is_new(event):
                    (print_line if as_json else print_short)(event)
        if not follow:
            return
        hub = await_hub()
        told.interrupted = True
        again: dict[str, object] = {"event": "hub.reconnected", "at": iso(SystemClock().wall())}
        (print_line if as_json else print_short)(again)


class Told:
    """Remembers printed events, because the hub repeats recent ones after a reconnection."""

    def __init__(self) -> None:
        self.interrupted = False
        self._keys: dict[tuple[str, ...], None] = {}

    def is_new(self, event: dict[str, object]) -> bool:
        names = ("event", "prompt_id", "session_id") + (() if event["event"] == "prompt.raised" else ("at",))
        key = tuple(str(event.get(name, "")) for name in names)
        if self.interrupted and key in self._keys:
            return False
        self._keys[key] = None
        if len(self._keys) > REMEMBERED:
            del self._keys[next(iter(self._keys))]
        return True


def await_hub() -> HubClient:
    """Wait for the next hub without starting one, so that a hub that was stopped on purpose stays stopped."""
    while True:
        try:
            return hub_client()
        except HubUnavailable:
            select.select([], [], [], RETRY_S)


def print_short(event: dict[str, object]) -> None:
    words = [local_time(str(event["at"]))[11:], str(event["event"]), str(event.get("session_id", ""))[:8]]
    words += [str(event[name])[:60] for name in ("prompt_id", "excerpt", "reason", "by", "exit_code") if name in event]
    click.echo(escape_controls("  ".join(words), keep_lines=False))
