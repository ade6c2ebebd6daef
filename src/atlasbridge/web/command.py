"""What commands of this user ask of the page, over the hub's own socket: links, devices, tokens, the password.

The socket knows who asks and refuses a session's own tool; nothing on disk is needed, and nothing there would help.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from atlasbridge.web.body import LinkBody, NameBody, PasswordBody, TokenBody
from atlasbridge.web.site import Site


class PageCommands:
    def __init__(self, site: Site) -> None:
        self._site = site

    async def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._do(str(message.get("do", "")), dict(message.get("fields", {})))
        except ValidationError as error:
            return _refuse("bad_value", f"{'.'.join(map(str, error.errors()[0]['loc']))}: {error.errors()[0]['msg']}")

    def _do(self, what: str, message: dict[str, Any]) -> dict[str, Any]:
        access, word = self._site.access, str(message.get("which", ""))
        match what:
            case "link":
                if not self._site.urls:
                    return _refuse("port_taken", "the page is off: another program listens on its port", _STATUS)
                link = LinkBody(name=message.get("name", ""), scope=message.get("scope", "answer"))
                return {"ok": True, **self._site.new_links(link.name, link.scope, bool(message.get("here")))}
            case "devices":
                return {"ok": True, "devices": [device.to_json() for device in access.devices.all()]}
            case "rename":
                name = NameBody(name=message.get("name", "")).name
                return self._rename(word, name)
            case "revoke":
                device = access.devices.find(word)
                ended = device is not None and self._site.end_device(device.login_id)
                return {"ok": True} if ended else _refuse("unknown_device", "there is no such device", _LIST)
            case "log-out":
                return {"ok": True, "ended": self._site.end_all_devices()}
            case "password":
                access.set_password(PasswordBody(password=message.get("password", "")).password)
                return {"ok": True}
            case "tokens" | "token-create" | "token-revoke":
                return self._token(what, word, message)
            case _:
                return _refuse("unknown_op", f"the page does not know {what!r}", "are both the same version?")

    def _rename(self, word: str, name: str) -> dict[str, Any]:
        device = self._site.access.devices.find(word)
        if device is None:
            return _refuse("unknown_device", "there is no such device", _LIST)
        renamed = self._site.access.devices.rename(device.login_id, name)
        return {"ok": True, "name": renamed.name} if renamed else _refuse("name_taken", "another device has that name")

    def _token(self, what: str, word: str, message: dict[str, Any]) -> dict[str, Any]:
        access = self._site.access
        known = access.tokens()
        if what == "tokens":
            return {"ok": True, "tokens": [token.to_json() for token in known]}
        if what == "token-revoke":
            found = [token.token_id for token in known if word in (token.token_id, token.name)]
            if not found or not access.revoke_token(found[0]):
                return _refuse("unknown_token", "there is no such token")
            self._site.broadcast.cut_all()
            return {"ok": True}
        wanted = TokenBody(name=message.get("name", ""), scope=message.get("scope", "read"))
        if any(token.name == wanted.name for token in known):
            return _refuse("name_taken", "there is a token of that name; revoke it first")
        token, secret = access.create_token(wanted.name, wanted.scope)
        return {"ok": True, **token.to_json(), "token": secret}


_STATUS = "see: atlasbridge hub status"
_LIST = "list them with: atlasbridge web devices"


def _refuse(reason: str, message: str, hint: str = "") -> dict[str, Any]:
    return {"ok": False, "reason": reason, "message": message, "hint": hint}
