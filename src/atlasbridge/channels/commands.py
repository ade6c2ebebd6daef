"""The commands that a person can send to the bot: sessions, status, screen, new, esc, stop, mute. Parsing and texts are
pure.

Each chat has its own sign before a command: `/`, or `!` where the service reserves the slash.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from atlasbridge.channels import templates
from atlasbridge.channels.excerpt import cut_to
from atlasbridge.channels.files import NotHanded, read_inside
from atlasbridge.channels.grant_card import examples
from atlasbridge.channels.incoming import MOST_OFFERED, NOTHING_OPEN, WHICH, active
from atlasbridge.channels.language import LANGUAGES, Reader, hub_says, known_language, language_key, reading, t
from atlasbridge.channels.screenshot import make_picture
from atlasbridge.channels.templates import CONTINUE, LIMIT_BUTTON, count_changes, render_left, tool_name
from atlasbridge.channels.transcript import last_answer, rows_of, since_instruction
from atlasbridge.core.clock import parse_duration
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.operations import Changes, Granted, HubAs, HubOperations, Kept, Operation, Refused
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.answer import first_line
from atlasbridge.core.prompt.gate import SHORT_ID
from atlasbridge.core.prompt.model import PromptRecord, PromptState
from atlasbridge.core.scheduler.times import find_zone, parse_when
from atlasbridge.core.session.model import SessionRecord, session_name

if TYPE_CHECKING:
    from atlasbridge.channels.chat import ChatChannel


def _of(operation: Operation[..., Any], use: str = "") -> str:
    """The summary of the operation from the table, and how to use it in a chat."""
    about = operation.about[:1].lower() + operation.about[1:].rstrip(".")
    return f"{about}: {use}" if use else about


COMMANDS = {
    "status": "list open prompts and finished sessions",
    "sessions": "list running sessions",
    "screen": "show a session's screen: {sign}screen NAME",
    "picture": "show a session's screen as a picture: {sign}picture NAME",
    "last": "show a session's last answer in full: {sign}last NAME",
    "transcript": "show everything since the last prompt: {sign}transcript NAME",
    "queue": "queue an instruction: {sign}queue TEXT; list them: {sign}queue; remove: {sign}queue off NAME",
    "changes": "list what a session has changed since it started: {sign}changes NAME",
    "get": "send a file from a session's folder: {sign}get PATH",
    "switch": "send your messages to one session: {sign}switch NAME, {sign}switch off",
    "new": _of(HubOperations.launch, "{sign}new NAME, or {sign}new NAME: FIRST INSTRUCTION"),
    "esc": "interrupt a session with Esc: {sign}esc NAME",
    "resume": _of(HubOperations.resume, "{sign}resume NAME"),
    "stop": _of(HubOperations.end, "{sign}stop NAME"),
    "later": "schedule an answer: {sign}later NAME 06:00 VALUE; list: {sign}later; remove: {sign}later off NAME",
    "snooze": _of(HubOperations.snooze, "{sign}snooze NAME 15m"),
    "all": "answer several the same way: {sign}all lists them, {sign}all VALUE 1 2 answers",
    "grant": _of(HubOperations.grant, "{sign}grant NAME 30m, {sign}grant NAME 5x"),
    "mute": "mute this chat for a while: {sign}mute 30m, {sign}mute off",
    "away": _of(HubOperations.away, "{sign}away, {sign}away 2h"),
    "here": _of(HubOperations.here),
    "language": "set the language of this chat: {sign}language de",
    "help": "list these commands",
}
STATES = {
    PromptState.CREATED: "not shown yet",
    PromptState.ROUTED: "being shown",
    PromptState.AWAITING_REPLY: "waiting for your answer",
    PromptState.REPLY_RECEIVED: "the answer is being typed",
    PromptState.INJECTED: "the answer was typed",
}
DEFAULT_MUTE_S = 3600
SHORTEST_ID = 4
T = TypeVar("T")
_COMMAND = re.compile(r"(?P<sign>[/!])(?P<name>[a-z]+)(?:@(?P<bot>\w+))?(?:\s+(?P<rest>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    rest: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """A text answer; an empty one is not sent. With a `screen` or a `file`, the text is its title and `name` is the
    file name. `split` prefers a few messages to a file. With `offered`, the prompts that the command can mean, `name`
    is the command."""

    text: str
    screen: str | None = None
    name: str = "screen.txt"
    split: bool = False
    file: bytes | None = None
    picture: bool = False
    offered: tuple[PromptRecord, ...] = ()


def parse_command(text: str, bot_name: str, sign: str = "/") -> Command | None:
    """Return None if the text is not a command, or is a command for another bot in the group."""
    match = _COMMAND.fullmatch(text.strip())
    if match is None or match["sign"] != sign or (match["bot"] and match["bot"].lower() != bot_name.lower()):
        return None
    return Command(match["name"], (match["rest"] or "").strip())


def is_about(command: Command) -> bool:
    """Whether a command that replies to a prompt's message applies to that prompt, so that its id can be omitted."""
    return command.name in ("later", "grant") or (command.name == "snooze" and command.rest.lower() != "off")


def parse_span(text: str) -> float | None:
    """Return seconds: "" is an hour, "off" is 0, "30" and "30m" are minutes, also "1h30m" and "2d". None for anything
    else."""
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


def _is_span(word: str) -> bool:
    """Whether the word is one of a grant: "30m", "5x" or "folder", not a name."""
    return parse_grant(f"ID {word}") is not None


def render_grant(made: Granted | Refused, sign: str) -> str:
    """Describe what is allowed, with examples of what is and what is not."""
    if isinstance(made, Refused):
        return hub_says(made.message)
    if made.grant_id:
        first, last = t("Granted: {words}.", words=made.words), f"atlasbridge grants remove {made.grant_id[:8]}"
        last = t("To end it: {command}", command=last)
    else:
        first = t("This would grant: {words}.", words=made.words)
        last = t("To grant it, send {sign}grant NAME 30m or {sign}grant NAME 5x.", sign=sign)
    return escape_controls("\n".join([first, *examples(made), last]))


def pick(items: Sequence[T], wanted: str, name: Callable[[T], str], key: Callable[[T], str]) -> list[T]:
    """The items that a word names: a number of the list, a session's name, or the beginning of an id. Without a word,
    all of them: a single one needs no name."""
    if not wanted:
        return list(items)
    if wanted.isdecimal() and 1 <= int(wanted) <= len(items):
        return [items[int(wanted) - 1]]
    named = [one for one in items if name(one).lower() == wanted.lower()]
    return named or [one for one in items if len(wanted) >= SHORTEST_ID and key(one).startswith(wanted)]


def find_session(sessions: list[SessionRecord], start: str) -> SessionRecord | None:
    """Return the only active session with this name, or whose id starts with this text. If the name of one session is
    the id of another, both are ambiguous and None is returned."""
    wanted = start.strip().lower()
    running = active(sessions)
    labelled = [one for one in running if wanted and one.label.lower() == wanted]
    begun = [one for one in running if wanted and one.session_id.startswith(wanted)]
    named = [one for one in running if wanted and session_name(one).lower() == wanted]
    found = labelled or begun or named
    if len(wanted) >= SHORT_ID:
        found += [one for one in begun if one not in found]
    return found[0] if len(found) == 1 else None


def find_prompts(hub_api: HubApi, named: str) -> list[PromptRecord]:
    """Find prompts by the name of their session (its open prompts), or one by its id or the start of the id."""
    session = find_session(hub_api.sessions(), named)
    asked = [one for one in hub_api.open_prompts() if session is not None and one.session_id == session.session_id]
    found = None if asked else hub_api.prompt(named)
    return [found] if found is not None else asked


def begins_with_time(words: Sequence[str], wall: float) -> bool:
    """Whether a scheduled answer can begin with these words: a time, or "limit-resets"."""
    if words and words[0].lower() in LIMIT_WORDS:
        return True
    said = (" ".join(words[:count]) for count in range(1, min(MOST_WORDS, len(words)) + 1))
    return any(parse_when(one, wall, "", find_zone) is not None for one in said)


def render_sessions(sessions: list[SessionRecord], prompts: list[PromptRecord], chosen: str) -> str:
    if not active(sessions):
        return t("No session is running.")
    lines = []
    for session in active(sessions):
        own = [record for record in prompts if record.session_id == session.session_id]
        waiting = sum(not record.prompt.idle for record in own)
        state = t("waits for you") if waiting else t("finished") if own else t("runs")
        state = t("stopped") if session.stopped else state
        none = t("no pending prompts")
        count = t("1 pending prompt|{count} pending prompts", count=waiting) if waiting else none
        mark = f" ← {t('your messages go here')}" if session.session_id == chosen else ""
        lines.append(
            f"{session_name(session)} · {templates.tool_name(session)} · {state}"
            f"{mark}\n   {short_id(session.session_id)} · PID {session.pid} · {count}"
            f" · {escape_controls(session.cwd, keep_lines=False)[-60:]}"
        )
    return "\n".join(lines)


def render_status(prompts: list[PromptRecord], sessions: list[SessionRecord]) -> str:
    """List the open prompts first, the soonest deadline at the top. Idle sessions are listed separately."""
    names = {session.session_id: session_name(session) for session in sessions}
    asking = sorted((one for one in prompts if not one.prompt.idle), key=lambda one: one.expires_at)
    resting = [names.get(one.session_id, "?") for one in prompts if one.prompt.idle]
    lines = [
        f"{names.get(record.session_id, '?')}: “{cut_to(first_line(record.prompt), 80)}”\n"
        f"   {t(STATES.get(record.state, record.state.value))} · {templates.render_deadline(record)}"
        for record in asking
    ]
    idle = t("Finished, ready for the next instruction: {names}", names=", ".join(resting))
    return "\n".join([*(lines or [t(NOTHING_OPEN)]), *([idle] if resting else [])])


def list_changes(found: Changes) -> list[str]:
    """A line per file, as many as a message can hold."""
    signs = {"added": "A", "changed": "M", "removed": "D", "written": "·"}
    lines = []
    for one in found.files[:LISTED_FILES]:
        why = t("not text") if one.binary else t("too large to compare") if one.large else ""
        why = t("content not readable") if one.unknown else why
        counts = why or (f"+{one.added} −{one.removed}" if found.repository else "")
        lines.append(f"{signs[one.status]} {one.path[-120:]}  {counts}".rstrip())
    more = found.count - len(lines)
    return [*lines, t("… and {count} more", count=more)] if more > 0 else lines


def describe_commands(sign: str) -> dict[str, str]:
    return {name: t(what, sign=sign) for name, what in COMMANDS.items()}


def render_help(sign: str) -> str:
    lines = [f"{sign}{name}: {what}" for name, what in describe_commands(sign).items()]
    return "\n".join([t("Tap a button, or reply to a prompt with text."), *lines])


MOST_WORDS = 3  # words in a time: "fri 12:00", "in 2 hours"
MOST_AT_ONCE = 50
LISTED = 12
LIMIT_WORDS = ("limit-resets", "limit")
NOT_OURS = "This button does not belong to AtlasBridge."
SEVERAL = "There are {count}. Send {command} off NUMBER; {command} lists them."
TAKE_BACK = "To remove one: {command} off NAME or NUMBER"
BEGINNING = 80  # characters of a question in a list
ESC = b"\x1b"
LISTED_TEXT = 200
LISTED_FILES = 15
LOOKED_BACK = 20  # number of prompts that are searched for the last instruction
NO_ANSWER = "That session does not respond."
ABOUT_SESSION = frozenset(
    ("screen", "picture", "last", "transcript", "changes", "get", "queue", "new", "esc", "resume", "stop")
) | {"later", "snooze", "grant"}
Listed = list[tuple[str, str]]  # prompt id and session name


async def press_later(hub: HubAs, record: PromptRecord, what: str) -> Kept | Refused:
    """Handle a "later" button: "limit", or the minutes until the prompt is asked again."""
    if what == LIMIT_BUTTON:
        return await hub.postpone(record.prompt_id, CONTINUE, "limit-resets", as_text=True)
    if what.isdecimal():
        return await hub.snooze(record.prompt_id, float(what) * 60)
    return Refused("bad_value", NOT_OURS)


def is_told_beside(outcome: Kept | Refused) -> bool:
    """Whether the hub says it beside each message that shows the prompt, so that nothing else has to."""
    return isinstance(outcome, Kept) and bool(outcome.later_id)


class HubCommands:
    """The commands in the rooms of one channel."""

    def __init__(self, channel: ChatChannel) -> None:
        self.channel = channel
        self._listed: dict[tuple[str, str], Listed] = {}

    async def run(self, chat: str, command: Command, identity: str, token: Any = None) -> Spoken:
        """`token` tells where the command was sent, so that a reply made from it can be answered there."""
        listed = self._listed.setdefault((chat, identity), [])
        said = await _Said(self, chat, identity, listed, token, command.rest).obey(command.name)
        return said if isinstance(said, Spoken) else Spoken(said)

    def meant(self, chat: str, identity: str) -> SessionRecord | None:
        """Return the session that a message without a name is about."""
        return _Said(self, chat, identity, [], None, "").meant("")

    def chosen(self, chat: str) -> str:
        """Return the session that receives plain texts of this chat, or ""."""
        return self.channel.hub_api.recall(f"{self.channel.name}.switch.{chat}")

    def is_muted(self, chat: str) -> bool:
        until = self.channel.hub_api.recall(f"{self.channel.name}.mute.{chat}", "0")
        return self.channel.clock.wall() < float(until)


class _Said:
    """One command of one person. The channel renders what it returns; the gate decides about each reply. `listed` is
    the list that this person has read last in this chat."""

    def __init__(self, commands: HubCommands, chat: str, identity: str, listed: Listed, token: Any, rest: str) -> None:
        channel = self._channel = commands.channel
        self._commands, self._sign = commands, channel.sign
        self._chat, self._identity, self._token, self._rest = chat, identity, token, rest
        self._read = listed
        self._hub_api = channel.hub_api.seen_by(identity, channel.is_alone(chat, identity))
        self._hub = self._hub_api.by(channel.caller(identity))

    async def obey(self, name: str) -> Spoken | str:
        """`do_NAME` is the method of a command; those that only show a session share one."""
        own = getattr(self, f"do_{name}", None)
        if own is not None:
            answer: Spoken | str = await own()
            return answer
        if name in COMMANDS:
            return await self._about(name)
        return f"{t('Unknown command: {command}.', command=f'{self._sign}{name}')}\n{render_help(self._sign)}"

    async def do_help(self) -> str:
        return render_help(self._sign)

    do_start = do_help  # what Telegram sends first

    # prompts

    def _meant_prompts(
        self, words: list[str], means_any: bool, idle: bool = False
    ) -> tuple[list[PromptRecord], list[str], bool]:
        """The prompts that a command means, its other words, and whether to ask back which of them. The first word
        names a session or a prompt; where `means_any` and no word does, the chosen session's prompts are meant, else
        those of all sessions; one that the writer had no time to read is asked back. With `idle`, finished agents are
        meant, too."""
        found = find_prompts(self._hub_api, words[0]) if words else []
        is_named = bool(found) or not means_any
        if not is_named:
            chosen = self._commands.chosen(self._chat)
            asked = [one for one in self._hub_api.open_prompts() if not one.prompt.secret]
            found = [one for one in asked if one.session_id == chosen] or asked
        if not idle:
            found = [one for one in found if not one.prompt.idle] or found
        is_read = is_named or (len(found) == 1 and self._channel.had_read(self._token, found[0].prompt_id))
        return found, words[1:] if is_named else words, len(found) > 1 or not is_read

    def _which_prompt(self, command: str, offered: Sequence[PromptRecord]) -> Spoken:
        """Ask back. The command is run again for the prompt that is tapped."""
        return Spoken(t(WHICH), name=f"{self._sign}{command}".strip(), offered=tuple(offered[:MOST_OFFERED]))

    def _once(self, outcome: Kept | Refused, prompt_id: str) -> str:
        told = is_told_beside(outcome) and self._channel.shows(self._chat, prompt_id)
        return "" if told else hub_says(outcome.message)

    async def do_later(self) -> Spoken | str:
        words = self._rest.split()
        if not words:
            return self._list_later()
        if words[0].lower() == "off":
            return await self._revoke(self._hub_api.later(), words[1] if len(words) == 2 else "")
        by_time = begins_with_time(words, self._channel.clock.wall())
        found, rest, unclear = self._meant_prompts(words, by_time, idle=True)
        if found and [word.lower() for word in rest] == ["off"]:
            ids = {one.prompt_id for one in found}
            return await self._revoke([one for one in self._hub_api.later() if one["prompt_id"] in ids], "")
        if not found:
            return t(
                "There is no such prompt. Send {sign}later NAME 06:00 VALUE; {sign}status lists open prompts.",
                sign=self._sign,
            )
        if unclear and len(rest) > 1:
            return self._which_prompt(f"later {' '.join(rest)}", found)
        return await self._postpone(found[0], rest)

    async def _revoke(self, kept: list[dict[str, Any]], wanted: str) -> str:
        found = pick(kept, wanted, lambda one: str(one["name"]), lambda one: str(one["later_id"]))
        if len(found) > 1:
            return t(SEVERAL, count=len(found), command=f"{self._sign}later")
        outcome = await self._hub.revoke_later(str(found[0]["later_id"]) if found else wanted)
        return self._once(outcome, str(found[0]["prompt_id"]) if found else "")

    async def _postpone(self, record: PromptRecord, words: list[str]) -> str:
        """Read as many words as possible as the time; the rest is the answer."""
        command = f"{self._sign}later {self._name(record)} 06:00 VALUE"
        said = t("Send {command}, or limit-resets for the time.", command=command)
        for count in range(min(MOST_WORDS, len(words) - 1), 0, -1):
            when, value = " ".join(words[:count]), " ".join(words[count:])
            outcome = await self._hub.postpone(record.prompt_id, value, when)
            said = self._once(outcome, record.prompt_id)
            if not outcome.message.startswith("Give a time"):
                return said
        return said

    def _list_later(self) -> str:
        kept = self._hub_api.later()
        if not kept:
            return t("No scheduled answers.")
        lines = [
            f"{number}. {hub_says(item['when'])} · {item['name']}: {hub_says(item['what'])} · {item['by_name']}"
            for number, item in enumerate(kept, 1)
        ]
        return escape_controls("\n".join([*lines, t(TAKE_BACK, command=f"{self._sign}later")]))

    async def do_snooze(self) -> Spoken | str:
        words = self._rest.split()
        found, rest, unclear = self._meant_prompts(words, not words or bool(parse_span(words[0])))
        span_s = parse_span(rest[0]) if len(rest) == 1 else 900.0
        if not found or not span_s or len(rest) > 1:
            return t("Send {sign}snooze NAME 15m; {sign}status lists open prompts.", sign=self._sign)
        if unclear:
            return self._which_prompt(f"snooze {' '.join(rest)}", found)
        return self._once(await self._hub.snooze(found[0].prompt_id, span_s), found[0].prompt_id)

    async def do_all(self) -> str:
        """Answer only prompts of the list that this person has read here, by number or name: a session that asks
        something else by now is not answered. Without numbers, show the list."""
        value, *words = self._rest.split() or [""]
        if not words or len(words) > MOST_AT_ONCE:
            return self._list_all(value)
        found = {word: self._in_list(word) for word in words}
        unknown = next((word for word, record in found.items() if record is None), "")
        records = {record.prompt_id: record for record in found.values() if record is not None}
        if unknown or len(records) != len(words):
            said = "Nothing was answered: {word} is not in your last list, or named twice. {sign}all shows a new list."
            return t(said, word=unknown or words[-1], sign=self._sign)
        for record in records.values():
            fields = {"session_id": record.session_id, "nonce": record.nonce}
            self._channel.deliver(self._channel.speak(self._identity, record.prompt_id, value, self._token, **fields))
        shown = escape_controls(value, keep_lines=False)
        return t("Answering {count} with {value}, each for itself.", count=len(records), value=shown)

    def _in_list(self, word: str) -> PromptRecord | None:
        """The prompt of the last list with this number or name; the id of a prompt needs no list."""
        listed = pick(self._read, word, lambda one: one[1], lambda one: one[0])
        if len(listed) == 1:
            return self._hub_api.prompt(listed[0][0])
        return self._hub_api.prompt(word) if len(word) >= SHORT_ID else None

    def _list_all(self, value: str) -> str:
        waiting = [one for one in self._hub_api.open_prompts() if not (one.prompt.secret or one.prompt.idle)]
        self._read[:] = [(one.prompt_id, self._name(one)) for one in waiting[:LISTED]]
        if not waiting:
            return t("No prompts can be answered together.")
        lines = [
            f"{place}. {self._name(one)}: “{cut_to(first_line(one.prompt), BEGINNING)}”"
            for place, one in enumerate(waiting[:LISTED], 1)
        ]
        numbers = " ".join(str(place) for place in range(1, len(lines) + 1))
        if len(waiting) > LISTED:
            lines.append(t("… and {count} more", count=len(waiting) - LISTED))
        command = f"{self._sign}all {value or 'VALUE'} {numbers}"
        return "\n".join([*lines, t("To answer these: {command}", command=command)])

    def _name(self, record: PromptRecord) -> str:
        session = self._hub_api.session(record.session_id)
        return session_name(session) if session else "?"

    async def do_grant(self) -> Spoken | str:
        words = self._rest.split()
        found, rest, unclear = self._meant_prompts(words, not words or _is_span(words[0]))
        wanted = parse_grant(" ".join([found[0].prompt_id if found else "", *rest]))
        if wanted is None or not found:
            return t("Send {sign}grant NAME 30m or {sign}grant NAME 5x; NAME is the session's name.", sign=self._sign)
        if unclear:
            return self._which_prompt(f"grant {' '.join(rest)}", found)
        prompt_id, for_s, times, folder = wanted
        preview = for_s is None and times is None
        made = await self._hub.grant(prompt_id, for_s=for_s, times=times, folder=folder, preview=preview)
        return render_grant(made, self._sign)

    # sessions

    async def do_sessions(self) -> str:
        chosen = self._commands.chosen(self._chat)
        return render_sessions(self._hub_api.sessions(), self._hub_api.open_prompts(), chosen)

    async def do_status(self) -> str:
        return render_status(self._hub_api.open_prompts(), self._hub_api.sessions())

    def meant(self, rest: str) -> SessionRecord | None:
        """Return the session that these words name; without words, the chosen session or the only one."""
        sessions = self._hub_api.sessions()
        wanted = rest or self._commands.chosen(self._chat)
        if wanted or len(active(sessions)) != 1:
            return find_session(sessions, wanted)
        return active(sessions)[0]

    async def _about(self, name: str) -> Spoken | str:
        session = self.meant(self._rest)
        if session is None and name in ("screen", "last", "transcript"):
            session = self._ended()
        if session is None:
            return self._which(f"{name} NAME")
        match name:
            case "esc":
                typed = await self._hub_api.type_keys(session.session_id, ESC, self._identity)
                return t("Esc was pressed in {name}.", name=session_name(session)) if typed else t(NO_ANSWER)
            case "resume":
                resumed = await self._hub.resume(session.session_id)
                told = t("{name} was resumed.", name=session_name(session))
                return hub_says(resumed.message) if isinstance(resumed, Refused) else told
            case "changes":
                return await self._changes(session)
        return await self._show(name, session)

    def _ended(self) -> SessionRecord | None:
        """Return the latest ended session that these words name; without words, the latest, if none runs."""
        wanted, found = self._rest.strip().lower(), self._hub_api.sessions(include_ended=True)
        if not wanted and active(found):
            return None
        ended = [one for one in found if one not in active(found)]
        named = [one for one in ended if session_name(one).lower() == wanted or one.session_id.startswith(wanted)]
        return max(named, key=lambda one: one.started_at, default=None)

    async def _show(self, what: str, session: SessionRecord) -> Spoken | str:
        title = f"{session_name(session)} · {tool_name(session)} {short_id(session.session_id)}"
        if session.ended_at:
            code = session.exit_code
            title += " · " + (t("ended") if code is None else t("ended with exit status {code}", code=code))
        words, picture = what in ("last", "transcript"), what == "picture"
        screen = await self._hub_api.screen(session.session_id, styled=picture, past=words)
        if screen is None:
            return t(NO_ANSWER)
        if picture:
            made = await make_picture(screen)
            return made if isinstance(made, str) else Spoken(title, name="screen.png", file=made, picture=True)
        if not words:
            return Spoken(f"{title}:", str(screen.get("text") or "\n".join(screen.get("lines") or [])))
        about = t("the last answer") if what == "last" else t("since the last prompt")
        pick_rows = last_answer if what == "last" else since_instruction
        rows = pick_rows(rows_of(screen), self._given(session))
        return Spoken(f"{title}, {about}:", "\n".join(rows), f"{what}.txt", split=True)

    async def _changes(self, session: SessionRecord) -> Spoken | str:
        """The files in the message, the differences as text below it or as a file."""
        found = await self._hub.changes(session.session_id)
        if isinstance(found, Refused):
            return hub_says(found.message)
        listed = "\n".join([f"{session_name(session)}: {count_changes(found)}", *list_changes(found)])
        cut = f"\n… ({t('cut here')})"
        diffs = "\n\n".join(f"{one.path}\n{one.diff}{cut if one.cut else ''}" for one in found.files if one.diff)
        return Spoken(listed, diffs, "changes.diff", split=True) if diffs else listed

    def _given(self, session: SessionRecord) -> list[str]:
        """The last instruction that went through the hub. A newer one can exist only if a person typed it at the
        terminal."""
        records = self._hub_api.history(limit=LOOKED_BACK, session_id=session.session_id)
        return [record.decided_value for record in records if record.prompt.idle and record.decided_value][:1]

    def _named(self) -> tuple[SessionRecord | None, str]:
        """The first word can name the session; otherwise it is the chosen session or the only one."""
        first, _, more = self._rest.partition(" ")
        named = find_session(self._hub_api.sessions(), first.rstrip(":")) if more else None
        return (named, more) if named else (self.meant(""), self._rest)

    async def do_get(self) -> Spoken | str:
        session, path = self._named()
        path = path.strip()
        if session is None or not path:
            said = "Send {sign}get PATH, or {sign}get NAME PATH; {sign}sessions lists names."
            return t(said, sign=self._sign)
        try:
            name, content = await asyncio.to_thread(read_inside, self._hub_api.folder(session.session_id), path)
        except NotHanded as why:
            return str(why)
        self._hub_api.note(
            "FILE_SENT", session_id=session.session_id, decided_by=self._identity, path=path, size=len(content)
        )
        return Spoken(f"{session_name(session)}: {escape_controls(path, keep_lines=False)}", name=name, file=content)

    async def do_queue(self) -> str:
        word, _, more = self._rest.partition(" ")
        if not self._rest or word.lower() == "off":
            return await self._queued(more.strip() if self._rest else None)
        session, text = self._named()
        if session is None:
            return self._which("queue NAME TEXT")
        told = await self._hub.enqueue(session.session_id, text.strip())
        return f"{session_name(session)}: {hub_says(told.message)}"

    async def _queued(self, off: str | None) -> str:
        """List the instructions, or remove the one that these words name."""
        listed = await self._hub.queue()
        queue = () if isinstance(listed, Refused) else listed
        if off is not None:
            found = pick(queue, off, lambda one: one.name, lambda one: one.queue_id)
            if len(found) > 1:
                return t(SEVERAL, count=len(found), command=f"{self._sign}queue")
            return hub_says((await self._hub.dequeue(found[0].queue_id if found else off)).message)
        if isinstance(listed, Refused):
            return hub_says(listed.message)
        if not queue:
            return t("Nothing is queued. Send {sign}queue TEXT, or {sign}queue NAME TEXT.", sign=self._sign)
        lines = [
            f"{number}. {one.name}: “{cut_to(' '.join(one.text.split()), LISTED_TEXT)}” · {one.by_name}"
            for number, one in enumerate(queue, 1)
        ]
        return escape_controls("\n".join([*lines, t(TAKE_BACK, command=f"{self._sign}queue")]))

    async def do_new(self) -> str:
        offered = await self._hub.launchers()
        if isinstance(offered, Refused):
            return hub_says(offered.message)
        known = [launcher.name for launcher in offered]
        if not known:
            return t("Nothing can be started from here: config.toml has no [[launchers]].")
        name, _, instruction = (part.strip() for part in self._rest.partition(":"))
        if name not in known:
            said = "Send {sign}new NAME, or {sign}new NAME: INSTRUCTION, with one of: {names}"
            return t(said, sign=self._sign, names=", ".join(known))
        started = await self._hub.launch(name, name=name, instruction=instruction)
        if isinstance(started, Refused):
            return t("It could not be started: {sentence}", sentence=hub_says(started.message))
        return f"{t('Started {name}.', name=name)} {hub_says(started.message)}".strip()

    async def do_stop(self) -> str:
        """The session must be named, so that the wrong one is never stopped by a guess."""
        session = find_session(self._hub_api.sessions(), self._rest)
        if session is None:
            return self._which("stop NAME")
        self._hub_api.note("SESSION_STOPPED", session_id=session.session_id, decided_by=self._identity)
        ended = await self._hub.end(session.session_id)
        told = t("AtlasBridge asked {name} to end.", name=session_name(session))
        return hub_says(ended.message) if isinstance(ended, Refused) else told

    def _which(self, command: str) -> str:
        said = "Which session? Send {sign}{command}; {sign}sessions lists them."
        return t(said, sign=self._sign, command=command)

    # the chat itself

    async def do_switch(self) -> str:
        key = f"{self._channel.name}.switch.{self._chat}"
        if self._rest.lower() == "off":
            self._hub_api.remember(key, "")
            return t("Messages no longer go to one session.")
        session = find_session(self._hub_api.sessions(), self._rest)
        if session is None:
            return t("There is no such session. {sign}sessions lists them.", sign=self._sign)
        self._hub_api.remember(key, session.session_id)
        return t("Messages now go to {name} ({tool}).", name=session_name(session), tool=tool_name(session))

    async def do_mute(self) -> str:
        span_s = parse_span(self._rest)
        if span_s is None:
            return t("Send {sign}mute 30m, {sign}mute 2h or {sign}mute off.", sign=self._sign)
        until = self._channel.clock.wall() + span_s
        self._hub_api.remember(f"{self._channel.name}.mute.{self._chat}", str(until))
        told = t("Muted for {span}: {effect}", span=render_left(span_s), effect=t(self._channel.muted))
        return told if span_s else t("No longer muted.")

    async def do_language(self) -> str:
        rest = self._rest
        tag = known_language(rest) or next((tag for tag, name in LANGUAGES.items() if name.lower() == rest.lower()), "")
        if not tag:
            offered = ", ".join(f"{tag} ({name})" for tag, name in LANGUAGES.items())
            return t("Send {sign}language de, with one of: {names}", sign=self._sign, names=offered)
        self._hub_api.remember(language_key(self._channel.name, self._chat), tag)
        with reading(Reader(tag)):
            return t("I write English here from now on.")

    async def do_here(self) -> str:
        await self._hub.here()
        return t("Welcome back. While somebody types in a session, AtlasBridge waits a moment before it asks here.")

    async def do_away(self) -> str:
        span_s = parse_span(self._rest) if self._rest else None
        if span_s is None and self._rest:
            return t("Send {sign}away, {sign}away 2h or {sign}here.", sign=self._sign)
        if span_s == 0:
            await self._hub.here()
            return t("No longer away.")
        await self._hub.away(span_s)
        if span_s:
            return t("Away for {span}: everything is asked here at once.", span=render_left(span_s))
        return t("Away until {sign}here: everything is asked here at once.", sign=self._sign)
