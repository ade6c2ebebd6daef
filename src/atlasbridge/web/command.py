"""Requests of this user's commands to the page, over the hub's own socket: links, devices, tokens, the password.

The socket identifies the caller and refuses tools inside a session. No file on disk is needed for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from atlasbridge.core.audit.signed_approval import PasskeyRefused, why_not_here
from atlasbridge.core.operations import HubOperations, Refused
from atlasbridge.core.schema import BadValue
from atlasbridge.web.guard import host_name
from atlasbridge.web.site import Site

_STATUS = "see: atlasbridge hub status"
_KEYS = "list them with: atlasbridge passkey list"
_NO_KEY = "there is no such passkey, or more than one"
_LIST = "list them with: atlasbridge web devices"


class PageCommands:
    def __init__(self, site: Site) -> None:
        self._site = site

    async def answer(self, what: str, fields: Mapping[str, Any]) -> dict[str, Any] | Refused:
        try:
            return self._do(what, fields)
        except BadValue as error:
            return Refused("bad_value", str(error))

    def _do(self, what: str, fields: Mapping[str, Any]) -> dict[str, Any] | Refused:
        access, word = self._site.access, str(fields.get("which", ""))
        match what:
            case "link":
                if not self._site.urls:
                    return Refused("port_taken", "the page is off: another program listens on its port", _STATUS)
                here = bool(fields.get("here"))
                fields = {name: value for name, value in fields.items() if name != "here"}
                wanted = {"name": "", "scope": "answer", **HubOperations.make_link.read(fields)}
                return self._site.new_links(wanted["name"], wanted["scope"], here)
            case "devices":
                return {"devices": [device.to_json() for device in access.devices.all()]}
            case "rename":
                return self._rename(word, HubOperations.rename_me.read(fields)["name"])
            case "revoke":
                device = access.devices.find(word)
                ended = device is not None and self._site.end_device(device.login_id)
                return {} if ended else Refused("unknown_device", "there is no such device", _LIST)
            case "log-out":
                return {"ended": self._site.end_all_devices()}
            case "password":
                access.set_password(HubOperations.set_password.read(fields)["password"])
                return {}
            case "passkey-code":
                return self._passkey_code(fields)
            case "passkeys":
                return {"passkeys": self._site.hub_api.passkeys.listed()}
            case "passkey-remove":
                name = self._site.hub_api.passkeys.remove(word, "cli:local")
                return {"name": name} if name else Refused("unknown_passkey", _NO_KEY, _KEYS)
            case "tokens":
                return {"tokens": [token.to_json() for token in access.tokens()]}
            case "token-revoke":
                return self._revoke_token(word)
            case "token-create":
                return self._create_token(**{"scope": "read", **HubOperations.create_token.read(fields)})
            case _:
                return Refused("unknown_op", f"the page does not know {what!r}", "are both the same version?")

    def _rename(self, word: str, name: str) -> dict[str, Any] | Refused:
        device = self._site.access.devices.find(word)
        if device is None:
            return Refused("unknown_device", "there is no such device", _LIST)
        renamed = self._site.access.devices.rename(device.login_id, name)
        return {"name": renamed.name} if renamed else Refused("name_taken", "another device has that name")

    def _passkey_code(self, fields: Mapping[str, Any]) -> dict[str, Any] | Refused:
        """Links that log a browser in and enrol a passkey in one step; only if the page has a host name."""
        try:
            self._site.hub_api.passkeys.get_ready()
        except PasskeyRefused as error:
            return Refused("passkey_refused", str(error), error.hint)
        wanted = {"name": "", "scope": "answer", **HubOperations.make_link.read(fields)}
        made = self._site.new_links(wanted["name"], wanted["scope"])
        code = self._site.hub_api.passkeys.make_code()
        links = {
            place: f"{url}&enrol={code}"
            for place, url in made["links"].items()
            if not why_not_here(host_name(urlsplit(url).netloc))
        }
        return {**made, "code": code, "links": links}

    def _revoke_token(self, word: str) -> dict[str, Any] | Refused:
        access = self._site.access
        found = [token.token_id for token in access.tokens() if word in (token.token_id, token.name)]
        if not found or not access.revoke_token(found[0]):
            return Refused("unknown_token", "there is no such token")
        self._site.broadcast.cut_all()
        return {}

    def _create_token(self, name: str, scope: str) -> dict[str, Any] | Refused:
        access = self._site.access
        if any(token.name == name for token in access.tokens()):
            return Refused("name_taken", "there is a token of that name; revoke it first")
        token, secret = access.create_token(name, scope)
        return {**token.to_json(), "token": secret}
