"""The fleet's operations over HTTP (`/api/v1`), for programs with a token and for the administration page.

Each method has the name of its operation. The scope of the caller's token is checked first; the queries in PostgreSQL
check what the person is allowed to see and do.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial
from html import escape
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from atlasbridge import __version__
from atlasbridge.channels.language import current_language, hub_says, t
from atlasbridge.core import operations as hub
from atlasbridge.core.audit.passkeys import PasskeyRefused, load_library
from atlasbridge.core.clock import iso
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.fleet_wire import encode_invitation
from atlasbridge.core.operations import NO_PROMPT, Operation, Refused
from atlasbridge.core.policy.reader import read_policy
from atlasbridge.core.routing.shell_parser import ShellParser
from atlasbridge.core.schema import write
from atlasbridge.core.values import as_dict
from atlasbridge.fleet.server import audit, decisions, lists, machines, passkeys, people, reports
from atlasbridge.fleet.server import operations as table
from atlasbridge.fleet.server.context import ServerContext
from atlasbridge.fleet.server.database import BOARD, called_within
from atlasbridge.fleet.server.decisions import Proposal
from atlasbridge.fleet.server.lists import read_asked, read_session
from atlasbridge.fleet.server.operations import OFFERED
from atlasbridge.fleet.server.people import SCOPES, Caller, who
from atlasbridge.web.access import name_of
from atlasbridge.web.api import PREFIX, problem, read_allowed, refuse, refused_passkey, render_openapi, routes_of
from atlasbridge.web.guard import Readers
from atlasbridge.web.push import refuse_push
from atlasbridge.web.stream import encode_event, event_stream
from atlasbridge.web.view import diff_screen, render_plain, render_prompt, render_screen, render_session

MOST_READERS = 200
WAIT_S = 20.0
CALM_S = 1.0  # shortest pause between two change events, because a page loads its whole list for each
KEEP_ALIVE_S = 15.0
LOGIN_S = 5.0  # how often an event stream checks that its login is still valid
NOBODY = Caller("", "", "", scope="read")
NOT_YET = "The machine has not answered yet; ask for the outcome later."
_IN_A_BROWSER = Refused("not_a_browser", "a passkey is enrolled in a browser")
_NO_SESSION = Refused("unknown_session", "There is no such session.")


Json = dict[str, Any]
NOBODY_CALLED = ("unknown_person", "There is no person named {name}.")
# Operations that change rows and do nothing else, with the refusal where there was nothing to change.
CHANGES: dict[str, tuple[Callable[..., Awaitable[Any]], str, str]] = {
    "add_person": (people.add, "", ""),
    "remove_person": (people.remove, *NOBODY_CALLED),
    "join_team": (partial(people.set_team, member=True), "", ""),
    "leave_team": (partial(people.set_team, member=False), "", ""),
    "allow": (people.allow, "", ""),
    "deny": (people.deny, "unknown_right", "{holder} does not have this right."),
    "revoke_invitation": (machines.revoke_invitation, "unknown_invitation", "There is no such invitation."),
    "accept_restore": (machines.accept_restore, "not_held", "{machine} is not waiting for this."),
}


class DatedResponse(JSONResponse):
    """JSON in which a moment of the database is written as in ISO 8601."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, default=datetime.isoformat).encode()


class FleetApi:
    """Serves the operations. `shell` is the digest of the page's files, so that a page notices a new version."""

    def __init__(self, context: ServerContext, shell: str = "") -> None:
        self._context = context
        self._shell = shell
        self._database = context.database
        self._readers = Readers(MOST_READERS)
        self._parse = ShellParser()
        self._document = render_openapi(OFFERED, "AtlasBridge fleet server")

    def routes(self) -> list[Route]:
        return [Route(f"{PREFIX}/openapi.json", self._openapi), *routes_of(PREFIX, OFFERED, self._perform)]

    async def _openapi(self, request: Request) -> Response:
        return JSONResponse(self._document)

    async def _perform(self, operation: Operation[..., Any], request: Request) -> Response:
        caller = await caller_of(self._context, request) if operation.scope else NOBODY
        if caller is None:
            if request.headers.get("authorization"):
                self._context.metrics.refused_logins.inc()
                await audit.note_stranger(self._database, "LOGIN_REFUSED", place=place_of(request), token=True)
            return problem(
                401,
                "unauthorized",
                "This token is not valid, or has expired. Send a valid one, or log in on the page.",
            )
        given = await read_allowed(caller, self._readers, operation, request)
        if isinstance(given, Response):
            return given
        if request.method == "HEAD" and operation.streams:
            return Response(media_type="text/event-stream")
        try:
            own = getattr(self, operation.key, None)
            found = await (own(caller, given, request) if own else self._change(operation, caller, given))
        except PasskeyRefused as error:
            found = refused_passkey(error)
        except ConfigError as error:  # a mistake of the caller, such as an unknown name
            return problem(
                409, "refused", f"{hub_says(str(error))} ({hub_says(error.hint)})" if error.hint else str(error)
            )
        if isinstance(found, Response):
            return found
        if isinstance(found, Refused):
            return refuse(found)
        return DatedResponse(render_plain(operation.write(found, "http")))

    async def _change(self, operation: Operation[..., Any], caller: Caller, given: SimpleNamespace) -> Json | Refused:
        """An operation of `CHANGES`."""
        change, reason, sentence = CHANGES[operation.key]
        done = await change(self._database, **vars(given), by=caller.name)
        return {"changed": True} if done or not reason else Refused(reason, sentence.format(**vars(given)))

    # prompts, sessions and answers

    async def prompts(self, caller: Caller, given: SimpleNamespace, request: Request) -> Response:
        found = await lists.find_prompts(self._database, caller.name, vars(given))
        shown = [self._shown(one) for one in found["prompts"]]
        told = {"prompts": shown, "total": found["total"], "now": iso(self._database.clock.wall())}
        return DatedResponse(told)  # `_shown` has escaped every text; a second time would cost as much again

    async def prompt(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json | Refused:
        found = await lists.find_prompt(self._database, caller.name, *split_id(given.prompt_id))
        return self._shown(found) if found else NO_PROMPT

    async def reply(self, caller: Caller, given: SimpleNamespace, request: Request) -> Any:
        machine, prompt = split_id(given.prompt_id)
        now = await self._now(caller, given.prompt_id) if given.session_id else None
        if now is not None and now["session_id"] != given.session_id:
            return Refused("wrong_session", "That prompt belongs to another session.")
        place = f"the API, {caller.device}" if caller.is_program else place_of(request)
        key = given.request_key
        signed = None if given.passkey is None else as_dict(given.passkey)
        wish = Proposal(machine, prompt, caller.name, given.value, given.as_text, place, key, signed)
        made = await decisions.propose(self._database, wish)
        if isinstance(made, Refused):
            return made
        decided = await self._context.pass_on(made, caller.name, WAIT_S)
        if decided.settled and not decided.ok:
            return problem(409, decided.stage, decided.sentence)
        stage, sentence = (decided.stage, decided.sentence) if decided.settled else ("received", NOT_YET)
        told = {"stage": stage, "message": hub_says(sentence), "prompt_id": given.prompt_id, "audit_head": ""}
        return {**told, "prompt": await self._now(caller, given.prompt_id)}

    async def passkey_challenge(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json | Refused:
        found = await lists.find_prompt(self._database, caller.name, *split_id(given.prompt_id))
        if found is None:
            return NO_PROMPT
        origin = self._origin(request)
        return await passkeys.ask(self._database, caller.name, found, given.value, given.as_text, origin)

    async def outcome(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json | Refused:
        now = await self._now(caller, given.prompt_id)
        if now is None:
            return NO_PROMPT
        found = (
            await decisions.find_by_key(self._database, caller.name, given.request_key) if given.request_key else None
        )
        refused = found is not None and found.settled and not found.ok
        sentence = "" if found is None else found.sentence or NOT_YET
        told = {"arrived": found is not None, "refused": refused, "message": hub_says(sentence)}
        return {**told, "audit_head": "", "prompt": now}

    async def _now(self, caller: Caller, prompt_id: str) -> dict[str, Any] | None:
        found = await lists.find_prompt(self._database, caller.name, *split_id(prompt_id))
        return self._shown(found) if found else None

    def _shown(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The prompt in the format that a hub uses. The id also contains the machine."""
        asked = read_asked(row, "", self._database.clock, self._context.url)
        session = read_session({**row, "body": row["session"] or {}, "state": row["session_state"] or "ended"})
        shown = render_prompt(asked.record, session)
        session_id = f"{row['machine_id']}.{row['session_id']}"
        shown |= {"prompt_id": f"{row['machine_id']}.{row['prompt_id']}", "session_id": session_id}
        shown["session"] |= render_plain({"session_id": session_id, "machine": row["machine"]})
        here = {name: row[name] for name in ("may_answer", "connected", "screens")}
        here["deciding"] = row["deciding"] or ""  # the person whose answer the machine has not confirmed yet
        here |= {"agreed": list(asked.agreed), "names": {}, "later": [], "answer": None}
        return {**shown, **render_plain(here)}

    async def sessions(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json:
        machine, session = split_id(given.session_id) if given.session_id else ("", "")
        found = await lists.list_sessions(self._database, caller.name, given.all, machine, session)
        shown = [_session(one) for one in found]
        return {"sessions": [one for one in shown if given.name in ("", one["label"])]}

    async def session(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json | Refused:
        found = await lists.list_sessions(self._database, caller.name, True, *split_id(given.session_id))
        return _session(found[0]) if found else _NO_SESSION

    async def screen_stream(self, caller: Caller, given: SimpleNamespace, request: Request) -> Response | Refused:
        machine, session = split_id(given.session_id)
        if not await reports.look(self._database, machine, session, caller.name, first=True):
            return Refused("not_allowed", "You are not allowed to view this screen.")
        self._context.wakeups.tell(f"job:{machine}")
        return event_stream(self._frames(machine, session, caller))

    async def _frames(self, machine: str, session: str, caller: Caller) -> AsyncIterator[bytes]:
        before: dict[str, Any] | None = None
        try:
            with self._context.wakeups.waiting(f"screen:{machine}:{session}") as called:
                while await reports.look(self._database, machine, session, caller.name, first=False):
                    if not await people.is_logged_in(self._database, caller):
                        return
                    called.clear()
                    frame = await reports.shown_screen(self._database, machine, session)
                    now = render_screen(frame) if isinstance(frame, dict) else None
                    yield encode_event({"event": "screen", **diff_screen(before, now)}) if now else b": nothing yet\n\n"
                    before = now
                    await called_within(called, reports.LOOK_S / 2)  # then renew the record that this person watches
        finally:
            await reports.look_away(self._database, machine, session, caller.name)
            self._context.wakeups.tell(f"job:{machine}")

    async def event_stream(self, caller: Caller, given: SimpleNamespace, request: Request) -> Response:
        return event_stream(self._changes(caller))

    async def _changes(self, caller: Caller) -> AsyncIterator[bytes]:
        """Send an event when something has changed, for as long as the login is valid."""
        self._context.pages += 1
        clock = asyncio.get_running_loop().time
        looked = clock()
        changed = f"event: changed\ndata: {json.dumps({'shell': self._shell, 'version': __version__})}\n\n".encode()
        try:
            with self._context.wakeups.waiting(BOARD) as called:
                while True:
                    called.clear()
                    if clock() - looked > LOGIN_S:
                        if not await people.is_logged_in(self._database, caller):
                            return
                        looked = clock()
                    yield changed
                    await asyncio.sleep(CALM_S)
                    if not await called_within(called, KEEP_ALIVE_S):
                        yield b": still here\n\n"
        finally:
            self._context.pages -= 1

    async def decisions(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json:
        page = (given.limit, given.person, given.before, given.before_id)
        return {"decisions": await lists.list_history(self._database, caller.name, *page)}

    async def notices(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json:
        return {"notices": await reports.newest_notices(self._database, caller.name)}

    # the caller

    async def health(self, caller: Caller, given: SimpleNamespace, request: Request) -> hub.Health:
        return hub.Health("ok", __version__)

    async def login(self, caller: Caller, given: SimpleNamespace, request: Request) -> Response:
        traded = await people.trade_link(self._database, given.link or "", place_of(request))
        entered = await people.who(self._database, traded) if traded else None
        if traded is None or entered is None:
            self._context.metrics.refused_logins.inc()
            return problem(403, "unauthorized", "This link was used already, or has expired.")
        answer = JSONResponse(write(await self._device(entered), "http"))
        return with_cookie(answer, traded, self._context.url.startswith("https:"))

    async def logout(self, caller: Caller, given: SimpleNamespace, request: Request) -> Response:
        ended = await people.end_login(self._database, caller.login_id, caller.name, kinds=("browser",))
        answer = JSONResponse({"ended": ended})
        answer.delete_cookie(COOKIE, path="/")
        return answer

    async def me(self, caller: Caller, given: SimpleNamespace, request: Request) -> hub.Me:
        return hub.Me(f"server:{caller.name}", _scope(caller), await self._device(caller))

    async def _device(self, caller: Caller) -> hub.Device | None:
        for one in await people.logins(self._database, caller.name):
            if one["id"] == caller.login_id:
                made, seen, until = one["made_at"], one["seen_at"] or one["made_at"], one["expires_at"]
                times = (made.isoformat(), seen.isoformat(), until.isoformat())
                return hub.Device(one["id"], one["name"], _scope(caller), *times, True)
        return None

    async def logins(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json:
        names = {"id": "login_id", "person": "person", "name": "name", "made_at": "made_at", "seen_at": "seen_at"}
        names["expires_at"] = "until"
        found = await people.logins(self._database, _of(caller), ("browser",))
        told = [{name: one[own] for own, name in names.items()} for one in found]
        return {"logins": [{**one, "this": one["login_id"] == caller.login_id} for one in told]}

    async def end_login(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json | Refused:
        ended = await people.end_login(self._database, given.login_id, caller.name, _of(caller), ("browser",))
        return {"changed": True} if ended else Refused("unknown_login", "There is no such login.")

    async def push_key(self, caller: Caller, given: SimpleNamespace, request: Request) -> hub.Push:
        return hub.Push(self._context.push.available(), await self._context.push.public_key())

    async def subscribe(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json | Refused:
        if refused := refuse_push(self._context.push, given.endpoint, not caller.is_program):
            return refused
        keys = {"p256dh": given.keys.p256dh, "auth": given.keys.auth}
        await self._context.push.subscribe(caller, given.endpoint, keys)
        return {"subscribed": True}

    async def unsubscribe(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json:
        return {"removed": await self._context.push.unsubscribe(caller, given.endpoint)}

    async def list_passkeys(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json:
        return {"passkeys": await passkeys.listing(self._database, caller.name)}

    async def begin_passkey(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json | Refused:
        if caller.is_program:
            return _IN_A_BROWSER
        await asyncio.to_thread(load_library)
        return await passkeys.begin(self._database, caller.name, self._origin(request))

    async def add_passkey(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json | Refused:
        if caller.is_program:
            return _IN_A_BROWSER
        return await passkeys.add(self._database, caller.name, vars(given), self._origin(request))

    async def remove_passkey(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json | Refused:
        gone = await passkeys.remove(self._database, caller.name, given.key_id)
        return {"removed": True} if gone else Refused("unknown_passkey", "there is no such passkey")

    def _origin(self, request: Request) -> str:
        """The page's address, as the browser knows it. The host name has been checked."""
        return f"{urlsplit(self._context.url).scheme}://{request.headers['host'].lower()}"

    async def list_tokens(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json:
        found = await people.logins(self._database, _of(caller), ("token",))
        return {"tokens": [_token(one, caller) for one in found]}

    async def create_token(self, caller: Caller, given: SimpleNamespace, request: Request) -> hub.NewToken | Refused:
        if not caller.may(given.scope):
            return Refused("not_allowed", f"Your token cannot have the scope {given.scope}.")
        secret, token_id = await people.add_token(self._database, caller.name, given.name, given.scope, caller.name)
        return hub.NewToken(secret, token_id, given.name, given.scope, iso(self._database.clock.wall()))

    async def revoke_token(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json | Refused:
        ended = await people.end_login(self._database, given.token_id, caller.name, _of(caller), ("token",))
        return {"revoked": True} if ended else Refused("unknown_token", "There is no such token.")

    # machines

    async def machines(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json:
        return {"machines": await lists.list_machines(self._database, caller.name)}

    async def revoke_machine(
        self, caller: Caller, given: SimpleNamespace, request: Request
    ) -> dict[str, Any] | Refused:
        gone = await machines.remove(self._database, given.machine, caller.name, "revoked")
        if gone is None:
            return _no_machine(given.machine)
        self._context.wakeups.tell(f"job:{gone}")
        return {"changed": True}

    async def allow_screens(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json | Refused:
        changed = await machines.allow_screens(self._database, given.machine, given.allowed)
        return {"changed": True} if changed else _no_machine(given.machine)

    async def invitations(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json:
        return {"invitations": await machines.invitations(self._database)}

    async def invite(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json:
        terms = {"name": given.name, "ephemeral": given.ephemeral, "ttl_s": given.minutes * 60, "uses": given.uses}
        token = await machines.invite(self._database, caller.name, **terms)
        return {"address": encode_invitation(self._context.url, token, self._context.identity.public_key)}

    # people

    async def people(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json:
        return {"people": await people.listing(self._database)}

    async def make_link(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json | Refused:
        if given.name not in {one["name"] for one in await people.listing(self._database)}:
            return Refused(NOBODY_CALLED[0], NOBODY_CALLED[1].format(name=given.name))
        return {"url": f"{self._context.url}/#login={await people.login_link(self._database, given.name)}"}

    # rules and the log

    async def team_rules(self, caller: Caller, given: SimpleNamespace, request: Request) -> table.TeamRules:
        return await machines.newest_rules(self._database) or table.TeamRules("", "", "")

    async def set_team_rules(self, caller: Caller, given: SimpleNamespace, request: Request) -> table.TeamRules:
        read_policy(given.text, self._parse, where="the rules", home="/")  # raises an error if the rules are invalid
        digest = await machines.set_rules(self._database, given.text, caller.name)
        self._context.wakeups.tell(*(f"job:{one['id']}" for one in await machines.listing(self._database)))
        return table.TeamRules(digest, given.text, caller.name)

    async def audit(self, caller: Caller, given: SimpleNamespace, request: Request) -> Json:
        return {"entries": await audit.page(self._database, given.limit, given.before)}


def split_id(text: str) -> tuple[str, str]:
    machine, _, own = text.partition(".")
    return machine, own


def _scope(caller: Caller) -> str:
    return next(one for one in reversed(SCOPES) if caller.may(one))


def _of(caller: Caller) -> str:
    """The person whose logins and tokens the caller is allowed to manage; "" means everybody."""
    return "" if caller.may("admin") else caller.name


def _session(row: Mapping[str, Any]) -> dict[str, Any]:
    found = render_session(read_session(row))
    return {**found, "session_id": f"{row['machine_id']}.{row['session_id']}", "machine": row["machine"]}


def _token(row: Mapping[str, Any], caller: Caller) -> hub.Token:
    name = row["name"] if row["person"] == caller.name else f"{row['person']}/{row['name']}"
    return hub.Token(row["id"], name, row["scope"], row["made_at"].isoformat())


def _no_machine(name: str) -> Refused:
    return Refused("unknown_machine", f"There is no machine {name!r}.")


# The caller of a request: a browser with a login cookie or a program with a token.

COOKIE = "atlasbridge_server"


async def browser_of(context: ServerContext, request: Request) -> Caller | None:
    token = request.cookies.get(COOKIE, "")
    found = await who(context.database, token) if token else None
    return None if found is None or found.is_program else found


async def caller_of(context: ServerContext, request: Request) -> Caller | None:
    """The browser or program that sent the request. A program's scope is checked by the calling code."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if not scheme:
        return await browser_of(context, request)
    found = await who(context.database, given) if scheme.lower() == "bearer" and given else None
    return found if found is not None and found.is_program else None


def place_of(request: Request) -> str:
    """A short description of the device, taken from its User-Agent header."""
    return f"the server, {name_of(request.headers.get('user-agent', ''))}"


def with_cookie(response: Response, token: str, secure: bool) -> Response:
    response.set_cookie(COOKIE, token, max_age=30 * 86_400, httponly=True, samesite="strict", secure=secure, path="/")
    return response


def login_page(message: str, label: str, status: int = 200) -> Response:
    """The login page. It uses no script, because it also reports errors."""
    way = f'<p><a href="/login/oidc">{escape(t("Log in with {name}", name=label))}</a></p>' if label else ""
    body = f"""<!doctype html><html lang="{current_language()}"><head><meta charset="utf-8">
<title>AtlasBridge fleet</title><meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/base.css"></head><body><main><h1>Fleet</h1>
<p role="status">{escape(hub_says(message))}</p>{way}<p><a href="/">{t("To the page")}</a></p></main></body></html>"""
    return HTMLResponse(body, status)
