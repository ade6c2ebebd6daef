"""Login with OpenID Connect: authorization code with PKCE, and groups that map to teams.

The provider identifies a person; permissions are stored in the fleet's own tables. A login attempt is stored in a
table, so that another server process can complete it.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import httpx
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from atlasbridge.core.errors import ConfigError
from atlasbridge.core.values import field, frozen
from atlasbridge.fleet.keys import hashed, new_token
from atlasbridge.fleet.server import people
from atlasbridge.fleet.server.api import login_page, place_of, with_cookie
from atlasbridge.fleet.server.audit import note, note_stranger
from atlasbridge.fleet.server.context import ServerContext
from atlasbridge.fleet.server.database import Connection, row, rows
from atlasbridge.web.guard import LOOPBACK

log = logging.getLogger(__name__)

CALLBACK = "/login/oidc/callback"
COOKIE = "atlasbridge_oidc"  # ties the callback to the browser that started the login
ATTEMPT_S = 600.0
KNOWN_S = 3600.0  # how long the provider's metadata and keys are cached
PATIENCE_S = 10.0
LEEWAY_S = 60
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]


@frozen
class OidcSettings:
    issuer: str
    client_id: str
    client_secret: str = ""  # "" means a public client, which only PKCE protects
    label: str = ""  # the text of the login button
    scopes: str = "openid profile email"
    name_claim: str = "preferred_username"
    groups_claim: str = "groups"
    teams: Mapping[str, str] = field(default_factory=dict)  # maps a group to a team
    admin_groups: tuple[str, ...] = ()
    allowed_groups: tuple[str, ...] = ()  # () allows everybody whom the provider accepts
    hours: float = 12.0  # after this time the person has to log in again

    def check(self) -> None:
        found = urlsplit(self.issuer)
        if found.scheme != "https" and found.hostname not in LOOPBACK:
            raise ConfigError(f"the issuer {self.issuer!r} is not reached over TLS", "write it as https://…")


class Denied(Exception):
    """The login is refused. The text explains why to the person."""


class Provider:
    """The provider's metadata and keys, fetched when they are needed."""

    def __init__(self, settings: OidcSettings, clock: Any) -> None:
        self._settings = settings
        self._clock = clock
        self._metadata: dict[str, Any] = {}
        self._keys: KeySet | None = None
        self._known_at = 0.0
        self._lock = asyncio.Lock()

    def client(self, redirect: str) -> AsyncOAuth2Client:
        secret = self._settings.client_secret
        return AsyncOAuth2Client(
            self._settings.client_id,
            secret or None,
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
            scope=self._settings.scopes,
            redirect_uri=redirect,
            code_challenge_method="S256",
            timeout=PATIENCE_S,
        )

    async def metadata(self) -> dict[str, Any]:
        async with self._lock:
            if not self._metadata or self._clock.now() - self._known_at > KNOWN_S:
                async with httpx.AsyncClient(timeout=PATIENCE_S) as client:
                    address = f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration"
                    found = await _json(client, address)
                    if found.get("issuer") != self._settings.issuer:
                        raise Denied(f"The identity provider reports another issuer: {found.get('issuer')!r}.")
                    self._keys = KeySet.import_key_set(await _json(client, str(found["jwks_uri"])))  # type: ignore[arg-type]
                    self._metadata, self._known_at = found, self._clock.now()
            return self._metadata

    async def verify(self, id_token: str) -> dict[str, Any]:
        """The claims of a token that this provider has signed. The keys are fetched again in case the provider has
        rotated them.
        """
        try:
            return self._decode(id_token)
        except (JoseError, ValueError):
            self._known_at = float("-inf")
            await self.metadata()
            return self._decode(id_token)

    def _decode(self, id_token: str) -> dict[str, Any]:
        assert self._keys is not None, "metadata() comes first"
        return dict(jwt.decode(id_token, self._keys, ALGORITHMS).claims)


async def _json(client: httpx.AsyncClient, address: str) -> dict[str, Any]:
    answer = await client.get(address)
    answer.raise_for_status()
    found = answer.json()
    if not isinstance(found, dict):
        raise ValueError(f"{address} is not what it should be")
    return found


class OidcLogin:
    def __init__(self, context: ServerContext, settings: OidcSettings) -> None:
        settings.check()
        self._context = context
        self._database = context.database
        self._settings = settings
        self._provider = Provider(settings, context.database.clock)
        self._back = f"{context.url}{CALLBACK}"

    def routes(self) -> list[Route]:
        return [Route("/login/oidc", self._begin), Route(CALLBACK, self._finish)]

    async def _begin(self, request: Request) -> Response:
        try:
            metadata = await self._provider.metadata()
        except (httpx.HTTPError, ValueError, KeyError, Denied) as error:
            log.warning("the identity provider cannot be asked: %s", error)
            return login_page("The identity provider cannot be reached. Try again.", self._settings.label, 503)
        state, nonce, verifier = new_token(), new_token(), new_token() + new_token()
        now = self._database.now()
        async with self._database.transaction() as connection:
            old = now - timedelta(seconds=ATTEMPT_S)
            await connection.execute("DELETE FROM oidc_attempts WHERE made_at < %s", (old,))
            query = "INSERT INTO oidc_attempts (state_hash, nonce, verifier, made_at) VALUES (%s, %s, %s, %s)"
            await connection.execute(query, (hashed(state), nonce, verifier, now))
        async with self._provider.client(self._back) as client:
            address, _ = client.create_authorization_url(
                metadata["authorization_endpoint"], state=state, code_verifier=verifier, nonce=nonce
            )
        answer = RedirectResponse(address, 302)
        secure = self._context.url.startswith("https:")
        answer.set_cookie(
            COOKIE, state, int(ATTEMPT_S), path="/login/oidc", secure=secure, httponly=True, samesite="lax"
        )
        return answer

    async def _finish(self, request: Request) -> Response:
        try:
            token = await self._let_in(request)
        except Denied as denied:
            await self._note_refused(request, str(denied))
            return login_page(str(denied), self._settings.label, 403)
        except (httpx.HTTPError, AuthlibBaseError, JoseError, ValueError, KeyError) as error:
            log.warning("a login with OpenID Connect failed: %s: %s", type(error).__name__, error)
            await self._note_refused(request, type(error).__name__)
            said = "The identity provider's answer was not accepted. Try again."
            return login_page(said, self._settings.label, 403)
        answer = with_cookie(RedirectResponse("/", 303), token, self._context.url.startswith("https:"))
        answer.delete_cookie(COOKIE, path="/login/oidc")
        return answer

    async def _note_refused(self, request: Request, why: str) -> None:
        self._context.metrics.refused_logins.inc()
        await note_stranger(self._database, "LOGIN_REFUSED", place=place_of(request), why=why[:200])

    async def _let_in(self, request: Request) -> str:
        query, state = request.query_params, request.query_params.get("state", "")
        cookie = request.cookies.get(COOKIE, "")
        if not state or not hmac.compare_digest(state.encode(), cookie.encode()):
            raise Denied("This login started in another browser, or too long ago. Try again.")
        attempt = await self._attempt(state)
        if "error" in query:
            raise Denied(f"The identity provider reports: {query.get('error_description') or query['error']}"[:300])
        if query.get("iss", self._settings.issuer) != self._settings.issuer:
            raise Denied("This answer came from another identity provider.")
        claims = await self._claims(query.get("code", ""), attempt)
        place = place_of(request)
        async with self._database.transaction() as connection:
            person = await self._person(connection, claims)
            await self._follow_groups(connection, person, claims)
            ttl_s = self._settings.hours * 3600
            return await people.let_in(connection, self._database, person, place, ttl_s, "oidc")

    async def _attempt(self, state: str) -> dict[str, Any]:
        """Take the stored attempt. Each one can be used once."""
        since = self._database.now() - timedelta(seconds=ATTEMPT_S)
        query = "DELETE FROM oidc_attempts WHERE state_hash = %s AND made_at > %s RETURNING nonce, verifier"
        found = await self._database.rows(query, hashed(state), since)
        if not found:
            raise Denied("This login started too long ago. Try again.")
        return found[0]

    async def _claims(self, code: str, attempt: Mapping[str, Any]) -> dict[str, Any]:
        metadata = await self._provider.metadata()
        async with self._provider.client(self._back) as client:
            token = await client.fetch_token(
                metadata["token_endpoint"],
                grant_type="authorization_code",
                code=code,
                code_verifier=attempt["verifier"],
            )
            claims = await self._provider.verify(str(token["id_token"]))
            self._check(claims, str(attempt["nonce"]))
            if "userinfo_endpoint" in metadata:
                answer = await client.get(metadata["userinfo_endpoint"])
                answer.raise_for_status()
                more = answer.json()
                if more.get("sub") != claims["sub"]:
                    raise Denied("The identity provider returned another person.")
                claims = {**more, **claims}
        return claims

    def _check(self, claims: Mapping[str, Any], nonce: str) -> None:
        registry = jwt.JWTClaimsRegistry(
            now=lambda: int(self._database.clock.wall()),
            leeway=LEEWAY_S,
            iss={"essential": True, "value": self._settings.issuer},
            aud={"essential": True, "value": self._settings.client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        registry.validate(dict(claims))
        audience = claims["aud"]
        if isinstance(audience, list) and len(audience) > 1 and claims.get("azp") != self._settings.client_id:
            raise Denied("This answer was meant for another program.")

    # the person in the fleet

    async def _person(self, connection: Connection, claims: Mapping[str, Any]) -> str:
        """Find or add the person by the provider's subject id. A matching name alone proves nothing, because people can
        choose it.
        """
        subject = str(claims["sub"])
        identity = f"oidc:{subject}"
        if not subject.isprintable() or " " in subject or len(subject) > 190:
            raise Denied("The server cannot store the id that the identity provider uses for you.")
        groups = self._groups(claims)
        if self._settings.allowed_groups and not groups & set(self._settings.allowed_groups):
            raise Denied("None of your groups has access here. Ask an administrator.")
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext('identities'))")
        query = "SELECT name FROM people WHERE %s = ANY(identities) AND gone_at IS NULL"
        if known := await row(connection, query, identity):
            return str(known["name"])
        name = claims.get(self._settings.name_claim)
        if not isinstance(name, str) or people.bad_name(name):
            raise Denied(f"The identity provider returned no usable {self._settings.name_claim}.")
        if taken := await row(connection, "SELECT gone_at FROM people WHERE name = %s", name):
            if taken["gone_at"]:
                raise Denied(f"{name} was removed here. An administrator can add you again: fleet people add {name}")
            raise Denied(f"{name} already exists here. An administrator can confirm that this is you: {identity}")
        now = self._database.now()
        query = "INSERT INTO people (name, role, identities, added_at) VALUES (%s, 'member', %s, %s)"
        await connection.execute(query, (name, [identity], now))
        await note(connection, now, "PERSON_ADDED", person=name, identity=identity, by="oidc")
        return name

    def _groups(self, claims: Mapping[str, Any]) -> set[str]:
        found = claims.get(self._settings.groups_claim)
        return {str(one) for one in found} if isinstance(found, list) else {found} if isinstance(found, str) else set()

    async def _follow_groups(self, connection: Connection, person: str, claims: Mapping[str, Any]) -> None:
        """Update the person's teams and role from the groups. Teams and roles that the settings do not mention stay as
        they are.
        """
        groups, now = self._groups(claims), self._database.now()
        wanted = {team for group, team in self._settings.teams.items() if group in groups}
        followed = set(self._settings.teams.values())
        found = await rows(connection, "SELECT team FROM team_members WHERE person = %s", person)
        has = {str(one["team"]) for one in found} & followed
        for team in sorted(wanted - has):
            await connection.execute("INSERT INTO team_members (team, person) VALUES (%s, %s)", (team, person))
            await note(connection, now, "PERSON_ADDED", person=person, team=team, by="oidc")
        for team in sorted(has - wanted):
            await connection.execute("DELETE FROM team_members WHERE team = %s AND person = %s", (team, person))
            await note(connection, now, "PERSON_REMOVED", person=person, team=team, by="oidc")
        if self._settings.admin_groups:
            role = "admin" if groups & set(self._settings.admin_groups) else "member"
            query = "UPDATE people SET role = %s WHERE name = %s AND role <> %s RETURNING name"
            if await row(connection, query, role, person, role):
                await note(connection, now, "PERSON_ADDED", person=person, role=role, by="oidc")
