"""What the page asks, as JSON: who am I, which prompts wait, what became of an answer, what a session shows.

Every answer is made from rows that this person may see; what they may not see does not exist for them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from atlasbridge import __version__
from atlasbridge.fleet.server import decisions, notices, people, screens
from atlasbridge.fleet.server.auth import COOKIE, browser_of, place_of, with_cookie
from atlasbridge.fleet.server.context import ServerContext
from atlasbridge.fleet.server.decisions import Decision, Proposal
from atlasbridge.fleet.server.lists import list_history, list_machines, list_prompts
from atlasbridge.fleet.server.machines import Refused
from atlasbridge.fleet.server.people import Caller
from atlasbridge.fleet.server.wakeups import BOARD

LONGEST_BODY = 16_384
WAIT_S = 20.0
CALM_S = 1.0  # the first change is told at once, those that follow at most so often: a page reads its list anew
KEEP_ALIVE_S = 15.0
LOGIN_S = 5.0  # as often a stream of changes asks whether its login still holds

Endpoint = Callable[[Request], Awaitable[Response]]
STATUS = {"unknown_prompt": 404, "not_allowed": 403, "secret": 403, "not_open": 409, "bad_request": 400}


def refuse(status: int, reason: str, message: str) -> Response:
    """`error`: as a hub's API calls the reason."""
    return JSONResponse({"ok": False, "reason": reason, "error": reason, "message": message}, status)


class PageApi:
    def __init__(self, context: ServerContext, shell: str = "") -> None:
        self._context = context
        self._shell = shell  # names the page's files as they are in this version

    def known(self, work: Callable[[Request, Caller], Awaitable[Response]]) -> Endpoint:
        """Only for who is logged in."""

        async def endpoint(request: Request) -> Response:
            caller = await browser_of(self._context, request)
            if caller is None:
                return refuse(401, "login", "Log in with a link from: atlasbridge fleet people link NAME")
            return await work(request, caller)

        return endpoint

    async def login(self, request: Request) -> Response:
        given = await _body(request)
        traded = await people.trade_link(self._context.database, str(given.get("token", "")), place_of(request))
        if traded is None:
            self._context.metrics.refused_logins.inc()
            return refuse(403, "login", "This link was used, or is too old.")
        token, person = traded
        answer = JSONResponse({"ok": True, "person": person})
        return with_cookie(answer, token, self._context.url.startswith("https:"))

    async def logout(self, request: Request, caller: Caller) -> Response:
        await people.end_login(self._context.database, caller.login_id, caller.name)
        answer = JSONResponse({"ok": True})
        answer.delete_cookie(COOKIE, path="/")
        return answer

    async def me(self, request: Request, caller: Caller) -> Response:
        told = {"person": caller.name, "role": caller.role, "version": __version__, "shell": self._shell}
        return JSONResponse({"ok": True, **told})

    async def prompts(self, request: Request, caller: Caller) -> Response:
        found = await list_prompts(self._context.database, caller.name, dict(request.query_params))
        return JSONResponse({"ok": True, **found})

    async def history(self, request: Request, caller: Caller) -> Response:
        found = await list_history(self._context.database, caller.name, dict(request.query_params))
        return JSONResponse({"ok": True, "decisions": found})

    async def machines(self, request: Request, caller: Caller) -> Response:
        return JSONResponse({"ok": True, "machines": await list_machines(self._context.database, caller.name)})

    async def decide(self, request: Request, caller: Caller) -> Response:
        given = await _body(request)
        wish = Proposal(
            str(given.get("machine", "")),
            str(given.get("prompt", "")),
            caller.name,
            str(given.get("value", "")),
            bool(given.get("as_text")),
            place_of(request),
            str(given.get("key", ""))[:100],
        )
        found = await decisions.propose(self._context.database, wish)
        if isinstance(found, Refused):
            return refuse(STATUS.get(found.reason, 400), found.reason, found.sentence)
        return _outcome(await self._context.pass_on(found, caller.name, WAIT_S))

    async def decision(self, request: Request, caller: Caller) -> Response:
        found = await decisions.find(self._context.database, request.path_params["id"], caller.name)
        return refuse(404, "unknown", "There is no such decision of yours.") if found is None else _outcome(found)

    async def outcome(self, request: Request, caller: Caller) -> Response:
        """What became of a request whose answer was lost, by its key."""
        key = request.query_params.get("key", "")[:100]
        found = await decisions.find_by_key(self._context.database, caller.name, key)
        if found is None:
            return JSONResponse({"ok": True, "arrived": False, "message": "Your answer did not arrive."})
        return _outcome(found)

    async def notices(self, request: Request, caller: Caller) -> Response:
        return JSONResponse({"ok": True, "notices": await notices.newest(self._context.database, caller.name)})

    async def events(self, request: Request, caller: Caller) -> Response:
        return changes(self._context, caller)

    async def screen(self, request: Request, caller: Caller) -> Response:
        machine, session = request.query_params.get("machine", ""), request.query_params.get("session", "")
        if not await screens.look(self._context.database, machine, session, caller.name, first=True):
            return refuse(403, "not_allowed", "This screen may not be looked at.")
        self._context.wakeups.tell(f"job:{machine}")
        return StreamingResponse(self._frames(machine, session, caller), media_type="text/event-stream")

    async def _frames(self, machine: str, session: str, caller: Caller) -> AsyncIterator[str]:
        database = self._context.database
        try:
            with self._context.wakeups.waiting(f"screen:{machine}:{session}") as called:
                while await screens.look(database, machine, session, caller.name, first=False):
                    if not await people.is_logged_in(database, caller):
                        return
                    called.clear()
                    yield f"data: {json.dumps(await screens.shown(database, machine, session))}\n\n"
                    try:
                        async with asyncio.timeout(screens.LOOK_S / 2):
                            await called.wait()
                    except TimeoutError:
                        pass  # nothing changed: say again that somebody looks
        finally:
            await screens.look_away(database, machine, session, caller.name)
            self._context.wakeups.tell(f"job:{machine}")


def changes(context: ServerContext, caller: Caller) -> Response:
    """A stream that says when something has changed, for as long as the login is valid."""
    return StreamingResponse(_changes(context, caller), media_type="text/event-stream")


async def _changes(context: ServerContext, caller: Caller) -> AsyncIterator[str]:
    context.pages += 1
    clock = asyncio.get_running_loop().time
    looked = clock()
    try:
        with context.wakeups.waiting(BOARD) as called:
            while True:
                called.clear()
                if clock() - looked > LOGIN_S:
                    if not await people.is_logged_in(context.database, caller):
                        return
                    looked = clock()
                yield "event: changed\ndata: {}\n\n"
                await asyncio.sleep(CALM_S)
                try:
                    async with asyncio.timeout(KEEP_ALIVE_S):
                        await called.wait()
                except TimeoutError:
                    yield ": still here\n\n"
    finally:
        context.pages -= 1


async def _body(request: Request) -> dict[str, Any]:
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > LONGEST_BODY:
            return {}
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _outcome(decision: Decision) -> Response:
    told = {
        "ok": True,
        "arrived": True,
        "decision": decision.decision_id,
        "settled": decision.settled,
        "accepted": decision.ok,
    }
    sentence = decision.sentence or "The machine has not said anything yet; this page will say what becomes of it."
    return JSONResponse({**told, "stage": decision.stage, "message": sentence}, 200 if decision.settled else 202)
