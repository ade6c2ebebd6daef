"""Who may do what: one-time links, logins of pages, API tokens, and the password of the LAN login.

Only digests are kept, through the desk's durable notes.  What a request carries is judged in `credential.py`.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
from dataclasses import asdict, dataclass
from typing import Any

from atlasbridge.channels.web.settings import WebSettings
from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.ports import Desk

SCOPES = ("read", "answer", "admin")  # each includes those before it
MAX_LINKS = 32
MAX_LOGINS = 64
STRETCH = 600_000  # rounds of PBKDF2; a function that needs much memory would double the hub


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def same(left: str, right: str) -> bool:
    """Compare without telling by the time taken how much was right."""
    return hmac.compare_digest(left.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass"))


def _stretch(password: str, salt: bytes) -> str:
    return hashlib.pbkdf2_hmac("sha256", password.encode("utf-8", "surrogatepass"), salt, STRETCH).hex()


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a request.  `key` tells callers apart for limits and for opting in to typing."""

    identity: str
    scope: str
    key: str

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
class Login:
    """A page that was let in.  The cookie and the page's own key are two secrets: the browser sends the cookie to every
    port of this host, but a page's storage belongs to one port only, so each alone opens nothing."""

    login_id: str
    name: str
    scope: str
    cookie_digest: str
    key_digest: str
    until: float  # wall time


@dataclass(frozen=True, slots=True)
class Link:
    digest: str
    name: str
    scope: str
    until: float  # steady time


class Access:
    def __init__(self, desk: Desk, clock: Clock, settings: WebSettings) -> None:
        self._desk = desk
        self._clock = clock
        self._settings = settings
        self._links: list[Link] = []
        self.cookie_name = f"atlasbridge_{self._own_name()}"
        self._tokens = {item["token_id"]: Token(**item) for item in self._load("web.tokens")}
        self._logins = {item["login_id"]: Login(**item) for item in self._load("web.logins")}

    def _own_name(self) -> str:
        """A cookie is shared by all ports of a host: two hubs on one machine must not overwrite each other's."""
        name = self._desk.recall("web.cookie") or secrets.token_hex(4)
        self._desk.remember("web.cookie", name)
        return name

    def make_link(self, name: str, scope: str) -> str:
        """A secret that lets one page in, once, soon."""
        secret = secrets.token_urlsafe(24)
        self._links = [link for link in self._links if link.until > self._clock.now()][-MAX_LINKS + 1 :]
        self._links.append(Link(digest(secret), name, scope, self._clock.now() + self._settings.link_ttl_s))
        return secret

    def redeem(self, secret: str) -> tuple[str, str, Login] | None:
        """Use a one-time link up.  Returns the cookie, the page's key and the login."""
        wanted = digest(secret)
        found = [link for link in self._links if same(link.digest, wanted) and link.until > self._clock.now()]
        if not found:
            return None
        self._links.remove(found[0])
        return self._let_in(found[0].name, found[0].scope)

    def set_password(self, password: str) -> None:
        salt = secrets.token_bytes(16)
        self._desk.remember("web.password", f"{salt.hex()}:{_stretch(password, salt)}")

    async def enter(self, password: str) -> tuple[str, str, Login] | None:
        salt, _, hashed = self._desk.recall("web.password").partition(":")
        if not hashed:
            return None
        given = await asyncio.to_thread(_stretch, password, bytes.fromhex(salt))
        return self._let_in("login", "admin") if same(given, hashed) else None

    def _let_in(self, name: str, scope: str) -> tuple[str, str, Login]:
        login_id, cookie, key = secrets.token_hex(8), secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        until = self._clock.wall() + self._settings.login_ttl_s
        login = Login(login_id, name, scope, digest(cookie), digest(key), until)
        kept = [known for known in self._logins.values() if known.until > self._clock.wall()]
        self._logins = {known.login_id: known for known in [*kept, login][-MAX_LOGINS:]}
        self._save("web.logins", self._logins)
        self._desk.note("WEB_LOGIN", identity=f"web:{name}", login_id=login_id, scope=scope)
        return f"{login_id}.{cookie}", key, login

    def logout(self, login_id: str) -> bool:
        if self._logins.pop(login_id, None) is None:
            return False
        self._save("web.logins", self._logins)
        return True

    def logout_all(self) -> int:
        """End every page's login and every link that still waits."""
        count = len(self._logins)
        self._logins, self._links = {}, []
        self._save("web.logins", self._logins)
        self._desk.note("WEB_LOGOUT_ALL", count=count)
        return count

    def page(self, cookie: str, key: str) -> Caller | None:
        login_id, _, secret = cookie.partition(".")
        login = self._logins.get(login_id)
        if login is None or login.until <= self._clock.wall():
            return None
        both = same(digest(secret), login.cookie_digest) & same(digest(key), login.key_digest)
        return Caller(f"web:{login.name}", login.scope, login_id) if both else None

    def create_token(self, name: str, scope: str) -> tuple[Token, str]:
        """The secret is shown once and never kept."""
        token_id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        token = Token(token_id, name, scope, digest(secret), iso(self._clock.wall()))
        self._tokens[token_id] = token
        self._save("web.tokens", self._tokens)
        self._desk.note("TOKEN_CREATED", token_id=token_id, name=name, scope=scope)
        return token, f"ab_{token_id}_{secret}"

    def revoke_token(self, token_id: str) -> bool:
        if self._tokens.pop(token_id, None) is None:
            return False
        self._save("web.tokens", self._tokens)
        self._desk.note("TOKEN_REVOKED", token_id=token_id)
        return True

    def tokens(self) -> list[Token]:
        return list(self._tokens.values())

    def bearer(self, text: str) -> Caller | None:
        prefix, _, rest = text.partition("_")
        token_id, _, secret = rest.partition("_")
        token = self._tokens.get(token_id)
        if prefix != "ab" or token is None or not same(digest(secret), token.digest):
            return None
        return Caller(f"web:token/{token.name}", token.scope, token_id)

    def _load(self, key: str) -> list[dict[str, Any]]:
        loaded: list[dict[str, Any]] = json.loads(self._desk.recall(key, "[]"))
        return loaded

    def _save(self, key: str, records: dict[str, Any]) -> None:
        self._desk.remember(key, json.dumps([asdict(record) for record in records.values()]))
