"""Any lines through the proxy between an editor and its agent: what comes out must be what went in, to the byte."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from random import Random

from tests.support.hubs import HubProcess

ECHO = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line); sys.stdout.buffer.flush()"


def random_line(chance: Random) -> bytes:
    """Messages of every form, some of them no message at all."""
    kind = chance.randrange(7)
    if kind == 0:
        return chance.randbytes(chance.randrange(1, 60)).replace(b"\n", b"") + b"\n"
    if kind == 1:
        return json.dumps({"id": chance.choice([1, "a", None]), "result": {"x": chance.random()}}).encode() + b"\n"
    if kind == 2:
        return b'{"method":"session/request_permission"}\n'  # named like one, and none
    if kind == 3:
        return b'{ "jsonrpc" :"2.0",  "id":9, "method":"x", "params":{"t":"' + "wide 漢字 \\u0007".encode() + b'"}}\n'
    if kind == 4:
        return b"x" * chance.randrange(70_000) + b"\n"
    if kind == 5:
        nested = chance.choice([b"[" * 50_000, b'{"a":' * 20_000, b'"' + b"\\" * 999, b"1" * 5000])
        return nested + chance.choice([b"", b"session/request_permission"]) + b"\n"
    return json.dumps({"method": "session/update", "params": {"n": chance.randrange(10**9)}}).encode() + b"\r\n"


def pass_lines(hub: HubProcess, count: int, chance: Random) -> int:
    """So many lines to an agent that says everything back; returns how many bytes passed, each way."""
    sent = b"".join(random_line(chance) for _ in range(count))
    command = hub.command("acp", "--", sys.executable, "-c", ECHO)
    with subprocess.Popen(command, env=hub.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as proxy:
        assert proxy.stdin is not None and proxy.stdout is not None
        writing = threading.Thread(target=_write_all, args=(proxy, sent))
        writing.start()
        got = proxy.stdout.read()
        writing.join()
        assert proxy.wait(60) == 0
    assert got == sent, f"{len(got)} bytes came back of {len(sent)}"
    return len(sent)


def _write_all(proxy: subprocess.Popen[bytes], data: bytes) -> None:
    assert proxy.stdin is not None
    proxy.stdin.write(data)
    proxy.stdin.close()
