"""A small client for programs: every operation of the table is a method, with typed parameters and results.

`Client` blocks, `AsyncClient` does not. Both connect to the hub of this home over its socket and start it if needed, or
with `url` and `token` to a hub on any machine. `ask`, `reply`, `prompts` and `events` do more than the operation of
that name: they wait, follow, and reconnect after a restart of the hub. The hub refuses what a program is not allowed to
do (answer from inside a session, or its own question); a refusal is raised as `Refused`.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from ssl import SSLContext
from typing import Any, Self, TypeVar

from atlasbridge.core.errors import AtlasBridgeError, ConfigError
from atlasbridge.core.home import Home
from atlasbridge.core.operations import Awaiting, Blocking, Event, HubOperations, Operation, Session
from atlasbridge.core.operations import Prompt as OpenPrompt
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.prompt.question import Handed, Question, prompt_of, refuses, words_of
from atlasbridge.core.values import frozen
from atlasbridge.integrations.http import HttpClient, Refused
from atlasbridge.integrations.transport import AnyQuestion, HttpTransport, SocketTransport, Transport, ask_async

__all__ = [
    "Answered",
    "AsyncClient",
    "AtlasBridgeError",
    "Client",
    "Event",
    "OpenPrompt",
    "Question",
    "Refused",
    "Session",
]
R = TypeVar("R")


@frozen
class Answered:
    """`outcome` is "answered", "expired" or "withdrawn". It is true only if a person answered and did not refuse."""

    outcome: str
    words: str = ""
    refused: bool = False
    by: str = ""

    def __bool__(self) -> bool:
        return self.outcome == "answered" and not self.refused


class Client(Blocking, HubOperations):
    """The hub of `home` (from the environment) over its socket; or the hub at `url` with a `token` of the necessary
    scope: "ask" to ask and notify, "answer" to answer. `tls` is how its certificate is checked."""

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
        self._transport: Transport
        if url:
            self._transport = HttpTransport(HttpClient(url, token, tls))
        else:
            self._transport = SocketTransport(Home(Path(home).absolute()) if home else Home.find(os.environ))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Each request has its own connection, so nothing is left open."""

    def do(self, operation: Operation[..., R], given: Mapping[str, Any]) -> R:
        """Run an operation; every method of an operation calls it."""
        found: R = self._transport.do(operation, given)
        return found

    def ask(  # type: ignore[override]  # waits for the answer
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
        """Ask a person and wait. `about` is a complete question of your own; setting `leave` withdraws it."""
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
        """A question ready to be asked, for callers with their own way to wait."""
        return prompt_of(question), self._transport.open_question(question, self._label)

    def notify(self, message: str) -> None:  # type: ignore[override]  # under this client's own label
        self.do(HubOperations.notify, {"message": message, "label": self._label})

    def prompts(self) -> list[OpenPrompt]:  # type: ignore[override]  # the list itself
        """The open prompts."""
        return list(self.do(HubOperations.prompts, {}).prompts)

    def reply(self, prompt_id: str, value: str, *, text: bool = False) -> str:  # type: ignore[override]  # sent again when the answer is lost
        """Return the hub's sentence after the answer was typed; raises `Refused`."""
        return self._transport.reply(prompt_id, value, text)

    def events(self, session: str = "") -> Iterator[Event]:  # type: ignore[override]  # follows
        """The open prompts, then all events. After a restart of the hub, `hub.reconnected` comes first, and then the
        open prompts again."""
        return self._transport.events(session)


class AsyncClient(Awaiting, HubOperations):
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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """As `Client`."""

    async def do(self, operation: Operation[..., R], given: Mapping[str, Any]) -> R:
        return await asyncio.to_thread(self._client.do, operation, given)

    async def ask(  # type: ignore[override]
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

    async def notify(self, message: str) -> None:  # type: ignore[override]
        await asyncio.to_thread(self._client.notify, message)

    async def prompts(self) -> list[OpenPrompt]:  # type: ignore[override]
        return await asyncio.to_thread(self._client.prompts)

    async def reply(self, prompt_id: str, value: str, *, text: bool = False) -> str:  # type: ignore[override]
        return await asyncio.to_thread(self._client.reply, prompt_id, value, text=text)

    async def events(self, session: str = "") -> AsyncIterator[Event]:  # type: ignore[override]
        """As `Client.events`; a separate thread follows the hub until the loop over it ends."""
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[Event]()
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
