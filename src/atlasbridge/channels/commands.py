"""What a person can say to the bot: sessions, status, screen, new, esc, stop, mute.  Parsing and texts are pure.

Each chat has its own sign before a command (`/`, or `!` where the service keeps the slash for itself).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from atlasbridge.channels import wording
from atlasbridge.channels.listening import active
from atlasbridge.channels.quoting import cut_to, first_line
from atlasbridge.channels.target import NOTHING_OPEN
from atlasbridge.core.clock import parse_duration
from atlasbridge.core.ids import short_id
from atlasbridge.core.prompt.gate import SHORT_ID
from atlasbridge.core.prompt.model import PromptRecord, PromptState
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.visible import visible

COMMANDS = {
    "status": "what waits for an answer",
    "sessions": "what runs",
    "screen": "show a session's screen: {sign}screen NAME",
    "picture": "a session's screen as a picture: {sign}picture NAME",
    "last": "a session's last answer in full: {sign}last NAME",
    "transcript": "all that a session said since the last prompt: {sign}transcript NAME",
    "queue": "an instruction for when it is done: {sign}queue TEXT; what waits: {sign}queue; back: {sign}queue off ID",
    "get": "a file of a session's folder: {sign}get PATH",
    "switch": "send plain texts to one session: {sign}switch NAME, {sign}switch off",
    "new": "start one of the configured sessions: {sign}new NAME",
    "esc": "press Esc in a session, to interrupt it: {sign}esc NAME",
    "resume": "let a session that Ctrl-Z has stopped go on: {sign}resume NAME",
    "stop": "end a session: {sign}stop NAME",
    "later": "answer later: {sign}later ID 06:00 VALUE; what is kept: {sign}later; take back: {sign}later off ID",
    "snooze": "be asked again in a while: {sign}snooze ID 15m",
    "all": "answer several the same way: {sign}all VALUE ID ID ...",
    "grant": "allow what a prompt asks for a while: {sign}grant ID 30m, {sign}grant ID 5x",
    "mute": "be quiet for a while: {sign}mute 30m, {sign}mute off",
    "away": "nobody is at the desk, ask here at once: {sign}away, {sign}away 2h",
    "here": "somebody is at the desk again",
    "help": "what you can say here",
}
STATES = {
    PromptState.CREATED: "not shown yet",
    PromptState.ROUTED: "being shown",
    PromptState.AWAITING_REPLY: "waits for your answer",
    PromptState.REPLY_RECEIVED: "the answer is being typed",
    PromptState.INJECTED: "the answer was typed",
}
DEFAULT_MUTE_S = 3600
_COMMAND = re.compile(r"(?P<sign>[/!])(?P<name>[a-z]+)(?:@(?P<bot>\w+))?(?:\s+(?P<rest>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    rest: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """An answer in words; with a `screen` or a `file`, the words are its title.  `name` is what a file is called;
    `split`: rather several messages than a file, where a few are enough."""

    text: str
    screen: str | None = None
    name: str = "screen.txt"
    split: bool = False
    file: bytes | None = None
    picture: bool = False


def parse_command(text: str, bot_name: str, sign: str = "/") -> Command | None:
    """None when the text is no command, or one for another bot in the group."""
    match = _COMMAND.fullmatch(text.strip())
    if match is None or match["sign"] != sign or (match["bot"] and match["bot"].lower() != bot_name.lower()):
        return None
    return Command(match["name"], (match["rest"] or "").strip())


def is_about(command: Command) -> bool:
    """Whether a command that replies to a prompt's message speaks of that prompt: then its id need not be said."""
    return command.name in ("later", "snooze") and command.rest.lower() != "off"


def parse_span(text: str) -> float | None:
    """Seconds: "" is an hour, "off" is 0, "30" and "30m" are minutes, "1h30m", "2d"; None when it is none of these."""
    if text.lower() in ("off", "0"):
        return 0.0
    if not text:
        return float(DEFAULT_MUTE_S)
    return parse_duration(text, bare_s=60.0)


def parse_grant(text: str) -> tuple[str, float | None, int | None, bool] | None:
    """ "ID", "ID 30m", "ID 5x", each also with "folder": id, seconds, uses, whole folder; None for anything else."""
    words = text.lower().split()
    folder = words[-1:] == ["folder"]
    words = words[:-1] if folder else words
    if not 1 <= len(words) <= 2:
        return None
    if len(words) == 1:
        return words[0], None, None, folder
    if words[1].endswith("x") and words[1][:-1].isdigit() and 1 <= int(words[1][:-1]) <= 1000:
        return words[0], None, int(words[1][:-1]), folder
    span_s = parse_span(words[1])
    return (words[0], span_s, None, folder) if span_s else None


def render_grant(made: dict[str, Any], sign: str) -> str:
    """In words what is allowed, with examples of what is and what is not."""
    if not made["ok"]:
        return str(made["message"])
    lines = [f"{'Granted' if 'grant_id' in made else 'It would be'}: {made['words']}."]
    lines += [f"✅ {example}" for example in made["would"]] + [f"❌ {example}" for example in made["would_not"]]
    if "grant_id" in made:
        lines.append(f"To end it: atlasbridge grants revoke {made['grant_id'][:8]}")
    else:
        lines.append(f"Say {sign}grant ID 30m or {sign}grant ID 5x to give it.")
    return visible("\n".join(lines))


def find_session(sessions: list[SessionRecord], start: str) -> SessionRecord | None:
    """The one active session that is called so, or whose id begins like this; a tool that starts a session under the id
    of another one as its name makes both of them doubtful."""
    wanted = start.strip().lower()
    running = active(sessions)
    labelled = [one for one in running if wanted and one.label.lower() == wanted]
    begun = [one for one in running if wanted and one.session_id.startswith(wanted)]
    named = [one for one in running if wanted and wording.session_name(one).lower() == wanted]
    found = labelled or begun or named
    if len(wanted) >= SHORT_ID:
        found += [one for one in begun if one not in found]
    return found[0] if len(found) == 1 else None


def render_sessions(sessions: list[SessionRecord], prompts: list[PromptRecord], chosen: str) -> str:
    if not active(sessions):
        return "No session is running."
    lines = []
    for session in active(sessions):
        waiting = any(record.session_id == session.session_id for record in prompts)
        state = "stopped" if session.stopped else "waits for you" if waiting else "runs"
        mark = " ← plain texts go here" if session.session_id == chosen else ""
        lines.append(
            f"{wording.session_name(session)} · {wording.tool_name(session)} · {state}"
            f"{mark}\n   {visible(session.cwd, keep_lines=False)[-60:]} · {short_id(session.session_id)}"
        )
    return "\n".join(lines)


def render_status(prompts: list[PromptRecord], sessions: list[SessionRecord]) -> str:
    if not prompts:
        return NOTHING_OPEN
    names = {session.session_id: wording.session_name(session) for session in sessions}
    return "\n".join(
        f"{names.get(record.session_id, '?')}: “{cut_to(first_line(record.prompt), 80, len)}”\n"
        f"   {STATES.get(record.state, record.state.value)} · {wording.render_deadline(record)}"
        for record in prompts
    )


def describe_commands(sign: str) -> dict[str, str]:
    return {name: what.format(sign=sign) for name, what in COMMANDS.items()}


def render_help(sign: str) -> str:
    lines = [f"{sign}{name}: {what}" for name, what in describe_commands(sign).items()]
    return "\n".join(["Tap a button, or reply to a prompt with text.", *lines])
