"""What was asked and ended while the link to a chat was down, for the note on its return.  Pure."""

from __future__ import annotations

from collections.abc import Callable

from atlasbridge.channels.outcome import render_fate, render_moment
from atlasbridge.channels.people import is_timer
from atlasbridge.channels.quoting import first_line
from atlasbridge.channels.wording import session_name
from atlasbridge.core.clock import parse_iso
from atlasbridge.core.ports import Desk
from atlasbridge.core.prompt.machine import OPEN
from atlasbridge.core.prompt.model import PromptRecord

LOOK_BACK = 200
MOST_LISTED = 10
LINE_LIMIT = 90


def find_missed(desk: Desk, channel: str, since: float) -> list[PromptRecord]:
    """Prompts of this channel's sessions that came and went since then and were never shown here, oldest first."""
    found = []
    for record in desk.history(limit=LOOK_BACK):
        if parse_iso(record.created_at) < since:
            break
        if record.state not in OPEN and _was_for(desk, channel, record):
            found.append(record)
    return found[::-1]


def _was_for(desk: Desk, channel: str, record: PromptRecord) -> bool:
    session = desk.session(record.session_id)
    if session is None or record.prompt.secret or record.prompt.idle:
        return False
    asked = session.channels is None or channel in session.channels
    return asked and not desk.deliveries(record.prompt_id, channel)


def render_missed(desk: Desk, records: list[PromptRecord], call: Callable[[str], str]) -> str:
    """What nobody answered first; what somebody did elsewhere is counted."""
    lost = [record for record in records if not record.decided_by or is_timer(record.decided_by)]
    lines = [_line(desk, record, call) for record in lost[:MOST_LISTED]]
    more = len(records) - len(lines)
    if more:
        lines.append(
            f"and {more} more, which {'was' if more == 1 else 'were'} settled elsewhere: atlasbridge audit show"
        )
    return "\n".join(lines)


def _line(desk: Desk, record: PromptRecord, call: Callable[[str], str]) -> str:
    session = desk.session(record.session_id)
    name = session_name(session) if session is not None else "?"
    asked = first_line(record.prompt)
    quoted = asked if len(asked) <= LINE_LIMIT else asked[: LINE_LIMIT - 1] + "…"
    moment = render_moment(parse_iso(record.created_at))
    return (
        f"{moment} · {name} · “{quoted}”: {render_fate(record, call(record.decided_by) if record.decided_by else '')}"
    )
