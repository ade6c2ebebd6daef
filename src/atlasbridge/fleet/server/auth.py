"""Who calls: the cookie of a login or the token of a program, and the device it comes from."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from atlasbridge.core.escape import escape_controls
from atlasbridge.fleet.server.context import ServerContext
from atlasbridge.fleet.server.people import Caller, who

COOKIE = "atlasbridge_server"


async def browser_of(context: ServerContext, request: Request) -> Caller | None:
    token = request.cookies.get(COOKIE, "")
    found = await who(context.database, token) if token else None
    return None if found is None or found.is_program else found


async def caller_of(context: ServerContext, request: Request) -> Caller | None:
    """A browser, or a program with its token, whose scope the caller of this checks."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if not scheme:
        return await browser_of(context, request)
    found = await who(context.database, given) if scheme.lower() == "bearer" and given else None
    return found if found is not None and found.is_program else None


def place_of(request: Request) -> str:
    """The device, in a few words, as it says itself."""
    agent = request.headers.get("user-agent", "")
    browser = next((name for name in ("Firefox", "Edg", "Chrome", "Safari") if name in agent), "a browser")
    system = next((name for name in ("Android", "iPhone", "Mac OS", "Windows", "Linux") if name in agent), "")
    return escape_controls(f"the server, {browser}{f' on {system}' if system else ''}", keep_lines=False)


def with_cookie(response: Response, token: str, secure: bool) -> Response:
    response.set_cookie(COOKIE, token, max_age=30 * 86_400, httponly=True, samesite="strict", secure=secure, path="/")
    return response
