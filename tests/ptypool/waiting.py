"""Waiting for conditions on real children, with generous deadlines; nothing here depends on how fast a machine is."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path

from tests.support.waiting import DEADLINE_S

from ptypool import PtyHandle


async def read_until(handle: PtyHandle, wanted: bytes) -> bytes:
    """All the output up to the chunk that completes `wanted`."""
    output = b""
    async with asyncio.timeout(DEADLINE_S):
        while wanted not in output:
            chunk = await handle.read()
            assert chunk, f"the output ended without {wanted!r}: {output!r}"
            output += chunk
    return output


async def read_all(handle: PtyHandle) -> bytes:
    async with asyncio.timeout(DEADLINE_S):
        return b"".join([chunk async for chunk in handle])


def drain_fd(fd: int) -> bytes:
    """Everything from a blocking master descriptor, up to the end of the output."""
    output = b""
    while True:
        try:
            chunk = os.read(fd, 65536)
        except OSError:
            return output
        if not chunk:
            return output
        output += chunk


def process_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def open_descriptors() -> int:
    """How many this process has open, once what earlier tests left for the garbage collector is closed."""
    gc.collect()
    return len(os.listdir("/dev/fd"))


def children() -> set[int]:
    """Of this process, zombies included; none where there is no /proc."""
    return {int(pid) for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}
