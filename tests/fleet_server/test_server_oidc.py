"""Log in through an identity provider: a real one (npm: oidc-provider), and one that lies in every way it can."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import uvicorn
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from tests.support.fleet import HubApi, fleet_server_on, until

from atlasbridge.config.server import read_oidc
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.errors import ConfigError
from atlasbridge.fleet.server import people
from atlasbridge.fleet.server.oidc import CALLBACK, OidcSettings
from atlasbridge.fleet.server.server import Address as ServerAddress
from atlasbridge.fleet.server.server import FleetServer, listen_at

SCRIPT = Path(__file__).parents[1] / "support" / "oidc_provider.mjs"
TEAMS = {"eng-backend": "backend", "sales": "sales"}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def settings(issuer: str, **more: Any) -> OidcSettings:
    given: dict[str, Any] = {"client_secret": "hush", "label": "Example", "scopes": "openid profile", "teams": TEAMS}
    return OidcSettings(issuer, "fleet", **{**given, **more})


@contextmanager
def real_provider(redirect: str) -> Iterator[str]:
    tools = Path(os.environ.get("ATLASBRIDGE_TOOLS") or Path(__file__).parents[2] / ".venv" / "tools")
    package = tools / "oidc-provider" / "node_modules" / "oidc-provider"
    node = shutil.which("node")
    assert node and package.is_dir(), "run tools/install-extras first"
    process = subprocess.Popen(
        [node, str(SCRIPT), str(package), redirect], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        issuer = process.stdout.readline().strip()
        assert issuer.startswith("http://127.0.0.1:"), issuer
        yield issuer
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


class Browser:
    """Follows the provider's own forms."""

    def __init__(self, fleet_server: HubApi) -> None:
        self.client = httpx.AsyncClient(base_url=fleet_server.url, follow_redirects=True, timeout=60)

    async def log_in(self, name: str) -> httpx.Response:
        shown = await self.client.get("/login/oidc")
        for _ in range(4):
            form = re.search(r'<form[^>]+action="([^"]+)"', shown.text)
            if form is None or "/login/oidc" in str(shown.url):
                return shown
            prompt = re.findall(r'name="prompt" value="(\w+)"', shown.text)
            given = {"prompt": prompt[0], "login": name, "password": "any"}
            shown = await self.client.post(str(shown.url.join(form[1])), data=given)
        raise AssertionError(shown.text)

    async def __aenter__(self) -> Browser:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.client.aclose()

    async def me(self) -> dict[str, Any]:
        return dict((await self.client.get("/api/v1/me")).json())


async def test_people_log_in_through_a_real_provider_and_their_groups_are_teams(database: str) -> None:
    port = free_port()
    with real_provider(f"http://127.0.0.1:{port}{CALLBACK}") as issuer:
        given = settings(issuer, admin_groups=("fleet-admins",))
        async with (
            fleet_server_on(database, port=port, oidc=given) as fleet_server,
            Browser(fleet_server) as ada,
            Browser(fleet_server) as bert,
            Browser(fleet_server) as other,
        ):
            assert "Log in with Example" in (await ada.client.get("/login")).text
            shown = await ada.log_in("ada")
            assert shown.status_code == 200 and shown.url.path == "/"
            assert (await ada.me())["identity"] == "server:ada" and (await ada.me())["scope"] == "admin"
            await bert.log_in("bert")
            assert (await bert.me())["scope"] == "answer"
            known = {one["name"]: one for one in await people.listing(fleet_server.database)}
            assert known["bert"]["teams"] == ["backend"] and known["bert"]["role"] == "member"
            assert known["bert"]["identities"] == ["oidc:bert"]
            (login,) = await people.logins(fleet_server.database, "bert")
            lasts = (login["expires_at"] - login["made_at"]).total_seconds()
            assert lasts == 12 * 3600
            # an administrator ends it, and it has ended; the same person can come back and is no second one
            await people.end_login(fleet_server.database, login["id"], "ada")
            assert (await bert.client.get("/api/v1/me")).status_code == 401
            await other.log_in("bert")
            assert len(await people.listing(fleet_server.database)) == 2
            assert (await fleet_server.events()).count("LOGGED_IN") == 3


class Liar:
    """A provider that says what a test wants; what it leaves alone is right."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"}, private=True)
        self.signs_with = self.key
        self.issuer = ""
        self.claims: dict[str, Any] = {}
        self.userinfo: dict[str, Any] = {}
        self.names_issuer = ""
        self.header = {"alg": "RS256", "kid": "one"}
        self.asked: dict[str, str] = {}
        self.verifier = ""
        self.change: Callable[[str], str] = lambda token: token

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._metadata),
                Route("/keys", self._keys),
                Route("/auth", self._auth),
                Route("/token", self._token, methods=["POST"]),
                Route("/me", self._me),
            ]
        )

    async def _metadata(self, request: Request) -> Response:
        paths = {"authorization_endpoint": "auth", "token_endpoint": "token", "jwks_uri": "keys"}
        paths["userinfo_endpoint"] = "me"
        told = {name: f"{self.issuer}/{path}" for name, path in paths.items()}
        return JSONResponse({"issuer": self.names_issuer or self.issuer, **told})

    async def _keys(self, request: Request) -> Response:
        return JSONResponse(KeySet([self.key]).as_dict(private=False))

    async def _auth(self, request: Request) -> Response:
        self.asked = dict(request.query_params)
        assert self.asked["code_challenge_method"] == "S256" and len(self.asked["code_challenge"]) == 43
        return RedirectResponse(f"{self.asked['redirect_uri']}?code=c1&state={self.asked['state']}")

    async def _token(self, request: Request) -> Response:
        given = parse_qs((await request.body()).decode())
        self.verifier = given["code_verifier"][0]
        now = int(SystemClock().wall())
        claims = {"iss": self.issuer, "sub": "s1", "aud": "fleet", "iat": now, "exp": now + 300}
        claims |= {"nonce": self.asked["nonce"], "preferred_username": "dora", "groups": ["eng-backend"]}
        token = jwt.encode(self.header, {**claims, **self.claims}, self.signs_with)
        return JSONResponse({"access_token": "a", "token_type": "Bearer", "id_token": self.change(token)})

    async def _me(self, request: Request) -> Response:
        return JSONResponse({"sub": "s1", **self.userinfo})


@asynccontextmanager
async def lying(database: str, **more: Any) -> AsyncIterator[tuple[Liar, HubApi]]:
    liar = Liar()
    listener = listen_at(ServerAddress(port=0))
    liar.issuer = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = FleetServer(uvicorn.Config(liar.app(), log_config=None, lifespan="off"))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    await until(lambda: server.started)
    try:
        async with fleet_server_on(database, oidc=settings(liar.issuer, **more)) as fleet_server:
            yield liar, fleet_server
    finally:
        server.should_exit = server.force_exit = True
        await serving


async def enters(fleet_server: HubApi) -> httpx.Response:
    async with httpx.AsyncClient(base_url=fleet_server.url, follow_redirects=True, timeout=60) as client:
        return await client.get("/login/oidc")


OTHER = RSAKey.generate_key(2048, {"kid": "one"}, private=True)
LIES: dict[str, Callable[[Liar], object]] = {
    "another nonce": lambda liar: liar.claims.update(nonce="other"),
    "another audience": lambda liar: liar.claims.update(aud="other"),
    "two audiences, for another": lambda liar: liar.claims.update(aud=["fleet", "other"], azp="other"),
    "another issuer": lambda liar: liar.claims.update(iss="https://elsewhere.example"),
    "too old": lambda liar: liar.claims.update(exp=1_000_000),
    "from the future": lambda liar: liar.claims.update(nbf=int(SystemClock().wall()) + 9000),
    "nobody": lambda liar: liar.claims.update(sub=None),
    "another key": lambda liar: setattr(liar, "signs_with", OTHER),
    "no signature": lambda liar: setattr(
        liar, "change", lambda token: "eyJhbGciOiJub25lIn0." + token.split(".")[1] + "."
    ),
    "no token": lambda liar: setattr(liar, "change", lambda token: "x"),
    "somebody else's facts": lambda liar: liar.userinfo.update(sub="s2"),
    "another name for itself": lambda liar: setattr(liar, "names_issuer", "https://elsewhere.example"),
    "a name that is none": lambda liar: liar.claims.update(preferred_username="@admins"),
    "an odd id": lambda liar: (liar.claims.update(sub="a b"), liar.userinfo.update(sub="a b")),
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_provider_that_lies_lets_nobody_in(database: str, lie: str) -> None:
    async with lying(database) as (liar, fleet_server):
        LIES[lie](liar)
        answer = await enters(fleet_server)
        assert answer.status_code in (403, 503), lie
        assert "atlasbridge_server" not in answer.cookies
        assert await people.listing(fleet_server.database) == []
        assert await people.logins(fleet_server.database) == []


async def test_the_same_without_a_lie_lets_them_in_by_the_verifier_of_this_login(database: str) -> None:
    async with lying(database) as (liar, fleet_server):
        answer = await enters(fleet_server)
        assert answer.status_code == 200 and answer.url.path == "/"
        assert len(liar.verifier) >= 43
        (dora,) = await people.listing(fleet_server.database)
        assert dora["name"] == "dora" and dora["teams"] == ["backend"]


async def test_the_way_back_works_once_and_only_in_the_browser_where_it_began(database: str) -> None:
    async with lying(database) as (_liar, fleet_server):
        async with httpx.AsyncClient(base_url=fleet_server.url, timeout=60) as ada:
            began = await ada.get("/login/oidc")
            async with httpx.AsyncClient(timeout=60) as other:  # somebody else is sent there
                back = (await other.get(began.headers["location"])).headers["location"]
                refused = await other.get(back)
                assert refused.status_code == 403 and "another browser" in refused.text
            state = parse_qs(urlsplit(back).query)["state"][0]
            assert (await ada.get(f"{CALLBACK}?state={state}&code=c1&iss=https://elsewhere.example")).status_code == 403
            assert (await ada.get(back)).status_code == 403  # that was its one use
        assert await people.logins(fleet_server.database) == []
        assert "LOGIN_REFUSED" in await fleet_server.events()


async def test_a_name_proves_nothing_and_who_was_removed_stays_removed(database: str) -> None:
    async with lying(database) as (liar, fleet_server):
        await people.add(fleet_server.database, "dora", "admin", "test")
        taken = await enters(fleet_server)
        assert taken.status_code == 403 and "oidc:s1" in taken.text  # what an administrator needs to say it is her
        await people.set_identity(fleet_server.database, "dora", "oidc:s1", True, "test")
        assert (await enters(fleet_server)).status_code == 200
        await people.remove(fleet_server.database, "dora", "test")
        gone = await enters(fleet_server)
        assert gone.status_code == 403 and "was removed" in gone.text
        liar.claims.update(sub="s9", preferred_username="<b>eve</b>")
        liar.userinfo.update(sub="s9")
        assert (await enters(fleet_server)).status_code == 200
        names = [one["name"] for one in await people.listing(fleet_server.database)]
        assert names == ["<b>eve</b>"]


async def test_groups_decide_who_comes_in_and_are_followed_at_every_login(database: str) -> None:
    given = {"allowed_groups": ("eng-backend", "sales"), "admin_groups": ("eng-backend",)}
    async with lying(database, **given) as (liar, fleet_server):
        assert (await enters(fleet_server)).status_code == 200
        await people.set_team(fleet_server.database, "by-hand", "dora", True, "test")
        liar.claims.update(groups=["sales"])
        assert (await enters(fleet_server)).status_code == 200
        (dora,) = await people.listing(fleet_server.database)
        assert dora["role"] == "member" and dora["teams"] == ["by-hand", "sales"]
        liar.claims.update(groups=["other"])
        assert (await enters(fleet_server)).status_code == 403


async def test_a_provider_that_is_away_is_told_as_that(database: str) -> None:
    async with fleet_server_on(database, oidc=settings(f"http://127.0.0.1:{free_port()}")) as fleet_server:
        answer = await enters(fleet_server)
        assert answer.status_code == 503 and "cannot be reached" in answer.text


def test_an_issuer_needs_tls() -> None:
    with pytest.raises(ConfigError, match="not reached over TLS"):
        settings("http://id.example.org").check()
    settings("https://id.example.org").check()


def test_the_file_of_the_server_names_the_provider_and_the_secret_stands_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text('[oidc]\nissuer = "https://id.example.org"\nclient_id = "fleet"\nclient_secret = "env:S"\n')
    found = read_oidc(path, {"S": "hush"})
    assert found is not None and OidcSettings(**found).client_secret == "hush"
    with pytest.raises(ConfigError, match="environment variable S"):
        read_oidc(path, {})
    path.write_text('[oidc]\nissuer = "https://id.example.org"\nclient_id = "fleet"\nteam = "x"\n')
    with pytest.raises(ConfigError, match=r"oidc\.team"):
        read_oidc(path, {})
    path.write_text("[prompts]\n")
    assert read_oidc(path, {}) is None
