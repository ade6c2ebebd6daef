"""The API of passkeys: enrol and remove keys, and the data that an approval must sign.

A browser uses a passkey only for the host name it was made for, so each request is checked under its own host name.
Signatures are accepted only for the page's own addresses.
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import JSONResponse, Response

from atlasbridge.core.audit.signed_approval import PasskeyRefused
from atlasbridge.core.operations import HubOperations
from atlasbridge.core.prompt.model import Reject
from atlasbridge.core.values import as_dict
from atlasbridge.web.api import STATUS, Call, handles, problem
from atlasbridge.web.guard import host_name
from atlasbridge.web.prompt_api import NO_PROMPT
from atlasbridge.web.site import Site


def best_page(urls: dict[str, str]) -> str:
    """The address for a phone: the first with a host name (proxy, LAN, this machine), or "" if there is none."""
    named = [urls[place] for place in ("proxy", "lan", "local") if place in urls]
    return next((url for url in named if not host_name(url.partition("://")[2]).replace(".", "").isdigit()), "")


def _name(call: Call) -> str:
    return host_name(call.request.headers["host"])


def _refused(error: PasskeyRefused) -> Response:
    return problem(409, "passkey_refused", f"{error} {error.hint}".strip())


@handles(HubOperations.list_passkeys)
async def list_passkeys(site: Site, call: Call) -> Response:
    return JSONResponse({"passkeys": site.hub_api.passkeys.listed()})


@handles(HubOperations.begin_passkey)
async def begin_passkey(site: Site, call: Call) -> Response:
    try:
        await asyncio.to_thread(site.hub_api.passkeys.get_ready)
        return JSONResponse(site.hub_api.passkeys.begin(_name(call)))
    except PasskeyRefused as error:
        return _refused(error)


@handles(HubOperations.add_passkey)
async def add_passkey(site: Site, call: Call) -> Response:
    """Neither an API token nor a login alone can enrol a passkey: see `core.daemon.passkeys`."""
    if call.caller.token:
        return problem(403, "not_a_browser", "a passkey is enrolled in a browser")
    if wait_s := site.guesses.admit(call.caller.key, site.clock.now()):
        return problem(429, "rate_limited", "too many attempts; wait a minute", wait_s)
    try:
        made = site.hub_api.passkeys.add(_plain(vars(call.given)), site.origins(), call.caller.identity)
    except PasskeyRefused as error:
        return _refused(error)
    return JSONResponse(made)


@handles(HubOperations.remove_passkey)
async def remove_passkey(site: Site, call: Call) -> Response:
    gone = site.hub_api.passkeys.remove(call.given.key_id, call.caller.identity)
    return JSONResponse({"removed": True}) if gone else problem(404, "unknown_passkey", "there is no such passkey")


@handles(HubOperations.passkey_challenge)
async def challenge(site: Site, call: Call) -> Response:
    record = site.hub_api.prompt(call.given.prompt_id)
    if record is None:
        return problem(*NO_PROMPT)
    try:
        await asyncio.to_thread(site.hub_api.passkeys.get_ready)
    except PasskeyRefused as error:
        return _refused(error)
    wanted = site.hub_api.passkeys.ask(record, call.given.value, call.given.as_text, _name(call))
    if isinstance(wanted, Reject):
        return problem(STATUS.get(wanted.reason.value, 409), wanted.reason.value, wanted.sentence)
    return JSONResponse(wanted)


def _plain(given: dict[str, Any]) -> dict[str, Any]:
    confirm = given.get("confirm")
    return {**given, "confirm": as_dict(confirm) if confirm is not None else None}
