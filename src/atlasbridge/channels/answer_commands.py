"""Commands of a chat that answer, or put an answer off: later, snooze, all.  The gate decides each for itself."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from atlasbridge.channels.commands import Command, parse_span
from atlasbridge.channels.quoting import cut_to, first_line
from atlasbridge.channels.wording import session_name
from atlasbridge.core.ids import short_id
from atlasbridge.core.ports import Desk
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.prompt.reply import InboundReply
from atlasbridge.core.visible import visible

MOST_WORDS = 3  # of a moment: "fri 12:00", "in 2 hours"
MOST_AT_ONCE = 50
LISTED = 12
BEGINNING = 80  # characters of a question in a list


class Speaker(Protocol):
    """The channel: makes a reply as that person would send it, and hands it on."""

    def speak(self, identity: str, prompt_id: str, value: str, token: Any, **fields: Any) -> InboundReply: ...
    def deliver(self, reply: InboundReply) -> None: ...
    def is_alone(self, chat: str, identity: str) -> bool:
        """Whether nobody but that person reads what is said there."""


class AnswerCommands:
    NAMES: ClassVar[tuple[str, ...]] = ("later", "snooze", "all")

    def __init__(self, desk: Desk, sign: str, speaker: Speaker) -> None:
        self._desk, self._sign, self._speaker = desk, sign, speaker

    def run(self, command: Command, identity: str, token: Any) -> str:
        match command.name:
            case "later":
                return self._later(command.rest, identity)
            case "snooze":
                return self._snooze(command.rest, identity)
            case _:
                return self._all(command.rest, identity, token)

    def _later(self, rest: str, identity: str) -> str:
        words = rest.split()
        if not words:
            return self._listed()
        if words[0].lower() == "off":
            reply = self._speaker.speak(identity, "", "", None)
            return self._desk.revoke_later(reply, words[1] if len(words) == 2 else "").sentence
        record = self._desk.prompt(words[0])
        if record is None:
            return f"There is no such prompt. Say {self._sign}later ID 06:00 VALUE; {self._sign}status lists them."
        return self._postpone(record, words[1:], identity)

    def _postpone(self, record: PromptRecord, words: list[str], identity: str) -> str:
        """As many words as a moment can have; the rest is the answer."""
        said = f"Say {self._sign}later {short_id(record.prompt_id)} 06:00 VALUE, or limit-resets for the time."
        for count in range(min(MOST_WORDS, len(words) - 1), 0, -1):
            when, value = " ".join(words[:count]), " ".join(words[count:])
            reply = self._speaker.speak(identity, record.prompt_id, value, None, session_id=record.session_id)
            outcome = self._desk.postpone(reply, when)
            said = outcome.sentence
            if not said.startswith("Say when"):
                return said
        return said

    def _listed(self) -> str:
        kept = self._desk.later()
        if not kept:
            return "Nothing is kept for later."
        lines = [
            f"{item['when']} · {item['name']}: {_what(item)} · {item['by_name']} · {item['later_id'][:8]}"
            for item in kept
        ]
        return visible("\n".join([*lines, f"To take one back: {self._sign}later off ID"]))

    def _snooze(self, rest: str, identity: str) -> str:
        words = rest.split()
        record = self._desk.prompt(words[0]) if words else None
        span_s = parse_span(words[1]) if len(words) == 2 else 900.0
        if record is None or not span_s or len(words) > 2:
            return f"Say {self._sign}snooze ID 15m; {self._sign}status lists what waits."
        reply = self._speaker.speak(identity, record.prompt_id, "", None, session_id=record.session_id)
        return self._desk.snooze(reply, span_s).sentence

    def _all(self, rest: str, identity: str, token: Any) -> str:
        """Only what is named is answered; alone it says what there is to name."""
        value, *ids = rest.split() or [""]
        if not ids or len(ids) > MOST_AT_ONCE:
            return self._nameable(value)
        records = [self._desk.prompt(one) for one in ids]
        missing = [one for one, record in zip(ids, records, strict=True) if record is None]
        if missing or len({record.prompt_id for record in records if record}) != len(ids):
            return f"Nothing was answered: {missing[0] if missing else 'one of them'} is unknown, or named twice."
        for record in records:
            if record is not None:
                fields = {"session_id": record.session_id, "nonce": record.nonce}
                self._speaker.deliver(self._speaker.speak(identity, record.prompt_id, value, token, **fields))
        return f"Answering {len(ids)} with {visible(value, keep_lines=False)}, each for itself."

    def _nameable(self, value: str) -> str:
        waiting = [record for record in self._desk.open_prompts() if not (record.prompt.secret or record.prompt.idle)]
        if not waiting:
            return "Nothing waits that could be answered together."
        lines = [f"{short_id(one.prompt_id)} · {self._name(one)}: “{_begin(one)}”" for one in waiting]
        ids = " ".join(short_id(one.prompt_id) for one in waiting[:LISTED])  # no more than are shown here
        more = [f"… and {len(lines) - LISTED} more"] if len(lines) > LISTED else []
        return "\n".join([*lines[:LISTED], *more, f"To answer these: {self._sign}all {value or 'VALUE'} {ids}"])

    def _name(self, record: PromptRecord) -> str:
        session = self._desk.session(record.session_id)
        return session_name(session) if session else "?"


def _begin(record: PromptRecord) -> str:
    return cut_to(first_line(record.prompt), BEGINNING, len)


def _what(item: dict[str, Any]) -> str:
    return "ask again" if item["kind"] == "snooze" else f"answer “{item['value']}”"
