"""Typed without an answer of ours: what a host says that it typed, compared with what this home's hubs have decided.

A host tells each hub what it typed and on the word of which process.  Keys on the word of a process that was never a
hub here, and answers to prompts that nobody decided, are an alarm: audited, told in every channel, shown by `status`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property
from typing import Any, Final

from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.clock import iso
from atlasbridge.core.daemon.parts import HubParts
from atlasbridge.core.ids import short_id
from atlasbridge.core.values import frozen

_MOST_HUBS: Final = 1000
_MOST_KEPT: Final = 100
RECENT_S: Final = 86_400.0
_KINDS: Final = ("answer", "keys")


@frozen
class TypedWord:
    kind: str  # "answer" or "keys"
    prompt_id: str
    hub: tuple[int, int]  # process and start of the one on whose word it was typed
    age_s: float


def read_words(told: Any) -> list[TypedWord]:
    """What cannot be read says nothing: a host of an older version has none."""
    words = []
    for item in told if isinstance(told, list) else ():
        match item:
            case [str(kind), str(prompt_id), int(pid), int(started), int() | float() as age_s] if kind in _KINDS:
                words.append(TypedWord(kind, prompt_id, (pid, started), float(age_s)))
    return words


def find_unasked(
    words: list[TypedWord], hubs: Collection[tuple[int, int]], is_decided: Callable[[str], bool], kept_s: float
) -> list[TypedWord]:
    """Those that nothing explains.  Where the system does not tell processes apart, decisions alone are compared; a
    decision that is older than what the store keeps cannot be."""

    def explained(word: TypedWord) -> bool:
        by_hub = 0 in word.hub or word.hub in hubs
        return by_hub and (word.kind == "keys" or word.age_s > kept_s or is_decided(word.prompt_id))

    return [word for word in words if not explained(word)]


class UnaskedTyping:
    def __init__(self, hub: HubParts, kept_s: Callable[[], float]) -> None:
        self._hub = hub
        self._kept_s = kept_s

    def compare(self, session_id: str, told: Any) -> None:
        words = read_words(told)
        if not words:
            return
        found = find_unasked(
            words, self._hubs, lambda prompt_id: self._is_decided(session_id, prompt_id), self._kept_s()
        )
        for word in found:
            if not any(entry.items() >= _described(session_id, word).items() for entry in self._found):
                self._alarm(session_id, word)

    def recent(self) -> list[dict[str, Any]]:
        """Of the last day, for `status` and `doctor`."""
        oldest = iso(self._hub.clock.wall() - RECENT_S)
        return [entry for entry in self._found if str(entry.get("ts", "")) >= oldest]

    @cached_property
    def _found(self) -> list[dict[str, Any]]:
        return self._hub.ledger.audit_entries(event=AuditEvent.TYPED_UNASKED, newest=True, limit=_MOST_KEPT)

    @cached_property
    def _hubs(self) -> set[tuple[int, int]]:
        """Of this home, up to this one: as long as it runs there is no other."""
        started = self._hub.ledger.audit_entries(event=AuditEvent.HUB_START, newest=True, limit=_MOST_HUBS)
        return {(int(entry.get("pid", 0)), int(entry.get("started", 0))) for entry in started}

    def _is_decided(self, session_id: str, prompt_id: str) -> bool:
        record = self._hub.ledger.prompt(prompt_id)
        if record is None or record.session_id != session_id:
            return False
        return bool(record.decided_by) or self._hub.ledger.reply(prompt_id) is not None

    def _alarm(self, session_id: str, word: TypedWord) -> None:
        described = _described(session_id, word)
        self._hub.ledger.note(AuditEvent.TYPED_UNASKED, **described)
        self._found.append({**described, "ts": iso(self._hub.clock.wall())})
        sentence = self._sentence(session_id, word)
        self._hub.stream.publish("typed.unasked", session_id=session_id, sentence=sentence)
        self._hub.router.notify(sentence)  # everywhere, whatever the session itself chose

    def _sentence(self, session_id: str, word: TypedWord) -> str:
        session = self._hub.ledger.session(session_id)
        name = f"{session.label or session.tool} ({short_id(session_id)})" if session else short_id(session_id)
        what = "an answer" if word.kind == "answer" else "keys"
        return (
            f"ALARM: session {name} was sent {what} on the word of process {word.hub[0]}, and no decision of this hub "
            "explains it. Look at what the session did, and end it if you did not do that."
        )


def _described(session_id: str, word: TypedWord) -> dict[str, Any]:
    pid, started = word.hub
    return {"session_id": session_id, "kind": word.kind, "prompt": word.prompt_id, "pid": pid, "started": started}
