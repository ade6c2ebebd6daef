"""Who calls: the cookie of a login, and the device it comes from."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from atlasbridge.core.escape import escape_controls
from atlasbridge.fleet.server.context import ServerContext
from atlasbridge.fleet.server.people import Caller, who

COOKIE = "atlasbridge_server"


async def caller_of(context: ServerContext, request: Request) -> Caller | None:
    token = request.cookies.get(COOKIE, "")
    return await who(context.database, token) if token else None


def place_of(request: Request) -> str:
    """The device, in a few words, as it says itself."""
    agent = request.headers.get("user-agent", "")
    browser = next((name for name in ("Firefox", "Edg", "Chrome", "Safari") if name in agent), "a browser")
    system = next((name for name in ("Android", "iPhone", "Mac OS", "Windows", "Linux") if name in agent), "")
    return escape_controls(f"the server, {browser}{f' on {system}' if system else ''}", keep_lines=False)


def with_cookie(response: Response, token: str, secure: bool) -> Response:
    response.set_cookie(COOKIE, token, max_age=30 * 86_400, httponly=True, samesite="strict", secure=secure, path="/")
    return response
