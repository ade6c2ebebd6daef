"""The API of access: greeting, login and logout, devices, links, tokens, the password, push subscriptions."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from atlasbridge.core.operations import HubOperations
from atlasbridge.web.access import Device, name_of, proof
from atlasbridge.web.api import Call, handles, problem, refuse, refuse_session
from atlasbridge.web.guard import LOOPBACK, host_name
from atlasbridge.web.prompt_api import is_private
from atlasbridge.web.push import refuse_push
from atlasbridge.web.server import UNIX
from atlasbridge.web.site import Site

NO_DEVICE = (404, "unknown_device", "there is no such device")


@handles(HubOperations.hello)
async def hello(site: Site, call: Call) -> Response:
    """Public, because it is cheap and reveals nothing without a key."""
    cookie = call.request.cookies.get(site.access.cookie_name, "")
    given = site.access.greet(call.given.who, cookie, call.given.challenge)
    if given is None:
        return problem(401, "unauthorized", "this link or login is not known here (any more)")
    return JSONResponse({"epoch": site.access.epoch, "proof": given})


@handles(HubOperations.login)
async def login(site: Site, call: Call) -> Response:
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
        return problem(401, "wrong_login", "this link does not open the page (any more); a link works once")
    _tell_login(site, call, entry.device)
    answer = proof(entry.key, "hub", body.challenge, site.access.epoch, entry.device.login_id)
    return _entered(site, call, entry.cookie, {**entry.device.to_json(entry.device.login_id), "proof": answer})


async def _by_password(site: Site, call: Call, agent: str) -> Response:
    """Log in with the password, over TLS only: on loopback a link is available, so nobody needs to guess there."""
    peer = call.request.client.host if call.request.client else ""
    if not _over_tls(call):
        return problem(403, "not_private", "the password is taken over TLS only; here, take a link: atlasbridge web")
    if wait_s := site.guesses.admit(peer, site.clock.now()):
        return problem(429, "rate_limited", "too many attempts; wait, or take a link", wait_s)
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


def _entered(site: Site, call: Call, cookie: str, answer: dict[str, object]) -> Response:
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


def _over_tls(call: Call) -> bool:
    request = call.request
    proxied = request.headers.get("x-forwarded-proto", "") == "https"
    return request.url.scheme == "https" or (proxied and request.client is not None and request.client.host in LOOPBACK)


@handles(HubOperations.logout)
async def logout(site: Site, call: Call) -> Response:
    ended = site.end_device(call.caller.key, revoked=False)
    response = JSONResponse({"ended": ended})
    response.delete_cookie(site.access.cookie_name, path="/", httponly=True, samesite="strict")
    return response


@handles(HubOperations.logout_all)
async def logout_all(site: Site, call: Call) -> Response:
    return JSONResponse({"ended": site.end_all_devices()})


@handles(HubOperations.me)
async def me(site: Site, call: Call) -> Response:
    device = site.access.devices.get(call.caller.key)
    shown = device.to_json(device.login_id) if device else None
    return JSONResponse({"identity": call.caller.identity, "scope": call.caller.scope, "device": shown})


@handles(HubOperations.rename_me)
async def rename_me(site: Site, call: Call) -> Response:
    """Only an administrator can give a browser the name of another person, because a rule can require two different
    people."""
    if not call.caller.may("admin") and not site.access.devices.may_take(call.caller.key, call.given.name):
        return problem(409, "name_taken", "by that name another person would speak; see: atlasbridge web rename")
    return _rename(site, call.caller.key, call.given.name)


@handles(HubOperations.list_devices)
async def list_devices(site: Site, call: Call) -> Response:
    return JSONResponse({"devices": [device.to_json(call.caller.key) for device in site.access.devices.all()]})


@handles(HubOperations.rename_device)
async def rename_device(site: Site, call: Call) -> Response:
    return _rename(site, call.given.login_id, call.given.name)


def _rename(site: Site, login_id: str, name: str) -> Response:
    if site.access.devices.get(login_id) is None:
        return problem(*NO_DEVICE)
    renamed = site.access.devices.rename(login_id, name)
    return JSONResponse(renamed.to_json()) if renamed else problem(409, "name_taken", "another device has that name")


@handles(HubOperations.end_device)
async def end_device(site: Site, call: Call) -> Response:
    ended = site.end_device(call.given.login_id)
    return JSONResponse({"ended": True}) if ended else problem(*NO_DEVICE)


@handles(HubOperations.make_link)
async def make_link(site: Site, call: Call) -> Response:
    return JSONResponse(site.new_links(call.given.name, call.given.scope))


@handles(HubOperations.set_password)
async def set_password(site: Site, call: Call) -> Response:
    site.access.set_password(call.given.password)
    return JSONResponse({"set": True})


@handles(HubOperations.list_tokens)
async def list_tokens(site: Site, call: Call) -> Response:
    return JSONResponse({"tokens": [token.to_json() for token in site.access.tokens()]})


@handles(HubOperations.create_token)
async def create_token(site: Site, call: Call) -> Response:
    if any(token.name == call.given.name for token in site.access.tokens()):
        return problem(409, "name_taken", "there is a token of that name; revoke it first")
    token, secret = site.access.create_token(call.given.name, call.given.scope)
    return JSONResponse({**token.to_json(), "token": secret})


@handles(HubOperations.revoke_token)
async def revoke_token(site: Site, call: Call) -> Response:
    if not site.access.revoke_token(call.given.token_id):
        return problem(404, "unknown_token", "there is no such token")
    site.broadcast.cut_all()
    return JSONResponse({"revoked": True})


@handles(HubOperations.push_key)
async def push_key(site: Site, call: Call) -> Response:
    return JSONResponse({"available": site.push.available(), "public_key": site.push.public_key()})


@handles(HubOperations.subscribe)
async def subscribe(site: Site, call: Call) -> Response:
    known = site.access.devices.get(call.caller.key) is not None
    if refused := refuse_push(site.push, call.given.endpoint, known):
        return refuse(refused)
    keys = {"p256dh": call.given.keys.p256dh, "auth": call.given.keys.auth}
    site.push.subscribe(call.caller.key, {"endpoint": call.given.endpoint, "keys": keys})
    return JSONResponse({"subscribed": True})


@handles(HubOperations.unsubscribe)
async def unsubscribe(site: Site, call: Call) -> Response:
    return JSONResponse({"removed": site.push.unsubscribe(call.given.endpoint, call.caller.key)})
