"""The API's doors: logging a page in and out, links, tokens, the password, and push subscriptions."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from atlasbridge.channels.web.guard import LOOPBACK, host_name
from atlasbridge.channels.web.operation import Call, problem
from atlasbridge.channels.web.prompt_api import is_private
from atlasbridge.channels.web.site import Site


async def login(site: Site, call: Call) -> Response:
    peer = call.request.client.host if call.request.client else ""
    link, password = call.body.link, call.body.password
    now = site.clock.now()
    if site.wrong.wait_s(peer, now) if password is None else site.wrong.admit(peer, now):
        return problem(429, "rate_limited", "too many attempts; wait a minute")
    if (link is None) == (password is None):
        return problem(422, "bad_value", "give either a link or a password")
    if not is_private(call):
        return problem(403, "not_private", "logging in needs loopback or TLS")
    entry = site.access.redeem(link) if link is not None else await site.access.enter(password)
    if entry is None:
        if link is not None:  # a guess of a password was counted before it was looked at
            site.wrong.admit(peer, now)
        return problem(401, "wrong_login", "this link or password does not open the page; a link works once")
    cookie, key, record = entry
    response = JSONResponse({"key": key, "scope": record.scope, "name": record.name})
    secure = host_name(call.request.headers["host"]) not in LOOPBACK
    age = int(site.settings.login_ttl_s)
    response.set_cookie(
        site.access.cookie_name, cookie, max_age=age, httponly=True, samesite="strict", secure=secure, path="/"
    )
    return response


async def logout(site: Site, call: Call) -> Response:
    ended = site.access.logout(call.caller.key)
    site.broadcast.cut_all()
    response = JSONResponse({"ended": ended})
    response.delete_cookie(site.access.cookie_name, path="/", httponly=True, samesite="strict")
    return response


async def logout_all(site: Site, call: Call) -> Response:
    ended = site.access.logout_all()
    site.broadcast.cut_all()
    return JSONResponse({"ended": ended})


async def me(site: Site, call: Call) -> Response:
    return JSONResponse({"identity": call.caller.identity, "scope": call.caller.scope})


async def make_link(site: Site, call: Call) -> Response:
    secret = site.access.make_link(call.body.name, call.body.scope)
    links = {place: f"{url}/#link={secret}" for place, url in site.urls.items()}
    return JSONResponse({"links": links, "valid_s": site.settings.link_ttl_s})


async def set_password(site: Site, call: Call) -> Response:
    site.access.set_password(call.body.password)
    return JSONResponse({"set": True})


async def list_tokens(site: Site, call: Call) -> Response:
    return JSONResponse({"tokens": [token.to_json() for token in site.access.tokens()]})


async def create_token(site: Site, call: Call) -> Response:
    if any(token.name == call.body.name for token in site.access.tokens()):
        return problem(409, "name_taken", "there is a token of that name; revoke it first")
    token, secret = site.access.create_token(call.body.name, call.body.scope)
    return JSONResponse({**token.to_json(), "token": secret})


async def revoke_token(site: Site, call: Call) -> Response:
    if not site.access.revoke_token(call.path("token_id")):
        return problem(404, "unknown_token", "there is no such token")
    site.broadcast.cut_all()
    return JSONResponse({"revoked": True})


async def push_key(site: Site, call: Call) -> Response:
    return JSONResponse({"available": site.push.available, "public_key": await site.push.public_key()})


async def subscribe(site: Site, call: Call) -> Response:
    if not site.push.available:
        return problem(409, "push_missing", "install the push extra: pip install 'atlasbridge[push]'")
    if not site.push.allows(call.body.endpoint):
        return problem(422, "bad_value", "this is no push service that the configuration allows (web.push_hosts)")
    site.push.subscribe(call.body.subscription())
    return JSONResponse({"subscribed": True})


async def unsubscribe(site: Site, call: Call) -> Response:
    return JSONResponse({"removed": site.push.unsubscribe(call.body.endpoint)})
