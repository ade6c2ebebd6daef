"""The design of the specification taken literally: asyncio, reads of 1 KB in an executor.  A peer in the benchmark."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import sys
import termios
import tty


def read_some(fd: int, limit: int) -> bytes:
    ready, _, _ = select.select([fd], [], [], 0.05)
    if not ready:
        return b""
    try:
        return os.read(fd, limit) or b"\x00END"
    except OSError:
        return b"\x00END"


async def pump(source: int, sink: int) -> None:
    loop = asyncio.get_running_loop()
    while True:
        data = await loop.run_in_executor(None, read_some, source, 1024)
        if data == b"\x00END":
            return
        if data:
            os.write(sink, data)


async def main(master: int) -> None:
    typing = asyncio.create_task(pump(0, master))
    await pump(master, 1)
    typing.cancel()


if __name__ == "__main__":
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(sys.argv[1], sys.argv[1:])
    saved = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        asyncio.run(main(terminal))
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, saved)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
