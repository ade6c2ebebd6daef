"""Browsers that were let in: one record each, with a name, what it may do, and when it was last seen.

The hub keeps a browser's key only sealed by the browser's cookie, and the cookie only as a digest: neither the disk nor
the cookie alone lets anybody in.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import Any

from atlasbridge.channels.web.proof import digest, same, seal, unseal
from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.ports import Desk

MAX_DEVICES = 64
SAVE_EVERY_S = 3600.0  # "last seen" is written down this often
NAME_LIMIT = 40
MOST_FORMER = 20
_BROWSERS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("FxiOS/", "Firefox"), ("CriOS/", "Chrome"),
             ("Chromium/", "Chromium"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))  # fmt: skip
_SYSTEMS = (("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("CrOS", "ChromeOS"),
            ("Windows", "Windows"), ("Mac OS X", "Mac"), ("Linux", "Linux"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Device:
    login_id: str
    name: str
    scope: str
    cookie_digest: str
    sealed: str
    until: float  # wall time
    created_at: str
    seen_at: str
    former: tuple[str, ...] = ()  # what it was called before
    port: int = 0  # the hub's own port, when the browser came straight to it; 0: through a tunnel or a proxy

    def to_json(self, here: str = "") -> dict[str, Any]:
        shown = {name: getattr(self, name) for name in ("login_id", "name", "scope", "created_at", "seen_at")}
        return {**shown, "until": iso(self.until), "this": self.login_id == here}


def name_of(user_agent: str) -> str:
    """What people would call this browser: "Firefox on Android"."""
    browser = next((name for mark, name in _BROWSERS if mark in user_agent), "")
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), "")
    return f"{browser} on {system}" if browser and system else browser or "page"


def plain_name(name: str) -> str:
    return re.sub(r"[^\w .()+-]", "", name).strip()[:NAME_LIMIT] or "page"


class Devices:
    """`on_end(login_id)` is called for every login that ends, however it ends."""

    def __init__(self, desk: Desk, clock: Clock, ttl_s: float, on_end: Callable[[str], None]) -> None:
        self._desk = desk
        self._clock = clock
        self._ttl_s = ttl_s
        self._on_end = on_end
        self._saved_at = clock.now()
        kept = json.loads(desk.recall("web.devices", "[]"))
        loaded = [Device(**{**item, "former": tuple(item.get("former", ()))}) for item in kept]
        self._known = {item.login_id: item for item in loaded}

    def all(self) -> list[Device]:
        self.end_old()
        return list(self._known.values())

    def get(self, login_id: str) -> Device | None:
        """A login whose time is over is none."""
        found = self._known.get(login_id)
        return found if found is not None and found.until > self._clock.wall() else None

    def find(self, word: str) -> Device | None:
        """By id or by name."""
        found = [item for item in self.all() if word in (item.login_id, item.name)]
        return found[0] if len(found) == 1 else None

    def add(self, name: str, scope: str, key: bytes, port: int, named: bool = False) -> tuple[str, Device]:
        """Returns the cookie's value and the record.  `named`: by whoever let it in, not by the browser itself."""
        self.end_old()
        while len(self._known) >= MAX_DEVICES:
            self.end(min(self._known.values(), key=lambda item: item.seen_at).login_id)
        login_id, cookie = secrets.token_hex(8), secrets.token_urlsafe(32)
        now = self._clock.wall()
        name = self._unused(plain_name(name), named)
        device = Device(
            login_id,
            name,
            scope,
            digest(cookie),
            seal(key, cookie, login_id),
            now + self._ttl_s,
            iso(now),
            iso(now),
            port=port,
        )
        self._known[login_id] = device
        self._save()
        self._desk.note("WEB_LOGIN", identity=f"web:{name}", login_id=login_id, scope=scope)
        return f"{login_id}.{cookie}", device

    def key(self, cookie: str) -> tuple[Device, bytes] | None:
        """The device that this cookie belongs to, and its key."""
        login_id, _, secret = cookie.partition(".")
        device = self.get(login_id)
        if device is None or not same(digest(secret), device.cookie_digest):
            return None
        return device, unseal(device.sealed, secret, login_id)

    def seen(self, login_id: str) -> None:
        self._known[login_id] = replace(self._known[login_id], seen_at=iso(self._clock.wall()))
        if self._clock.now() - self._saved_at > SAVE_EVERY_S:
            self._save()

    def may_take(self, login_id: str, name: str) -> bool:
        """Whether a browser may call itself that: not if another person would speak by it then."""
        device = self.get(login_id)
        return device is None or self.person(device.name) == self.person(plain_name(name))

    def rename(self, login_id: str, name: str) -> Device | None:
        device = self.get(login_id)
        if device is None:
            return None
        others = {item.name for item in self._known.values() if item.login_id != login_id}
        wanted = plain_name(name)
        if wanted in others:
            return None
        self._desk.note("WEB_RENAMED", login_id=login_id, identity=f"web:{device.name}", name=wanted)
        self._known[login_id] = replace(device, name=wanted, former=(*device.former, device.name)[-MOST_FORMER:])
        self._save()
        return self._known[login_id]

    def end(self, login_id: str) -> bool:
        device = self._known.pop(login_id, None)
        if device is None:
            return False
        self._save()
        self._on_end(login_id)
        self._desk.note("WEB_LOGOUT", login_id=login_id, identity=f"web:{device.name}")
        return True

    def end_all(self) -> int:
        ended = len(self._known)
        for login_id in list(self._known):
            self._on_end(login_id)
        self._known = {}
        self._save()
        self._desk.note("WEB_LOGOUT_ALL", count=ended)
        return ended

    def end_old(self) -> None:
        for device in [item for item in self._known.values() if item.until <= self._clock.wall()]:
            self.end(device.login_id)

    def _unused(self, name: str, named: bool) -> str:
        """Two phones of the same make are told apart, and no browser calls itself as a person is called."""
        taken = {item.name for item in self._known.values()}
        names = (name if number == 1 else f"{name} {number}" for number in count(1))
        return next(one for one in names if one not in taken and (named or not self.person(one)))

    def person(self, name: str) -> str:
        """Who is meant by an answer that is signed with this name; "": nobody in particular."""
        return self._desk.name_of(f"web:{name}")

    def _save(self) -> None:
        self._saved_at = self._clock.now()
        self._desk.remember("web.devices", json.dumps([asdict(item) for item in self._known.values()]))
