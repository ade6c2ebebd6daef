"""The pool on the real console of Windows; the job on Windows runs this."""

from __future__ import annotations

import sys

import pytest

from ptypool import PtyPool

pytestmark = pytest.mark.skipif(
    sys.platform != "win32", reason="ConPTY is there on Windows only; the Windows job runs this"
)


async def test_a_program_is_spoken_to_resized_and_ended() -> None:
    async with PtyPool(1) as pool:
        handle = await pool.spawn("cmd.exe", ["/q", "/k"])
        await handle.send("echo %OS%\r\n")
        output = b""
        while b"Windows_NT" not in output:
            chunk = await handle.read_timeout(30)
            assert chunk, output
            output += chunk
        handle.resize(100, 40)
        await pool.kill(handle.id)
        assert not handle.is_alive()
