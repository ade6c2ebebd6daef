"""A small client for programs: ask people, tell them something, see what is open, answer it, follow what happens.

`Client` blocks, `AsyncClient` does not; both speak to the hub of this home over its socket and start it where needed,
or with `url` and `token` to a hub anywhere.  What a program may not do by itself (answer from inside a session, or what
it asked itself) is refused by the hub, here as everywhere.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from ssl import SSLContext
from typing import Any

from atlasbridge.core.errors import AtlasBridgeError, ConfigError
from atlasbridge.core.home import Home
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.prompt.question import Handed, Question, prompt_of, refuses, words_of
from atlasbridge.core.values import frozen
from atlasbridge.integrations.http import HttpClient, Refused
from atlasbridge.integrations.transport import AnyQuestion, HttpTransport, Line, SocketTransport, ask_async

__all__ = ["Answered", "AsyncClient", "AtlasBridgeError", "Client", "Question", "Refused"]


@frozen
class Answered:
    """`outcome` is "answered", "expired" or "withdrawn"; it is true only where a person answered and did not refuse."""

    outcome: str
    words: str = ""
    refused: bool = False
    by: str = ""

    def __bool__(self) -> bool:
        return self.outcome == "answered" and not self.refused


class Client:
    """The hub of `home` (as the environment says) over its socket; or the one at `url` with a `token` of the scope
    that is needed: "ask" to ask and tell, "answer" to answer.  `tls`: how its certificate is checked."""

    def __init__(
        self,
        home: str | Path | None = None,
        label: str = "",
        *,
        url: str = "",
        token: str = "",
        tls: SSLContext | None = None,
    ) -> None:
        if url and home:
            raise ConfigError("a hub is at a home or at an address, not both")
        self._label = label
        self._line: Line
        if url:
            self._line = HttpTransport(HttpClient(url, token, tls))
        else:
            self._line = SocketTransport(Home(Path(home).absolute()) if home else Home.find(os.environ))

    def ask(
        self,
        question: str,
        *,
        choices: Sequence[str] = (),
        text: bool = False,
        secret: bool = False,
        ttl_s: float | None = None,
        default: str = "",
        about: Question | None = None,
        leave: threading.Event | None = None,
    ) -> Answered:
        """Ask a person and wait.  `about` is a whole question of your own making; setting `leave` withdraws it."""
        prompt, open_question = self.open_question_of(
            about or Question(question, tuple(choices), text, secret, default, os.getcwd())
        )
        done = threading.Event()
        if leave is not None:
            threading.Thread(target=_withdraw_when, args=(leave, done, open_question), daemon=True).start()
        try:
            return _answered(prompt, open_question.ask(prompt, ttl_s))
        finally:
            done.set()

    def open_question_of(self, question: Question) -> tuple[Prompt, AnyQuestion]:
        """A question ready to be asked, for callers that wait in their own way."""
        return prompt_of(question), self._line.open_question(question, self._label)

    def notify(self, message: str) -> None:
        self._line.notify(message, self._label)

    def prompts(self) -> list[dict[str, Any]]:
        """What is open, each as `prompt.raised` of `atlasbridge events` shows it."""
        return self._line.prompts()

    def reply(self, prompt_id: str, value: str, *, text: bool = False) -> str:
        """Returns the hub's sentence once it is typed; raises `Refused`."""
        return self._line.reply(prompt_id, value, text)

    def events(self, session: str = "") -> Iterator[dict[str, Any]]:
        """What is open, then everything that happens.  After a restart of the hub `hub.reconnected` comes first, and
        what is open is told again."""
        return self._line.events(session)


class AsyncClient:
    """The same for asyncio; cancelling `ask` withdraws its question."""

    def __init__(
        self,
        home: str | Path | None = None,
        label: str = "",
        *,
        url: str = "",
        token: str = "",
        tls: SSLContext | None = None,
    ) -> None:
        self._client = Client(home, label, url=url, token=token, tls=tls)

    async def ask(
        self,
        question: str,
        *,
        choices: Sequence[str] = (),
        text: bool = False,
        secret: bool = False,
        ttl_s: float | None = None,
        default: str = "",
        about: Question | None = None,
    ) -> Answered:
        asked = about or Question(question, tuple(choices), text, secret, default, os.getcwd())
        prompt, open_question = self._client.open_question_of(asked)
        return _answered(prompt, await ask_async(open_question, prompt, ttl_s))

    async def notify(self, message: str) -> None:
        await asyncio.to_thread(self._client.notify, message)

    async def prompts(self) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self._client.prompts)

    async def reply(self, prompt_id: str, value: str, *, text: bool = False) -> str:
        return await asyncio.to_thread(self._client.reply, prompt_id, value, text=text)

    async def events(self, session: str = "") -> AsyncIterator[dict[str, Any]]:
        """As `Client.events`; a thread of its own follows the hub until the loop over it ends."""
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any]]()
        ended = threading.Event()

        def follow() -> None:
            for event in self._client.events(session):
                if ended.is_set():
                    return
                loop.call_soon_threadsafe(queue.put_nowait, event)

        threading.Thread(target=follow, name="events", daemon=True).start()
        try:
            while True:
                yield await queue.get()
        finally:
            ended.set()


def _answered(prompt: Prompt, handed: Handed) -> Answered:
    if handed.answer is None:
        return Answered(handed.outcome)
    return Answered("answered", words_of(prompt, handed.answer), refuses(prompt, handed.answer), handed.by)


def _withdraw_when(leave: threading.Event, done: threading.Event, open_question: AnyQuestion) -> None:
    while not done.wait(0.05):
        if leave.is_set():
            open_question.withdraw()
            return
