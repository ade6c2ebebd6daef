"""Questions that arrive over HTTP. To the rest of the hub, each of them looks like a session host on the socket.

The asker chooses the question's id and can reconnect with it as often as needed. Only that asker receives the answer. A
question whose asker stays away is withdrawn.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final

from atlasbridge.core.clock import iso
from atlasbridge.core.daemon.parts import REMOTE_HOST, HubParts, QuestionLink
from atlasbridge.core.daemon.sessions import SessionLife
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.codec import encode_prompt
from atlasbridge.core.prompt.model import Answer, Prompt, PromptRecord, PromptState
from atlasbridge.core.prompt.question import RemoteQuestion, prompt_of, refuses, words_of
from atlasbridge.core.session.model import SessionRecord, SessionState

KEPT: Final = 256  # stored outcomes for askers that reconnect; a secret answer exists only here
_OUTCOMES: Final = {"expired": "expired", "canceled": "withdrawn", "failed": "withdrawn"}

Told = dict[str, Any]


class RemoteQuestions:
    def __init__(self, hub: HubParts, sessions: SessionLife) -> None:
        self._hub = hub
        self._sessions = sessions
        self._outcomes: dict[str, Told] = {}

    def owner(self, session_id: str) -> str:
        """The identity that asked this over HTTP; "" if nobody did."""
        session = self._hub.ledger.session(session_id)
        if session is None or session.host_pid != REMOTE_HOST or len(session.command) != 1:
            return ""
        return session.command[0]

    def is_foreign(self, session_id: str, identity: str) -> bool:
        """Whether this id belongs to another asker's question, or to something that is not a question."""
        return self._hub.ledger.session(session_id) is not None and self.owner(session_id) != identity

    async def ask(self, asked: RemoteQuestion) -> AsyncGenerator[Told, None]:
        """Yields "raised" first and the outcome last. It ends without an outcome if another connection asks the same
        question again, or if the hub stops."""
        prompt = prompt_of(asked.question)
        while True:
            known = self._fate(asked.session_id, prompt)
            if known is not None:
                yield known
                return
            link = QuestionLink(asked.session_id)
            prompt_id = self._open_id(asked.session_id)
            self._sessions.hello(link, self._hello(asked, prompt, prompt_id))
            try:
                while (message := await link.told.get()) is not None:
                    if message["m"] == "renew":
                        break  # a secret answer was lost with its hub: ask again
                    told = self._hear(link, prompt_id, prompt, message)
                    if told is not None:
                        yield told
                    if told is not None and "outcome" in told:
                        return
                else:
                    return
            finally:
                self._sessions.lost(link)

    def withdraw(self, session_id: str) -> bool:
        """The asker withdraws the question. Returns False if it is already over."""
        session = self._hub.ledger.session(session_id)
        if session is None or session.state is not SessionState.ACTIVE:
            return False
        link = self._hub.hosts.get(session_id) or QuestionLink(session_id)
        for record in self._hub.ledger.open_prompts(session_id):
            self._sessions.handle(link, {"m": "withdraw", "prompt_id": record.prompt_id, "reason": "caller_left"})
        self._sessions.end(session_id, 0, SessionState.COMPLETED)
        link.send("closed", prompt_id="", outcome="withdrawn")
        return True

    def _hello(self, asked: RemoteQuestion, prompt: Prompt, prompt_id: str) -> dict[str, Any]:
        session = SessionRecord(
            session_id=asked.session_id,
            tool="ask",
            command=(asked.identity,),
            cwd=escape_controls(asked.question.folder, keep_lines=False),
            pid=0,
            host_pid=REMOTE_HOST,
            started_at=iso(self._hub.clock.wall()),
            label=escape_controls(asked.label or asked.identity, keep_lines=False),
            open_prompt=prompt_id,
        )
        shown = {"prompt_id": prompt_id, "prompt": encode_prompt(prompt)}
        return {"m": "hello", "session": session.to_wire(), "open": shown, "ttl_s": asked.ttl_s, "integration": "http"}

    def _open_id(self, session_id: str) -> str:
        """The id of the prompt that is open, or whose answer is not delivered yet; otherwise a new id."""
        last = self._hub.ledger.last_prompt(session_id)
        ended = (PromptState.WITHDRAWN, PromptState.FAILED)
        return new_id() if last is None or last.state in ended else last.prompt_id

    def _hear(self, link: QuestionLink, prompt_id: str, prompt: Prompt, message: dict[str, Any]) -> Told | None:
        match message["m"]:
            case "welcome":
                return {"event": "raised", "prompt_id": prompt_id}
            case "type" if message["prompt_id"] == prompt_id:
                told = answered(prompt, Answer.from_json(message["answer"]), str(message.get("by", "")))
                self._keep(link.session_id, told)
                self._end(link, prompt_id, taken=True)
                return told
            case "closed":
                told = over(_OUTCOMES.get(str(message.get("outcome")), "withdrawn"))
            case "kill":
                told = over("withdrawn")
            case _:
                return None
        self._keep(link.session_id, told)
        self._end(link, prompt_id, taken=False)
        return told

    def _end(self, link: QuestionLink, prompt_id: str, taken: bool) -> None:
        """Ends the session once the asker has the outcome; the same id returns it again."""
        if taken:
            self._sessions.handle(link, {"m": "typed", "prompt_id": prompt_id, "outcome": "typed", "detail": ""})
            self._sessions.handle(link, {"m": "effect", "prompt_id": prompt_id, "outcome": "taken"})
        self._sessions.handle(link, {"m": "end", "exit_code": 0, "status": 0})

    def _keep(self, session_id: str, told: Told) -> None:
        while len(self._outcomes) >= KEPT:
            del self._outcomes[next(iter(self._outcomes))]
        self._outcomes[session_id] = told

    def _fate(self, session_id: str, prompt: Prompt) -> Told | None:
        """The outcome of a finished question; None if it is not finished or was never asked."""
        if session_id in self._outcomes:
            return self._outcomes[session_id]
        session = self._hub.ledger.session(session_id)
        last = self._hub.ledger.last_prompt(session_id)
        if session is None or (session.state is SessionState.ACTIVE and not self._was_handed(last)):
            return None
        if last is None:
            return over("withdrawn")
        self._finish(session, last)
        return self._past(last, prompt)

    def _was_handed(self, last: PromptRecord | None) -> bool:
        """Whether its answer was being delivered to the asker when the hub died."""
        given = self._hub.ledger.reply(last.prompt_id) if last is not None else None
        return given is not None and bool(given.injected_at)

    def _finish(self, session: SessionRecord, last: PromptRecord) -> None:
        """Writes the records that a hub which died could not write."""
        link = QuestionLink(session.session_id)
        if last.state is PromptState.INJECTED:
            self._sessions.handle(link, {"m": "effect", "prompt_id": last.prompt_id, "outcome": "taken"})
        if session.state is SessionState.ACTIVE:
            self._sessions.handle(link, {"m": "end", "exit_code": 0, "status": 0})

    def _past(self, last: PromptRecord, prompt: Prompt) -> Told:
        """The outcome from the store. The store has no secret values, so a secret must be asked again."""
        given = self._hub.ledger.reply(last.prompt_id)
        if given is None or not given.injected_at:
            return over("expired" if last.state is PromptState.EXPIRED else "withdrawn")
        return over("lost") if given.answer is None else answered(prompt, given.answer, given.identity)


def answered(prompt: Prompt, answer: Answer, by: str) -> Told:
    words = {"answer": answer.to_json(), "words": words_of(prompt, answer), "refused": refuses(prompt, answer)}
    return {"event": "answered", "outcome": "answered", **words, "by": by}


def over(outcome: str) -> Told:
    return {"event": outcome, "outcome": outcome}
