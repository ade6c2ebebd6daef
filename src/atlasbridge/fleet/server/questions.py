"""Questions that programs ask the fleet's people through the server itself (MCP over HTTP).

The server process becomes an ephemeral machine, so its questions are normal prompts with the same permissions. If
the process dies, its machine becomes silent and is removed, and its questions end without an answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from atlasbridge.core.clock import iso
from atlasbridge.core.daemon.receipts import describe_raised
from atlasbridge.core.daemon.remote_questions import answered, over
from atlasbridge.core.errors import StoreError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.answer import decide_answer, label_answer
from atlasbridge.core.prompt.codec import encode_keys
from atlasbridge.core.prompt.model import Answer, PromptRecord, PromptState, Refusal, Reject
from atlasbridge.core.prompt.question import RemoteQuestion, prompt_of
from atlasbridge.core.session.model import SessionRecord, SessionState
from atlasbridge.core.values import mutable, replace
from atlasbridge.fleet.server import decisions, reports
from atlasbridge.fleet.server.api import caller_of
from atlasbridge.fleet.server.audit import note
from atlasbridge.fleet.server.context import ServerContext
from atlasbridge.fleet.server.database import BOARD, called_within
from atlasbridge.fleet.server.machines import Entered
from atlasbridge.web import mcp_api
from atlasbridge.web.access import Caller
from atlasbridge.web.api import problem
from atlasbridge.web.guard import Readers

BEAT_S = 20.0  # how often a process with open questions reports that it is alive
TTL_S = 600.0
MOST_READERS = 200
_OWN = Reject(Refusal.SELF, "A program cannot answer its own question.")


@mutable
class _Asked:
    record: PromptRecord
    session: SessionRecord
    token: str  # the name of the token that asked
    told: dict[str, Any] | None = None


class FleetQuestions:
    """Implements `core.ports.QuestionService` for a fleet server, and the host that MCP over HTTP needs
    (`web.mcp_api.McpHost`).
    """

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._database = context.database
        self._entered: Entered | None = None
        self._seq = 0
        self._open: dict[str, _Asked] = {}
        self._entering, self._deciding = asyncio.Lock(), asyncio.Lock()
        self.readers = Readers(MOST_READERS)
        self.cut = asyncio.Event()  # never set: a server that stops closes its connections

    def routes(self) -> list[Route]:
        return [Route(mcp_api.PATH, mcp_api.McpEndpoint(self).serve, methods=mcp_api.METHODS)]

    @property
    def questions(self) -> FleetQuestions:
        return self

    async def caller_of(self, request: Request) -> Caller | Response:
        found = await caller_of(self._context, request)
        if found is None:
            return problem(401, "unauthorized", "Show a token with the scope ask.")
        scope = "ask" if found.may("ask") else "read"
        return Caller(f"server:{found.name}/{found.device}", scope, found.login_id, token=found.is_program)

    async def label(self, request: Request, label: str) -> str:
        return label

    async def tell(self, message: str) -> None:
        await reports.take_notice(self._database, await self._enter(), message)
        self._context.wakeups.tell(BOARD)

    # the ephemeral machine

    async def _enter(self) -> Entered:
        async with self._entering:
            known = await self._database.rows(
                "UPDATE machines SET seen_at = %s WHERE id = %s AND gone_at IS NULL RETURNING id",
                self._database.now(),
                self._entered.machine_id if self._entered else "",
            )
            if known and self._entered:
                return self._entered
            machine_id, now = new_id(), self._database.now()
            name = f"questions-{machine_id[:8]}"
            async with self._database.transaction() as connection:
                await connection.execute(
                    "INSERT INTO machines (id, name, public_key, ephemeral, joined_at, seen_at, generation, screens)"
                    " VALUES (%s, %s, %s, true, %s, %s, 1, false)",
                    (machine_id, name, f"none:{machine_id}", now, now),  # no link can prove to have this key
                )
                await note(connection, now, "JOINED", machine=machine_id, name=name, key="", invited_by="server")
            self._entered = Entered(machine_id, name, 1, 0)
            return self._entered

    async def _show(self, entered: Entered, asked: _Asked, ttl_s: float = 0.0) -> None:
        """Store the current state of the question and its session."""
        self._seq += 2
        seq, session = self._seq, asked.session
        body = {**session.to_json(), "state": session.state.value}
        prompt = {**describe_raised(asked.record, session), "keys": encode_keys(asked.record.prompt)}
        items = [
            {"kind": "session", "id": session.session_id, "seq": seq - 1, "body": body},
            {"kind": "prompt", "id": asked.record.prompt_id, "seq": seq, "body": prompt, "ttl_s": ttl_s},
        ]
        await reports.take(self._database, entered, {"seq": seq, "items": items})
        self._context.wakeups.tell(BOARD)

    # asking

    async def ask(self, asked: RemoteQuestion) -> AsyncGenerator[dict[str, Any], None]:
        entered, clock = await self._enter(), self._database.clock
        ttl_s = asked.ttl_s or TTL_S
        now, until = clock.wall(), clock.now() + ttl_s
        label = escape_controls(asked.label or asked.identity, keep_lines=False)
        session = SessionRecord(asked.session_id, "ask", (asked.identity,), asked.question.folder, 0, 0, iso(now))
        record = PromptRecord(
            new_id(),
            asked.session_id,
            prompt_of(asked.question),
            PromptState.AWAITING_REPLY,
            "",
            iso(now),
            iso(now + ttl_s),
            until,
        )
        here = _Asked(record, replace(session, label=label), asked.identity.removeprefix("server:"))
        self._open[record.prompt_id] = here
        try:
            await self._show(entered, here, ttl_s)
            yield {"event": "raised", "prompt_id": record.prompt_id}
            yield await self._wait(entered, here, until)
        finally:
            del self._open[record.prompt_id]
            if here.told is None:
                await self._end(entered, here, PromptState.WITHDRAWN)

    async def _wait(self, entered: Entered, asked: _Asked, until: float) -> dict[str, Any]:
        clock = self._database.clock
        with self._context.wakeups.waiting(f"machine:{entered.machine_id}") as called:
            while True:
                called.clear()
                await self._take_decisions(entered)
                if asked.told is not None:
                    return asked.told
                if clock.now() >= until:
                    asked.told = over("expired")
                    await self._end(entered, asked, PromptState.EXPIRED)
                    return asked.told
                patience_s = min(BEAT_S, max(0.05, until - clock.now()))
                if not await called_within(called, patience_s) and await self._enter() != entered:
                    raise StoreError("the question is gone", "the server was away for too long: ask again")

    async def _end(self, entered: Entered, asked: _Asked, state: PromptState, **more: str) -> None:
        asked.record = replace(asked.record, state=state, **more)
        asked.session = replace(asked.session, state=SessionState.COMPLETED)
        await self._show(entered, asked)

    async def _take_decisions(self, entered: Entered) -> None:
        """Settle all new decisions, also those for other waiting questions, whose tasks are then woken."""
        async with self._deciding:
            for one in await decisions.release(self._database, entered.machine_id, ()):
                if one["goes"]:
                    await self._settle(entered, one)

    async def _settle(self, entered: Entered, made: dict[str, Any]) -> None:
        asked = self._open.get(made["prompt_id"])
        judged = self._judge(asked, made)
        said: dict[str, Any] = {"id": made["id"], "ok": isinstance(judged, Answer), "stage": "typed"}
        if isinstance(judged, Reject):
            said |= {"reason": judged.reason.value, "sentence": judged.sentence}
        else:
            said["sentence"] = "The program that asked has received it."
        await decisions.settle(self._database, entered, said)
        if isinstance(judged, Answer) and asked is not None:
            by, prompt = f"server:{made['person']}", asked.record.prompt
            asked.told = answered(prompt, judged, by)
            names = {"decided_by": by, "decided_value": label_answer(prompt, judged), "decided_from": made["place"]}
            moment = iso(self._database.clock.wall())
            await self._end(entered, asked, PromptState.RESOLVED, **names, decided_at=moment)
        self._context.wakeups.tell(f"decision:{made['id']}", f"machine:{entered.machine_id}", BOARD)

    def _judge(self, asked: _Asked | None, made: dict[str, Any]) -> Answer | Reject:
        if asked is None or asked.told is not None:
            return Reject(Refusal.NOT_OPEN, "This prompt is no longer open.")
        person, _, token = asked.token.partition("/")
        if (made["person"], made["place"]) == (person, f"the API, {token}"):
            return _OWN
        return decide_answer(asked.record.prompt, made["value"], as_text=made["as_text"])

    # the rest of core.ports.QuestionService

    def withdraw(self, session_id: str) -> bool:
        """Nothing to do: a question ends with the stream that asked it."""
        return False

    def owner(self, session_id: str) -> str:
        return ""

    def is_foreign(self, session_id: str, identity: str) -> bool:
        return True
