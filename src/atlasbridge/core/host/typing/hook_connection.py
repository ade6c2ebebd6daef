"""A hook that has announced a dialog and waits for the decision: an answer can be passed to it instead of being typed.

Only answers that a hook certainly understands are passed: allow once, or deny. The typist checks that the dialog is
still the same, as it does for keys. If the hook is gone, the answer is typed.
"""

from __future__ import annotations

import threading
from typing import Any, Protocol

from atlasbridge.core.escape import escape_controls
from atlasbridge.core.prompt.model import (
    Answer,
    AnswerKind,
    Choice,
    Prompt,
    Subject,
    SubjectKind,
    SubjectSource,
    digest_text,
    told_subject,
)

BY_HOOK = "hook"  # the detail of an answer that a hook has taken
ALLOW, DENY = "allow", "deny"
_SOURCES = (SubjectSource.HOOK, SubjectSource.EVENT)
_REASON = 500  # maximum length of a reason
_KINDS = (SubjectKind.COMMAND, SubjectKind.EDIT, SubjectKind.FETCH, SubjectKind.TOOL)


class WaitingHook(Protocol):
    """A connected hook that can receive a message."""

    def say(self, message: dict[str, Any]) -> None: ...
    def tell(self, message: dict[str, Any]) -> bool: ...


class HookConnection:
    """At most one hook, because a tool asks one thing at a time. Used by the host's main thread and by the typist's
    thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._caller: WaitingHook | None = None
        self._about = ""  # the digest of its request

    def offer(self, caller: WaitingHook, message: dict[str, Any]) -> None:
        """A hook has connected. One that does not wait for an answer only replaces the previous one."""
        subject = told_subject(message.get("subject"))
        waits = message.get("answers") is True and subject is not None and subject.complete
        with self._lock:
            self._close()
            if waits and subject is not None:
                self._caller, self._about = caller, _digest(subject)

    def leave(self, caller: WaitingHook) -> None:
        with self._lock:
            if self._caller is caller:
                self._caller = None

    def over(self) -> None:
        """The dialog is gone: the waiting hook is released."""
        with self._lock:
            self._close()

    def word_for(self, prompt: Prompt, answer: Answer) -> str:
        """The decision for the hook; "" if this answer or this prompt must be typed."""
        subject = prompt.subject
        if self._caller is None or subject is None or subject.source not in _SOURCES:
            return ""
        if subject.kind not in _KINDS or _digest(subject) != self._about or answer.kind is not AnswerKind.CHOICE:
            return ""
        chosen = [choice for choice in prompt.choices if choice.value == answer.value]
        once = [choice for choice in prompt.choices if not (choice.refuses or choice.always)]
        if len(chosen) != 1:
            return ""
        return DENY if _only_refuses(chosen[0]) else ALLOW if once == chosen else ""

    def send(self, word: str, reason: str = "") -> bool:
        """Returns False if the hook is gone and nothing was sent. `reason`: why it is denied, for the model."""
        why = {"reason": escape_controls(reason)[:_REASON]} if reason and word == DENY else {}
        with self._lock:
            caller, self._caller = self._caller, None
            return caller is not None and caller.tell({"m": "decide", "behavior": word, **why})

    def _close(self) -> None:
        if self._caller is not None:
            self._caller.say({"m": "over"})
            self._caller = None


def _digest(subject: Subject) -> str:
    """Includes kind and target: the same text for another file or tool is a different request."""
    return digest_text("\0".join((subject.kind.value, subject.target, subject.text)))


def _only_refuses(choice: Choice) -> bool:
    return choice.refuses and not choice.always
