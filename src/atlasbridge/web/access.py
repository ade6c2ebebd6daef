"""Authentication and permissions: one-time links, browsers, API tokens, and the password of the LAN login.

A browser signs each request with a key that is never transmitted; before that, the hub proves that it has the same key
(`greet`). Only digests of tokens and of the password are stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import Any

from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.ports import MachineApi
from atlasbridge.web.settings import WebSettings

# Proofs that both sides know the same key, without sending it. Pure; the page does the same in `proof.js`. Each proof
# names its purpose, so that it cannot be used for another one: "hub" proves the hub to a page, "page" proves one
# request, "device" derives a browser's key from a link's key.

KEY_BYTES = 32


def mac(key: bytes, purpose: str, *parts: str) -> bytes:
    return hmac.new(key, "\n".join((purpose, *parts)).encode("utf-8", "surrogatepass"), hashlib.sha256).digest()


def proof(key: bytes, purpose: str, *parts: str) -> str:
    return mac(key, purpose, *parts).hex()


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def body_digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def same(left: str, right: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(left.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass"))


def new_key() -> bytes:
    return secrets.token_bytes(KEY_BYTES)


def seal(key: bytes, cookie: str, login_id: str) -> str:
    """Encrypt a key with the browser's cookie, so that the stored value alone gives no access."""
    pad = mac(cookie.encode("utf-8", "surrogatepass"), "seal", login_id)
    return bytes(left ^ right for left, right in zip(key, pad, strict=True)).hex()


def unseal(sealed: str, cookie: str, login_id: str) -> bytes:
    return bytes.fromhex(seal(bytes.fromhex(sealed), cookie, login_id))


# Logged-in browsers: one record each, with a name, a scope, and when it was last seen. The hub stores a browser's key
# encrypted with its cookie, and of the cookie only a digest: neither the disk nor the cookie alone gives access.

MAX_DEVICES = 64
SAVE_EVERY_S = 3600.0  # how often "last seen" is saved
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
    former: tuple[str, ...] = ()  # its earlier names
    port: int = 0  # the hub's own port if the browser connected directly; 0 through a tunnel or a proxy

    def to_json(self, here: str = "") -> dict[str, Any]:
        shown = {name: getattr(self, name) for name in ("login_id", "name", "scope", "created_at", "seen_at")}
        return {**shown, "until": iso(self.until), "this": self.login_id == here}


def name_of(user_agent: str) -> str:
    """A readable name for this browser: "Firefox on Android"."""
    browser = next((name for mark, name in _BROWSERS if mark in user_agent), "")
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), "")
    return f"{browser} on {system}" if browser and system else browser or "page"


def plain_name(name: str) -> str:
    return re.sub(r"[^\w .()+-]", "", name).strip()[:NAME_LIMIT] or "page"


class Devices:
    """`on_end(login_id)` is called for every login that ends, for any reason."""

    def __init__(self, hub_api: MachineApi, clock: Clock, ttl_s: float, on_end: Callable[[str], None]) -> None:
        self._hub_api = hub_api
        self._clock = clock
        self._ttl_s = ttl_s
        self._on_end = on_end
        self._saved_at = clock.now()
        kept = json.loads(hub_api.recall("web.devices", "[]"))
        loaded = [Device(**{**item, "former": tuple(item.get("former", ()))}) for item in kept]
        self._known = {item.login_id: item for item in loaded}

    def all(self) -> list[Device]:
        self.end_old()
        return list(self._known.values())

    def get(self, login_id: str) -> Device | None:
        """Return None for an unknown or expired login."""
        found = self._known.get(login_id)
        return found if found is not None and found.until > self._clock.wall() else None

    def find(self, word: str) -> Device | None:
        """By id or by name."""
        found = [item for item in self.all() if word in (item.login_id, item.name)]
        return found[0] if len(found) == 1 else None

    def add(self, name: str, scope: str, key: bytes, port: int, named: bool = False) -> tuple[str, Device]:
        """Return the cookie's value and the record. `named`: the name was given by the person who made the link, not by
        the browser."""
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
        self._hub_api.note("WEB_LOGIN", identity=f"web:{name}", login_id=login_id, scope=scope)
        return f"{login_id}.{cookie}", device

    def key(self, cookie: str) -> tuple[Device, bytes] | None:
        """Return the device of this cookie, and its key."""
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
        """Whether a browser is allowed to use this name: not if its answers would then count as another person's."""
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
        self._hub_api.note("WEB_RENAMED", login_id=login_id, identity=f"web:{device.name}", name=wanted)
        self._known[login_id] = replace(device, name=wanted, former=(*device.former, device.name)[-MOST_FORMER:])
        self._save()
        return self._known[login_id]

    def end(self, login_id: str) -> bool:
        device = self._known.pop(login_id, None)
        if device is None:
            return False
        self._save()
        self._on_end(login_id)
        self._hub_api.note("WEB_LOGOUT", login_id=login_id, identity=f"web:{device.name}")
        return True

    def end_all(self) -> int:
        ended = len(self._known)
        for login_id in list(self._known):
            self._on_end(login_id)
        self._known = {}
        self._save()
        self._hub_api.note("WEB_LOGOUT_ALL", count=ended)
        return ended

    def end_old(self) -> None:
        for device in [item for item in self._known.values() if item.until <= self._clock.wall()]:
            self.end(device.login_id)

    def _unused(self, name: str, named: bool) -> str:
        """Return a unique name. A browser cannot give itself the name of a person."""
        taken = {item.name for item in self._known.values()}
        names = (name if number == 1 else f"{name} {number}" for number in count(1))
        return next(one for one in names if one not in taken and (named or not self.person(one)))

    def person(self, name: str) -> str:
        """Return the person whom an answer under this name counts for, or "" if there is none."""
        return self._hub_api.name_of(f"web:{name}")

    def _save(self) -> None:
        self._saved_at = self._clock.now()
        self._hub_api.remember("web.devices", json.dumps([asdict(item) for item in self._known.values()]))


SCOPES = ("read", "ask", "answer", "admin")  # each includes those before it
MAX_LINKS = 32
STRETCH = 600_000  # rounds of PBKDF2; a memory-hard function would double the size of the hub


def _stretch(password: str, salt: bytes) -> str:
    return hashlib.pbkdf2_hmac("sha256", password.encode("utf-8", "surrogatepass"), salt, STRETCH).hex()


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request. `key` identifies callers for limits and for enabling typing; `body` is the digest of the
    request's body that the caller signed, or "" if nothing is signed."""

    identity: str
    scope: str
    key: str
    body: str = ""
    token: bool = False  # an API token: every program that has read it can use it

    def may(self, scope: str) -> bool:
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


@dataclass(frozen=True, slots=True)
class Token:
    token_id: str
    name: str
    scope: str
    digest: str
    created_at: str

    def to_json(self) -> dict[str, Any]:
        return {"token_id": self.token_id, "name": self.name, "scope": self.scope, "created_at": self.created_at}


@dataclass(frozen=True, slots=True)
class Link:
    """Kept in memory only, so that links end with the hub."""

    link_id: str
    key: bytes
    name: str  # "": the browser's own name
    scope: str
    until: float  # monotonic time
    here: bool = False  # only for a browser of this user on this machine


@dataclass(frozen=True, slots=True)
class Entry:
    """A browser that has just logged in: its cookie, its key and its record."""

    cookie: str
    key: bytes
    device: Device


class Access:
    def __init__(
        self,
        hub_api: MachineApi,
        clock: Clock,
        settings: WebSettings,
        on_end: Callable[[str], None] = lambda login_id: None,
    ) -> None:
        self._hub_api = hub_api
        self._clock = clock
        self._settings = settings
        self._links: dict[str, Link] = {}
        self.epoch = secrets.token_hex(16)  # of this start; signatures for another start are invalid
        self.port = 0  # the page's port on loopback
        self.cookie_name = f"atlasbridge_{self._own_name()}"
        self.devices = Devices(hub_api, clock, settings.login_ttl_s, on_end)
        self._tokens = {item["token_id"]: Token(**item) for item in json.loads(hub_api.recall("web.tokens", "[]"))}

    def _own_name(self) -> str:
        """A cookie name for this hub only, because all ports of a host share their cookies: two hubs on one machine
        must not overwrite each other's."""
        name = self._hub_api.recall("web.cookie") or secrets.token_hex(4)
        self._hub_api.remember("web.cookie", name)
        return name

    def make_link(self, name: str, scope: str, here: bool = False) -> str:
        """Create a one-time secret for one browser, valid for a short time: "id.key". With `here`, others on this
        machine could see it (on a command line), so it works only for a browser of this user outside of every
        session."""
        now = self._clock.now()
        kept = [link for link in self._links.values() if link.until > now][-MAX_LINKS + 1 :]
        link = Link(secrets.token_hex(6), new_key(), name, scope, now + self._settings.link_ttl_s, here)
        self._links = {known.link_id: known for known in [*kept, link]}
        return f"{link.link_id}.{link.key.hex()}"

    def is_for_here(self, link_id: str) -> bool:
        link = self._link(link_id)
        return link is not None and link.here

    def greet(self, who: str, cookie: str, challenge: str) -> str | None:
        """Prove to the owner of a link, a login or a token that this is its hub. None if it is unknown."""
        key = self._key_of(who, cookie)
        return None if key is None else proof(key, "hub", challenge, self.epoch, who)

    def _key_of(self, who: str, cookie: str) -> bytes | None:
        if link := self._link(who):
            return link.key
        if token := self._tokens.get(who):
            return token.digest.encode()
        found = self.devices.key(cookie)
        return found[1] if found is not None and found[0].login_id == who and self._at_home(found[0]) else None

    def _at_home(self, device: Device) -> bool:
        """Whether the login was made at our current port. At another port, a different program could listen now and
        forward requests."""
        return device.port in (0, self.port)

    def _link(self, link_id: str) -> Link | None:
        link = self._links.get(link_id)
        return link if link is not None and link.until > self._clock.now() else None

    def redeem(self, link_id: str, challenge: str, epoch: str, given: str, agent: str, port: int) -> Entry | None:
        """Use a one-time link. A wrong proof does not use it up, so that others cannot spoil it."""
        link = self._link(link_id)
        if link is None or epoch != self.epoch:
            return None
        if not same(proof(link.key, "page", challenge, epoch, link_id), given):
            return None
        del self._links[link_id]
        key = mac(link.key, "device", challenge, epoch)
        return self._let_in(link.name or agent, link.scope, key, port, named=bool(link.name))

    def set_password(self, password: str) -> None:
        salt = secrets.token_bytes(16)
        self._hub_api.remember("web.password", f"{salt.hex()}:{_stretch(password, salt)}")

    async def enter(self, password: str, agent: str) -> Entry | None:
        salt, _, hashed = self._hub_api.recall("web.password").partition(":")
        if not hashed:
            return None
        given = await asyncio.to_thread(_stretch, password, bytes.fromhex(salt))
        return self._let_in(agent, self._settings.password_scope, new_key(), 0) if same(given, hashed) else None

    def _let_in(self, name: str, scope: str, key: bytes, port: int, named: bool = False) -> Entry:
        cookie, device = self.devices.add(name, scope, key, port, named)
        return Entry(cookie, key, device)

    def logout_all(self) -> int:
        """End every browser's login and revoke every unused link."""
        self._links = {}
        return self.devices.end_all()

    def page(self, cookie: str, signed: str, method: str, target: str) -> Caller | None:
        """Return the caller who signed this request for this start of the hub. The digest of the body is checked when
        the body has arrived."""
        found = self.devices.key(cookie)
        epoch, body, given = (*signed.split("."), "", "", "")[:3]
        if found is None or epoch != self.epoch:
            return None
        device, key = found
        if not self._at_home(device):
            return None
        if not same(proof(key, "page", epoch, method, target, body), given):
            return None
        self.devices.seen(device.login_id)
        return Caller(f"web:{device.name}", device.scope, device.login_id, body)

    def create_token(self, name: str, scope: str) -> tuple[Token, str]:
        """Return the secret, which is shown once and never stored."""
        token_id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        token = Token(token_id, name, scope, digest(secret), iso(self._clock.wall()))
        self._tokens[token_id] = token
        self._save_tokens()
        self._hub_api.note("TOKEN_CREATED", token_id=token_id, name=name, scope=scope)
        return token, f"ab_{token_id}_{secret}"

    def revoke_token(self, token_id: str) -> bool:
        token = self._tokens.pop(token_id, None)
        if token is None:
            return False
        self._save_tokens()
        self._hub_api.note("TOKEN_REVOKED", token_id=token_id)
        self._hub_api.login_revoked(f"web:token/{token.name}")
        return True

    def tokens(self) -> list[Token]:
        return list(self._tokens.values())

    def bearer(self, text: str) -> Caller | None:
        prefix, _, rest = text.partition("_")
        token_id, _, secret = rest.partition("_")
        token = self._tokens.get(token_id)
        if prefix != "ab" or token is None or not same(digest(secret), token.digest):
            return None
        return Caller(f"web:token/{token.name}", token.scope, token_id, token=True)

    def _save_tokens(self) -> None:
        self._hub_api.remember("web.tokens", json.dumps([asdict(record) for record in self._tokens.values()]))
