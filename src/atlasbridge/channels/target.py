"""Decides which prompt a text without a reference means: the prompt that its writer had seen, or a question back.

A text that was written before a question never answers it. The gate decides whether a reply is accepted.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from atlasbridge.channels.language import hub_says, t
from atlasbridge.channels.listening import active
from atlasbridge.channels.message_index import Shown
from atlasbridge.core.ids import short_id
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.gate import fate
from atlasbridge.core.prompt.model import OPEN, PromptRecord

NOTHING_OPEN = "Nothing is waiting for an answer."
WORKING = "Nothing is waiting for an answer. To have words typed when the tool is done, say {sign}queue TEXT."
NOT_OPEN = "That prompt is no longer open."
WHICH = "Which one do you mean? Tap it, or reply to its message."
RESTARTED = "AtlasBridge restarted while this came in. Which one do you mean? Tap it, or reply to its message."
GONE = "I no longer have those words. Send them again, as a reply to the question itself."
KEPT_TEXTS = 200
MOST_OFFERED = 20


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why the prompt is unclear, and which prompts to offer."""

    sentence: str
    offered: tuple[PromptRecord, ...] = ()

    def told(self, sign: str, threads: bool = False) -> str:
        """The sentence for the reader, with the chat's own sign of commands; with `threads`, people reply in one."""
        said = self.sentence.replace("reply to its message", "reply in its thread") if threads else self.sentence
        return hub_says(t(said, sign=sign))


def find_target(
    hub_api: HubApi, shown: Shown, chat: str, written_at: float, chosen: str, again: bool = False
) -> PromptRecord | Doubt:
    """`chosen` is the session that the person switched to. `again`: an earlier process received this text already."""
    only = chosen if any(session.session_id == chosen for session in active(hub_api.sessions())) else ""
    standing = shown.standing(chat, written_at)
    records = [record for one in standing.prompts if (record := hub_api.prompt(one)) is not None]
    meant = _of(records, only)
    if len(meant) == 1 and standing.certain and not again:
        return meant[0] if meant[0].state in OPEN else Doubt(f"{NOT_OPEN} {fate(meant[0])}")
    return offer(hub_api, shown, chat, only, RESTARTED if again else WHICH)


def offer(hub_api: HubApi, shown: Shown, chat: str, only: str = "", sentence: str = WHICH) -> Doubt:
    """Ask back, offering the open prompts that this chat shows."""
    open_prompts = hub_api.open_prompts()
    here = [r for r in open_prompts if any(place[0] == chat for place in shown.places(r.prompt_id))]
    secret = [r for r in open_prompts if r.prompt.secret and (r in here or shown.is_everybodys(r))]
    told = tuple(record for record in _of(here, only) or here if not record.prompt.secret)[:MOST_OFFERED]
    if told:
        return Doubt(sentence, told)
    if secret:
        return Doubt(refuse_secret(secret[0]))
    return Doubt(WORKING if active(hub_api.sessions()) and not open_prompts else NOTHING_OPEN)


def refuse_secret(record: PromptRecord) -> str:
    said = "Secrets are never taken in a chat. Delete your message, then answer at the terminal or with: {command}"
    return t(said, command=f"atlasbridge reply {short_id(record.prompt_id)} -")


def _of(records: Iterable[PromptRecord], session_id: str) -> list[PromptRecord]:
    return [record for record in records if session_id in ("", record.session_id)]


class Held:
    """Texts that wait until the person chooses their prompt. They are kept in memory only."""

    def __init__(self) -> None:
        self._texts: OrderedDict[tuple[str, str], str] = OrderedDict()

    def keep(self, chat: str, message: str, text: str) -> None:
        self._texts[chat, message] = text
        while len(self._texts) > KEPT_TEXTS:
            self._texts.popitem(last=False)

    def take(self, chat: str, message: str) -> str | None:
        return self._texts.pop((chat, message), None)
