"""One question over HTTP: asked until it is decided, however often the connection or the hub goes.

The question's id is ours, so asking again is the same question, and its answer is one.
"""

from __future__ import annotations

import http.client
import threading
from typing import Any

from atlasbridge.core.errors import HubUnavailable
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.model import Answer, Prompt
from atlasbridge.core.prompt.question import Handed, Question
from atlasbridge.doors.http_line import REQUEST_S, HttpLine, Refused, wake

RETRY_S = 0.25
BUSY = (429, 503)


class HttpDoor:
    """As `Door`: `ask` blocks, `withdraw` may be called from another thread or a signal handler."""

    def __init__(self, line: HttpLine, question: Question, label: str) -> None:
        self._line = line
        self._question = question
        self._label = label
        self._id = new_id()
        self._left = threading.Event()
        self._connection: http.client.HTTPConnection | None = None

    def withdraw(self) -> None:
        self._left.set()
        connection = self._connection
        if connection is not None:
            wake(connection)

    def ask(self, prompt: Prompt, ttl_s: float | None = None) -> Handed:
        asked = False
        while not self._left.is_set():
            try:
                handed = self._listen(ttl_s)
                if handed is not None:
                    return handed
                asked = True
            except HubUnavailable:
                if not asked and self._connection is None:
                    raise  # nobody was there to begin with
                asked = True
            except Refused as refused:
                if not asked or refused.status not in BUSY:
                    raise
            self._left.wait(RETRY_S)
        self._say_withdrawn()
        return Handed("withdrawn")

    def _listen(self, ttl_s: float | None) -> Handed | None:
        """Until it is decided; None: ask again."""
        connection = self._line.connect(REQUEST_S)
        self._connection = connection
        try:
            for said in self._line.stream(connection, "POST", "/questions", self._body(ttl_s)):
                match said.data.get("outcome"):
                    case None:
                        continue
                    case "lost":
                        self._id = new_id()  # a secret that only a dead hub knew
                        return None
                    case "answered":
                        answer = Answer.from_json(said.data["answer"])
                        return Handed("answered", answer, str(said.data.get("by", "")))
                    case outcome:
                        return Handed(str(outcome))
            return None
        finally:
            connection.close()

    def _body(self, ttl_s: float | None) -> dict[str, Any]:
        asked = self._question
        return {
            "question_id": self._id,
            "question": asked.text,
            "choices": list(asked.choices),
            "text": asked.takes_text,
            "secret": asked.secret,
            "default": asked.default,
            "ttl_s": ttl_s,
            "label": self._label[:120],
            "folder": asked.folder,
            "kind": asked.kind.value,
            "about": asked.about,
            "target": asked.target,
        }

    def _say_withdrawn(self) -> None:
        try:
            self._line.request("DELETE", f"/questions/{self._id}")
        except (HubUnavailable, Refused):
            pass  # no hub, or it was never asked; whoever does not come back has withdrawn
