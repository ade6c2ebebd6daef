"""The API of access (greeting, login and logout, devices, links, tokens, the password, push messages, passkeys), and
the same for this user's commands over the hub's own socket."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import JSONResponse

from atlasbridge.core.audit.passkeys import PasskeyRefused, why_not_here
from atlasbridge.core.operations import HubOperations, Refused
from atlasbridge.core.prompt.model import Reject
from atlasbridge.core.schema import BadValue
from atlasbridge.core.values import as_dict
from atlasbridge.web.access import Device, name_of, proof
from atlasbridge.web.api import HANDLERS, Call, Found, handles, problem, refuse_session
from atlasbridge.web.guard import LOOPBACK, host_name
from atlasbridge.web.prompt_api import asked_prompt, is_over_tls, is_private
from atlasbridge.web.push import refuse_push
from atlasbridge.web.server import UNIX
from atlasbridge.web.site import Site


@handles(HubOperations.hello)
async def hello(site: Site, call: Call) -> Found:
    """Public, because it is cheap and reveals nothing without a key."""
    cookie = call.request.cookies.get(site.access.cookie_name, "")
    given = site.access.greet(call.given.who, cookie, call.given.challenge)
    if given is None:
        return problem(401, "unauthorized", "the hub does not know this link or login, or no longer knows it")
    return {"epoch": site.access.epoch, "proof": given}


@handles(HubOperations.login)
async def login(site: Site, call: Call) -> Found:
    body = call.given
    if (body.link is None) == (body.password is None):
        return problem(422, "bad_value", "give either a link or a password")
    if not is_private(call):
        return problem(403, "not_private", "logging in needs loopback or TLS")
    here = body.link is not None and site.access.is_for_here(body.link)
    if refused := await refuse_session(site, call.request, "login", same_user=here):
        return refused
    agent = name_of(call.request.headers.get("user-agent", ""))
    if body.password is not None:
        return await _by_password(site, call, agent)
    words = (body.link, body.challenge or "", body.epoch or "", body.proof or "")
    entry = site.access.redeem(*words, agent, _own_port(site, call))
    if entry is None:
        return problem(401, "wrong_login", "this link was used already or has expired; a link works once")
    _tell_login(site, call, entry.device)
    answer = proof(entry.key, "hub", body.challenge, site.access.epoch, entry.device.login_id)
    return _entered(site, call, entry.cookie, {**entry.device.to_json(entry.device.login_id), "proof": answer})


async def _by_password(site: Site, call: Call, agent: str) -> Found:
    """Log in with the password, over TLS only: on loopback a link is available, so nobody needs to guess there."""
    peer = call.request.client.host if call.request.client else ""
    if not is_over_tls(call):
        return problem(403, "not_private", "the password works over TLS only; here, use a link: atlasbridge web")
    if wait_s := site.guesses.admit(peer, site.clock.now()):
        return problem(429, "rate_limited", "too many attempts; wait, or use a link", wait_s)
    async with site.stretching:  # one at a time: each needs a large part of a second
        entry = await site.access.enter(call.given.password, agent)
    if entry is None:
        return problem(401, "wrong_login", "this password does not open the page")
    _tell_login(site, call, entry.device)
    return _entered(site, call, entry.cookie, {**entry.device.to_json(entry.device.login_id), "key": entry.key.hex()})


def _tell_login(site: Site, call: Call, device: Device) -> None:
    """Notify all logged-in people about the new login."""
    client = call.request.client.host if call.request.client else ""
    where = "this machine" if client in LOOPBACK or client.startswith(UNIX) else client
    site.hub_api.tell(
        f"{device.name} logged in to the web page (from {where}, scope {device.scope}). "
        f"If that was not you: atlasbridge web remove {device.login_id}"
    )


def _entered(site: Site, call: Call, cookie: str, answer: dict[str, object]) -> Found:
    response = JSONResponse(answer)
    secure = host_name(call.request.headers["host"]) not in LOOPBACK
    age = int(site.settings.login_ttl_s)
    response.set_cookie(
        site.access.cookie_name, cookie, max_age=age, httponly=True, samesite="strict", secure=secure, path="/"
    )
    return response


def _own_port(site: Site, call: Call) -> int:
    """The page's port if the browser connected directly; 0 through a tunnel, a proxy or the LAN."""
    host = call.request.headers["host"]
    return site.access.port if host_name(host) in LOOPBACK and host.endswith(f":{site.access.port}") else 0


@handles(HubOperations.logout)
async def logout(site: Site, call: Call) -> Found:
    ended = site.end_device(call.caller.key, revoked=False)
    response = JSONResponse({"ended": ended})
    response.delete_cookie(site.access.cookie_name, path="/", httponly=True, samesite="strict")
    return response


@handles(HubOperations.me)
async def me(site: Site, call: Call) -> Found:
    device = site.access.devices.get(call.caller.key)
    shown = device.to_json(device.login_id) if device else None
    return {"identity": call.caller.identity, "scope": call.caller.scope, "device": shown}


@handles(HubOperations.rename_me)
async def rename_me(site: Site, call: Call) -> Found:
    """Only an administrator can give a browser the name of another person, because a rule can require two different
    people."""
    if not call.caller.may("admin") and not site.access.devices.may_take(call.caller.key, call.given.name):
        return problem(409, "name_taken", "that name belongs to another person; see: atlasbridge web rename")
    return rename(site, call.caller.key, call.given.name)


@handles(HubOperations.push_key)
async def push_key(site: Site, call: Call) -> Found:
    return {"available": site.push.available(), "public_key": site.push.public_key()}


@handles(HubOperations.subscribe)
async def subscribe(site: Site, call: Call) -> Found:
    known = site.access.devices.get(call.caller.key) is not None
    if refused := refuse_push(site.push, call.given.endpoint, known):
        return refused
    keys = {"p256dh": call.given.keys.p256dh, "auth": call.given.keys.auth}
    site.push.subscribe(call.caller.key, {"endpoint": call.given.endpoint, "keys": keys})
    return {"subscribed": True}


@handles(HubOperations.unsubscribe)
async def unsubscribe(site: Site, call: Call) -> Found:
    return {"removed": site.push.unsubscribe(call.given.endpoint, call.caller.key)}


# The API of passkeys: enrol and remove keys, and the data that an approval must sign.


def best_page(urls: dict[str, str]) -> str:
    """The address for a phone: the first with a host name (proxy, LAN, this machine), or "" if there is none."""
    named = [urls[place] for place in ("proxy", "lan", "local") if place in urls]
    return next((url for url in named if not host_name(url.partition("://")[2]).replace(".", "").isdigit()), "")


def _name(call: Call) -> str:
    return host_name(call.request.headers["host"])


@handles(HubOperations.begin_passkey)
async def begin_passkey(site: Site, call: Call) -> Found:
    await asyncio.to_thread(site.hub_api.passkeys.get_ready)
    return site.hub_api.passkeys.begin(_name(call))


@handles(HubOperations.add_passkey)
async def add_passkey(site: Site, call: Call) -> Found:
    """Neither an API token nor a login alone can enrol a passkey: see `core.audit.passkeys`."""
    if call.caller.token:
        return problem(403, "not_a_browser", "a passkey is enrolled in a browser")
    if wait_s := site.guesses.admit(call.caller.key, site.clock.now()):
        return problem(429, "rate_limited", "too many attempts; wait a minute", wait_s)
    confirm = call.given.confirm and as_dict(call.given.confirm)
    given = {**vars(call.given), "confirm": confirm}
    return site.hub_api.passkeys.add(given, site.origins(), call.caller.identity)


@handles(HubOperations.passkey_challenge)
async def challenge(site: Site, call: Call) -> Found:
    record = asked_prompt(site, call)
    await asyncio.to_thread(site.hub_api.passkeys.get_ready)
    wanted = site.hub_api.passkeys.ask(record, call.given.value, call.given.as_text, _name(call))
    if isinstance(wanted, Reject):
        return Refused(wanted.reason.value, wanted.sentence)
    return wanted


# What the settings of the page and this user's commands (over the hub's own socket) both do: links, devices, tokens,
# the password, passkeys.

_STATUS = "see: atlasbridge hub status"
_KEYS = "list them with: atlasbridge passkey list"
_NO_KEY = "there is no such passkey, or more than one"
_LIST = "list them with: atlasbridge web devices"
Told = dict[str, Any] | Refused
OVER_HTTP = {
    HubOperations.make_link.key: "link",
    HubOperations.rename_device.key: "rename",
    HubOperations.end_device.key: "revoke",
    HubOperations.logout_all.key: "log-out",
    HubOperations.set_password.key: "password",
    HubOperations.list_passkeys.key: "passkeys",
    HubOperations.remove_passkey.key: "passkey-remove",
    HubOperations.list_tokens.key: "tokens",
    HubOperations.revoke_token.key: "token-revoke",
    HubOperations.create_token.key: "token-create",
}


async def _run(site: Site, call: Call) -> Found:
    return PageCommands(site, call.caller.identity).do(OVER_HTTP[call.operation.key], vars(call.given))


HANDLERS.update(dict.fromkeys(OVER_HTTP, _run))


@handles(HubOperations.list_devices)
async def list_devices(site: Site, call: Call) -> Found:
    return {"devices": [device.to_json(call.caller.key) for device in site.access.devices.all()]}


def rename(site: Site, word: str, name: str) -> Told:
    device = site.access.devices.find(word)
    if device is None:
        return Refused("unknown_device", "there is no such device", _LIST)
    renamed = site.access.devices.rename(device.login_id, name)
    return renamed.to_json() if renamed else Refused("name_taken", "another device has that name")


class PageCommands:
    def __init__(self, site: Site, by: str = "cli:local") -> None:
        self._site, self._by = site, by

    async def answer(self, what: str, fields: Mapping[str, Any]) -> Told:
        try:
            return self.do(what, fields)
        except BadValue as error:
            return Refused("bad_value", str(error))
        except PasskeyRefused as error:
            return Refused("passkey_refused", str(error), error.hint)

    def do(self, what: str, fields: Mapping[str, Any]) -> Told:
        access, passkeys = self._site.access, self._site.hub_api.passkeys
        word = next((str(fields[name]) for name in ("which", "login_id", "token_id", "key_id") if name in fields), "")
        match what:
            case "link":
                if not self._site.urls:
                    return Refused("port_taken", "the page is off: another program listens on its port", _STATUS)
                return self._site.new_links(*self._link_terms(fields), bool(fields.get("here")))
            case "devices":
                return {"devices": [device.to_json() for device in access.devices.all()]}
            case "rename":
                return rename(self._site, word, HubOperations.rename_me.read({"name": fields.get("name")})["name"])
            case "revoke":
                device = access.devices.find(word)
                ended = device is not None and self._site.end_device(device.login_id)
                return {"ended": True} if ended else Refused("unknown_device", "there is no such device", _LIST)
            case "log-out":
                return {"ended": self._site.end_all_devices()}
            case "password":
                access.set_password(HubOperations.set_password.read(fields)["password"])
                return {"set": True}
            case "passkey-code":
                return self._passkey_code(fields)
            case "passkey-accept":
                # for a person of the fleet: this machine, not the fleet's server, says which keys approve
                key = {name: str(fields[name]) for name in ("person", "origin", "key", "name")}
                return passkeys.accept(**key, by=self._by)
            case "passkeys":
                return {"passkeys": passkeys.list_all()}
            case "passkey-remove":
                name = passkeys.remove(word, self._by)
                return {"removed": True, "name": name} if name else Refused("unknown_passkey", _NO_KEY, _KEYS)
            case "tokens":
                return {"tokens": [token.to_json() for token in access.tokens()]}
            case "token-revoke":
                return self._revoke_token(word)
            case "token-create":
                return self._create_token(**{"scope": "read", **HubOperations.create_token.read(fields)})
            case _:
                return Refused("unknown_op", f"the page does not know {what!r}", "are both the same version?")

    def _link_terms(self, fields: Mapping[str, Any]) -> tuple[str, str]:
        """The name and the scope of a link."""
        given = {name: value for name, value in fields.items() if name != "here"}
        wanted = {"name": "", "scope": "answer", **HubOperations.make_link.read(given)}
        return wanted["name"], wanted["scope"]

    def _passkey_code(self, fields: Mapping[str, Any]) -> Told:
        """Links that log a browser in and enrol a passkey in one step; only if the page has a host name."""
        self._site.hub_api.passkeys.get_ready()
        made = self._site.new_links(*self._link_terms(fields))
        code = self._site.hub_api.passkeys.make_code()
        links = {
            place: f"{url}&enrol={code}"
            for place, url in made["links"].items()
            if not why_not_here(host_name(urlsplit(url).netloc))
        }
        return {**made, "code": code, "links": links}

    def _revoke_token(self, word: str) -> Told:
        access = self._site.access
        found = [token.token_id for token in access.tokens() if word in (token.token_id, token.name)]
        if not found or not access.revoke_token(found[0]):
            return Refused("unknown_token", "there is no such token")
        self._site.broadcast.cut_all()
        return {"revoked": True}

    def _create_token(self, name: str, scope: str) -> Told:
        access = self._site.access
        if any(token.name == name for token in access.tokens()):
            return Refused("name_taken", "there is a token of that name; revoke it first")
        token, secret = access.create_token(name, scope)
        return {**token.to_json(), "token": secret}
