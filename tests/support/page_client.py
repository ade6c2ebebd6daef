"""A browser's half of the login, for tests that speak HTTP: greets the hub, checks its proof, signs every request."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from typing import Any

import httpx

from atlasbridge.web.access import body_digest, mac, proof

NOBODY: Any = None  # httpx takes None for "without", its types do not say so

API = "/api/v1"


class Signed(httpx.Auth):
    """Signs every request with a device's key, for one start of the hub."""

    requires_request_body = True

    def __init__(self, login_id: str, key: bytes, epoch: str) -> None:
        self.login_id = login_id
        self.key = key
        self.epoch = epoch

    def header(self, method: str, target: str, body: bytes = b"") -> str:
        digest = body_digest(body)
        return f"{self.epoch}.{digest}.{proof(self.key, 'page', self.epoch, method, target, digest)}"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        if "Authorization" not in request.headers and "X-AtlasBridge-Proof" not in request.headers:
            target = request.url.raw_path.decode()
            request.headers["X-AtlasBridge-Proof"] = self.header(request.method, target, request.content)
        yield request


class LinkLogin:
    """The two steps by which a link opens the page; the same for both kinds of client."""

    def __init__(self, link: str) -> None:
        self.link_id, _, key = link.rpartition("#link=")[2].partition(".")
        self.key = bytes.fromhex(key)
        self.challenge = secrets.token_hex(16)
        self.epoch = ""

    @property
    def greeting(self) -> dict[str, str]:
        return {"who": self.link_id, "challenge": self.challenge}

    def body(self, greeted: dict[str, str]) -> dict[str, str]:
        self.epoch = greeted["epoch"]
        assert greeted["proof"] == proof(self.key, "hub", self.challenge, self.epoch, self.link_id)
        own = proof(self.key, "page", self.challenge, self.epoch, self.link_id)
        return {"link": self.link_id, "challenge": self.challenge, "epoch": self.epoch, "proof": own}

    def entered(self, answer: dict[str, Any]) -> Signed:
        key = mac(self.key, "device", self.challenge, self.epoch)
        assert answer["proof"] == proof(key, "hub", self.challenge, self.epoch, answer["login_id"])
        return Signed(answer["login_id"], key, self.epoch)


async def enter(client: httpx.AsyncClient, link: str, **options: Any) -> httpx.Response:
    """Log in by a link.  The client signs its requests from then on."""
    login = LinkLogin(link)
    greeted = await client.get(f"{API}/hello", params=login.greeting, auth=None, **options)
    if greeted.status_code != 200:
        return greeted
    answer = await client.post(f"{API}/login", json=login.body(greeted.json()), auth=NOBODY, **options)
    if answer.status_code == 200:
        client.auth = login.entered(answer.json())
    return answer


def enter_now(client: httpx.Client, link: str) -> httpx.Response:
    login = LinkLogin(link)
    greeted = client.get(f"{API}/hello", params=login.greeting, auth=None)
    assert greeted.status_code == 200, greeted.text
    answer = client.post(f"{API}/login", json=login.body(greeted.json()), auth=NOBODY)
    assert answer.status_code == 200, answer.text
    client.auth = login.entered(answer.json())
    return answer


def greet_now(client: httpx.Client) -> None:
    """After a restart: the hub proves itself, and the client signs for its new start."""
    signed = signer(client)
    challenge = secrets.token_hex(16)
    answer = client.get(f"{API}/hello", params={"who": signed.login_id, "challenge": challenge}, auth=None)
    assert answer.status_code == 200, answer.text
    _learn(signed, challenge, answer.json())


async def greet(client: httpx.AsyncClient) -> None:
    signed = signer(client)
    challenge = secrets.token_hex(16)
    answer = await client.get(f"{API}/hello", params={"who": signed.login_id, "challenge": challenge}, auth=None)
    assert answer.status_code == 200, answer.text
    _learn(signed, challenge, answer.json())


def _learn(signed: Signed, challenge: str, greeted: dict[str, str]) -> None:
    assert greeted["proof"] == proof(signed.key, "hub", challenge, greeted["epoch"], signed.login_id)
    signed.epoch = greeted["epoch"]


def signer(client: httpx.AsyncClient | httpx.Client) -> Signed:
    assert isinstance(client.auth, Signed)
    return client.auth
