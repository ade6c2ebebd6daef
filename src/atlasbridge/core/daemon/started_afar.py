"""Starts a session without a terminal, for a person who asked for it from afar.  What may be started: `launching`."""

from __future__ import annotations

import asyncio
import os

from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home
from atlasbridge.core.own_python import own_environ, own_python

START_S = 15


async def launch_session(home: Home, command: tuple[str, ...], cwd: str, name: str = "") -> str:
    """As `atlasbridge run --detach` does; its id."""
    words = ("--detach", *(() if hasattr(os, "fork") else ("--backend", "conpty")))  # what Windows has
    process = await asyncio.create_subprocess_exec(
        *own_python("atlasbridge", "run", *words, *(("--name", name) if name else ()), "--", *command),
        cwd=cwd,
        env=own_environ(os.environ, ATLASBRIDGE_HOME=str(home.root)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(START_S):
        out, err = await process.communicate()
    if process.returncode:
        raise AtlasBridgeError(err.decode(errors="replace").strip() or "the session did not start", "")
    return out.decode().split()[-1] if out.split() else ""
