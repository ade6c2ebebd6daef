"""Two transports to a hub with one interface: the socket of this machine, and HTTP. `atlasbridge.client` uses it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import quote, urlencode

from atlasbridge.core.daemon.request import HubClient, ensure_hub
from atlasbridge.core.errors import HubUnavailable
from atlasbridge.core.home import Home
from atlasbridge.core.ids import new_id
from atlasbridge.core.operations import Event, HubOperations, Operation
from atlasbridge.core.operations import Prompt as OpenPrompt
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.prompt.question import Handed, Question
from atlasbridge.core.schema import read, write
from atlasbridge.integrations.caller_label import origin_of
from atlasbridge.integrations.http import REQUEST_S, HttpClient, HttpQuestion, Refused
from atlasbridge.integrations.open_question import OpenQuestion

RETRY_S = 0.5
AGAIN = Event("hub.reconnected")
_TRIES = 20

Raw = dict[str, Any]


AnyQuestion = OpenQuestion | HttpQuestion


class SocketTransport:
    """The hub of a home folder on this machine; it is started if needed."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def open_question(self, question: Question, label: str) -> AnyQuestion:
        return OpenQuestion(self._home, origin_of("ask", label, ("python",), os.environ))

    def do(self, operation: Operation[..., Any], given: Mapping[str, Any]) -> Any:
        with self._hub() as hub:
            answer = hub.request(operation.name, **write(given))
        if not answer.get("ok"):
            raise Refused(str(answer.get("reason", "")), str(answer.get("message", "")))
        return read(operation.result, answer["screen"] if operation is HubOperations.screen else answer)

    def reply(self, prompt_id: str, value: str, as_text: bool) -> str:
        return str(self.do(HubOperations.reply, {"prompt_id": prompt_id, "value": value, "as_text": as_text}).message)

    def events(self, session: str) -> Iterator[Event]:
        again = False
        while True:
            try:
                with self._hub() as hub:
                    if again:
                        yield AGAIN
                    yield from map(_event, hub.stream("events", follow=True, session=session))
            except HubUnavailable:
                _pause()
            again = True

    def _hub(self) -> HubClient:
        ensure_hub(self._home)
        return HubClient(self._home)


class HttpTransport:
    """A hub on any machine, by its page's address and a token."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    def open_question(self, question: Question, label: str) -> AnyQuestion:
        return HttpQuestion(self._client, question, origin_of("ask", label, (), os.environ).label)

    def do(self, operation: Operation[..., Any], given: Mapping[str, Any]) -> Any:
        if not operation.path or operation.streams:
            raise Refused("not_here", f"{operation.name} is not asked over HTTP")
        values: Raw = write(given)
        path = operation.path.format(**{name: quote(str(values.pop(name)), safe="") for name in operation.in_path})
        if operation.method == "GET":
            asked = {name: str(value).lower() if isinstance(value, bool) else value for name, value in values.items()}
            found = self._client.request("GET", f"{path}?{urlencode(asked)}" if asked else path)
            flat = {"prompts": list(map(_flat, found["prompts"]))} if operation is HubOperations.prompts else {}
            return read(operation.result, {**found, **flat})
        has_body = len(operation.parameters) > len(operation.in_path)
        return read(operation.result, self._client.request(operation.method, path, values if has_body else None))

    def reply(self, prompt_id: str, value: str, as_text: bool) -> str:
        """With a unique key, so that a retry after a lost connection has no second effect."""
        body = {"value": value, "as_text": as_text, "request_key": new_id()}
        for _ in range(_TRIES):
            try:
                return str(self._client.request("POST", f"/prompts/{prompt_id}/reply", body)["message"])
            except HubUnavailable as error:
                lost = error
                _pause()
        raise lost

    def events(self, session: str) -> Iterator[Event]:
        last_id, again = "", False
        while True:
            try:
                with closing(self._client.connect(REQUEST_S)) as connection:
                    if again:
                        yield AGAIN
                    again = True
                    for event_id, said in self._client.stream(connection, "GET", "/events", last_id=last_id):
                        last_id = event_id or last_id
                        yield from (_event(event) for event in _told(said) if _is_of(event, session))
            except HubUnavailable:
                pass  # it is restarting
            again = True
            _pause()


Transport = SocketTransport | HttpTransport


def _told(said: Raw) -> list[Raw]:
    """The same order as the socket: first the open prompts one by one, then new events."""
    if said["event"] == "hello":
        opened = [_flat(prompt) for prompt in said["prompts"]]
        return [{"event": "prompt.raised", "at": prompt["created_at"], **prompt} for prompt in opened]
    if said["event"] == "prompt.raised" and said.get("prompt"):
        return [{**{name: said[name] for name in ("event", "at")}, **_flat(said["prompt"])}]
    return [said]


def _flat(prompt: Raw) -> Raw:
    session = prompt.get("session") or {}
    return {**prompt, **{name: session.get(name, "") for name in ("tool", "label", "cwd")}}


def _event(told: Raw) -> Event:
    raised = told["event"] == "prompt.raised"
    known = {name: str(told.get(name) or "") for name in ("event", "at", "session_id", "prompt_id")}
    return Event(**known, prompt=read(OpenPrompt, told) if raised else None, fields=told)


def _is_of(event: Raw, session: str) -> bool:
    return str(event.get("session_id", "")).startswith(session)


def _pause() -> None:
    threading.Event().wait(RETRY_S)


# Waits for a question from asyncio: each has its own thread, so that any number can wait at once.


async def ask_async(open_question: AnyQuestion, prompt: Prompt, ttl_s: float | None = None) -> Handed:
    """Like `ask` of the question. Cancelling withdraws the question, and returns after the hub has received that."""
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[Handed] = loop.create_future()

    def wait() -> None:
        try:
            handed = open_question.ask(prompt, ttl_s)
        except BaseException as error:  # raised where the answer is awaited
            loop.call_soon_threadsafe(_settle, answered, None, error)
        else:
            loop.call_soon_threadsafe(_settle, answered, handed, None)

    threading.Thread(target=wait, name="question", daemon=True).start()
    try:
        return await asyncio.shield(answered)
    except asyncio.CancelledError:
        open_question.withdraw()
        await answered
        raise


def _settle(future: asyncio.Future[Handed], handed: Handed | None, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    elif handed is not None:
        future.set_result(handed)
