"""The page's static files, for a hub and for a fleet server: read once, compressed once, named by their digest."""

from __future__ import annotations

import gzip
import hashlib
import json
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "json": "application/json",
    "webmanifest": "application/manifest+json",
}


def read_page(*more: str) -> dict[str, bytes]:
    """Return the files by name. `more` are packages with their own `static` folder; their files replace ours of the
    same name, as the fleet server's API client does. `files.json` lists the ones that a browser keeps."""
    found = [entry for package in ("atlasbridge.web", *more) for entry in files(package).joinpath("static").iterdir()]
    page = {entry.name: entry.read_bytes() for entry in found if entry.is_file()}
    kept = sorted(_path(name) for name in page if name != "sw.js")  # the browser itself keeps the service worker
    return {**page, "files.json": json.dumps(kept).encode()}


def _path(name: str) -> str:
    return "/" if name == "index.html" else f"/{name}"


def digest_page(page: dict[str, bytes]) -> str:
    return hashlib.sha256(b"\0".join(page[name] for name in sorted(page))).hexdigest()[:16]


def page_routes(page: dict[str, bytes]) -> list[Route]:
    """Each file is read once; the page is small, and no path outside of the package can be requested."""
    return [Route(_path(name), _file(name, content), methods=["GET"]) for name, content in page.items()]


def _file(name: str, content: bytes) -> Any:
    """Compressed once. These files contain no secret, so the compressed length reveals nothing."""
    etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    kind = name.rpartition(".")[2]
    headers = {"Cache-Control": "no-cache", "ETag": etag, "Content-Type": TYPES[kind], "Vary": "Accept-Encoding"}
    packed = b"" if kind == "png" else gzip.compress(content, 6, mtime=0)

    async def serve(request: Request) -> Response:
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        if packed and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(packed, headers={**headers, "Content-Encoding": "gzip"})
        return Response(content, headers=headers)

    return serve
