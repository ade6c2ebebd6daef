"""What a person can say to the bot: sessions, switch, status, screen, mute, help.  Parsing and texts are pure.

Each chat has its own sign before a command (`/`, or `!` where the service keeps the slash for itself).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from atlasbridge.channels import wording
from atlasbridge.channels.listening import NOTHING_OPEN, active
from atlasbridge.core.ids import short_id
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.visible import visible

COMMANDS = {
    "sessions": "what runs, with short ids",
    "switch": "send plain texts to one session: {sign}switch ID, {sign}switch off",
    "status": "what waits for an answer",
    "screen": "show a session's screen: {sign}screen ID",
    "mute": "be quiet for a while: {sign}mute 30m, {sign}mute off",
    "help": "what you can say here",
}
DEFAULT_MUTE_S = 3600
_COMMAND = re.compile(r"(?P<sign>[/!])(?P<name>[a-z]+)(?:@(?P<bot>\w+))?(?:\s+(?P<rest>.*))?", re.DOTALL)
_SPAN = re.compile(r"(\d{1,4})\s*([mh]?)")


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    rest: str


def parse_command(text: str, bot_name: str, sign: str = "/") -> Command | None:
    """None when the text is no command, or one for another bot in the group."""
    match = _COMMAND.fullmatch(text.strip())
    if match is None or match["sign"] != sign or (match["bot"] and match["bot"].lower() != bot_name.lower()):
        return None
    return Command(match["name"], (match["rest"] or "").strip())


def parse_span(text: str) -> float | None:
    """Seconds: "" is an hour, "off" is 0, "30" and "30m" are minutes, "2h" hours; None when it is none of these."""
    if text.lower() in ("off", "0"):
        return 0.0
    if not text:
        return float(DEFAULT_MUTE_S)
    match = _SPAN.fullmatch(text.lower())
    return None if match is None else float(match[1]) * (3600 if match[2] == "h" else 60)


def find_session(sessions: list[SessionRecord], start: str) -> SessionRecord | None:
    """The one active session whose id or label begins like this."""
    wanted = start.strip().lower()
    found = [one for one in active(sessions) if wanted and one.session_id.lower().startswith(wanted)]
    found = found or [one for one in active(sessions) if wanted and one.label.lower() == wanted]
    return found[0] if len(found) == 1 else None


def render_sessions(sessions: list[SessionRecord], prompts: list[PromptRecord], chosen: str) -> str:
    if not active(sessions):
        return "No session is running."
    lines = []
    for session in active(sessions):
        waiting = sum(record.session_id == session.session_id for record in prompts)
        mark = " ← plain texts go here" if session.session_id == chosen else ""
        lines.append(
            f"{short_id(session.session_id)} · {wording.tool_name(session)} · pid {session.pid} · "
            f"{waiting} waiting · {visible(session.cwd, keep_lines=False)[-60:]}{mark}"
        )
    return "\n".join(lines)


def render_status(prompts: list[PromptRecord], sessions: list[SessionRecord], now: float) -> str:
    if not prompts:
        return NOTHING_OPEN
    tools = {session.session_id: wording.tool_name(session) for session in sessions}
    return "\n".join(
        f"{short_id(record.prompt_id)} · {tools.get(record.session_id, '?')} {short_id(record.session_id)} · "
        f"{wording.KIND_NAMES[record.prompt.type]} · {record.state.value} · "
        f"{wording.render_left(record.deadline - now)} left\n   {wording.render_question(record.prompt)[:80]}"
        for record in prompts
    )


def describe_commands(sign: str) -> dict[str, str]:
    return {name: what.format(sign=sign) for name, what in COMMANDS.items()}


def render_help(sign: str) -> str:
    lines = [f"{sign}{name}: {what}" for name, what in describe_commands(sign).items()]
    return "\n".join(["Tap a button, or reply to a prompt with text.", *lines])
