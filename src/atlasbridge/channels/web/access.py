"""Who may do what: one-time links, browsers, API tokens, and the password of the LAN login.

A browser proves each request with a key that never travels; before it does, the hub proves that it has the same key
(`greet`).  Of tokens and the password only digests are kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from atlasbridge.channels.web.device import Device, Devices
from atlasbridge.channels.web.proof import digest, mac, new_key, proof, same
from atlasbridge.channels.web.settings import WebSettings
from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.ports import Desk

SCOPES = ("read", "ask", "answer", "admin")  # each includes those before it
MAX_LINKS = 32
STRETCH = 600_000  # rounds of PBKDF2; a function that needs much memory would double the hub


def _stretch(password: str, salt: bytes) -> str:
    return hashlib.pbkdf2_hmac("sha256", password.encode("utf-8", "surrogatepass"), salt, STRETCH).hex()


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a request.  `key` tells callers apart for limits and for opting in to typing; `body` is the digest that
    the caller signed for the request's body, "" where nothing is signed."""

    identity: str
    scope: str
    key: str
    body: str = ""
    token: bool = False  # a program's: anybody who has read it can show it

    @staticmethod
    def needs_person(scope: str) -> bool:
        """Whether what needs this scope decides something."""
        return scope in ("answer", "admin")

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
    """Lives in memory only: a new hub knows no old links."""

    link_id: str
    key: bytes
    name: str  # "": as the browser calls itself
    scope: str
    until: float  # steady time


@dataclass(frozen=True, slots=True)
class Entry:
    """A browser that was just let in: its cookie, its key, its record."""

    cookie: str
    key: bytes
    device: Device


class Access:
    def __init__(
        self, desk: Desk, clock: Clock, settings: WebSettings, on_end: Callable[[str], None] = lambda login_id: None
    ) -> None:
        self._desk = desk
        self._clock = clock
        self._settings = settings
        self._links: dict[str, Link] = {}
        self.epoch = secrets.token_hex(16)  # of this start: what was signed for another is worth nothing
        self.port = 0  # where the page listens on loopback
        self.cookie_name = f"atlasbridge_{self._own_name()}"
        self.devices = Devices(desk, clock, settings.login_ttl_s, on_end)
        self._tokens = {item["token_id"]: Token(**item) for item in json.loads(desk.recall("web.tokens", "[]"))}

    def _own_name(self) -> str:
        """A cookie is shared by all ports of a host: two hubs on one machine must not overwrite each other's."""
        name = self._desk.recall("web.cookie") or secrets.token_hex(4)
        self._desk.remember("web.cookie", name)
        return name

    def make_link(self, name: str, scope: str) -> str:
        """A secret that lets one browser in, once, soon: "id.key"."""
        now = self._clock.now()
        kept = [link for link in self._links.values() if link.until > now][-MAX_LINKS + 1 :]
        link = Link(secrets.token_hex(6), new_key(), name, scope, now + self._settings.link_ttl_s)
        self._links = {known.link_id: known for known in [*kept, link]}
        return f"{link.link_id}.{link.key.hex()}"

    def greet(self, who: str, cookie: str, challenge: str) -> str | None:
        """Prove to the bearer of a link, a login or a token that this is its hub.  None: we do not know it."""
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
        """False: it logged in at a port that is not ours (any more).  Whoever is there now could pass things on."""
        return device.port in (0, self.port)

    def _link(self, link_id: str) -> Link | None:
        link = self._links.get(link_id)
        return link if link is not None and link.until > self._clock.now() else None

    def redeem(self, link_id: str, challenge: str, epoch: str, given: str, agent: str, port: int) -> Entry | None:
        """Use a one-time link up.  A wrong proof leaves it as it is, so nobody else can spoil it."""
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
        self._desk.remember("web.password", f"{salt.hex()}:{_stretch(password, salt)}")

    async def enter(self, password: str, agent: str) -> Entry | None:
        salt, _, hashed = self._desk.recall("web.password").partition(":")
        if not hashed:
            return None
        given = await asyncio.to_thread(_stretch, password, bytes.fromhex(salt))
        return self._let_in(agent, self._settings.password_scope, new_key(), 0) if same(given, hashed) else None

    def _let_in(self, name: str, scope: str, key: bytes, port: int, named: bool = False) -> Entry:
        cookie, device = self.devices.add(name, scope, key, port, named)
        return Entry(cookie, key, device)

    def logout_all(self) -> int:
        """End every browser's login and every link that still waits."""
        self._links = {}
        return self.devices.end_all()

    def page(self, cookie: str, signed: str, method: str, target: str) -> Caller | None:
        """Who signed this request for this start of this hub; the body's digest is checked when the body has come."""
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
        """The secret is shown once and never kept."""
        token_id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        token = Token(token_id, name, scope, digest(secret), iso(self._clock.wall()))
        self._tokens[token_id] = token
        self._save_tokens()
        self._desk.note("TOKEN_CREATED", token_id=token_id, name=name, scope=scope)
        return token, f"ab_{token_id}_{secret}"

    def revoke_token(self, token_id: str) -> bool:
        token = self._tokens.pop(token_id, None)
        if token is None:
            return False
        self._save_tokens()
        self._desk.note("TOKEN_REVOKED", token_id=token_id)
        self._desk.sent_away(f"web:token/{token.name}")
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
        self._desk.remember("web.tokens", json.dumps([asdict(record) for record in self._tokens.values()]))
