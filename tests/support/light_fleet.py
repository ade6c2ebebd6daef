"""Machines of a server without hubs, many in one process: `python -m tests.support.light_fleet SESSIONS PAUSE_S
HOME...`

To the server each is a machine like any other: it proves its key, tells its prompts by number, waits for the
server's word
that it has them, and says of each decision what became of it, once.  They have no store: nobody may kill them.  What
was raised and typed goes to HOME/typed.log, as with `member.py`.
"""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path
from typing import Any

from tests.support.fleet import YES_NO
from tests.support.member import Log

from atlasbridge.core.fleet_wire import BATCH, BEAT_S, decode_message, encode_message
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.model import PromptRecord, PromptState
from atlasbridge.core.values import replace
from atlasbridge.fleet.member.channel import GATHER_S, WINDOW
from atlasbridge.fleet.member.joining import dial, enter
from atlasbridge.fleet.member.membership import read_membership

WORDS = {"y": "yes", "n": "no"}
ABOUT = {"tool": "bash", "label": "", "cwd": "/somewhere"}
RECORD = PromptRecord("", "", YES_NO, PromptState.AWAITING_REPLY, "", "2026-01-01", "2026-01-02", 0.0)


class LightMachine:
    def __init__(self, home: Path, sessions: int, pause_s: float) -> None:
        self._home = home
        self._log = Log(home / "typed.log")
        self._sessions = [new_id() for _ in range(sessions)]
        self._pause_s = pause_s
        self._open: dict[str, str] = {}  # prompt: session
        self._outcomes: dict[str, dict[str, Any]] = {}  # decision: what was said of it
        self._to_tell: list[dict[str, Any]] = []
        self._seq = self._under_way = 0
        self._poked = asyncio.Event()

    async def run(self) -> None:
        membership = read_membership(self._home)
        assert membership is not None
        self._socket = await dial(membership.url, "")
        await enter(self._socket, membership, epoch=f"{membership.machine_id}/1", screens=False, head=[0, "genesis"])
        for session in self._sessions:
            self._ask(session)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tell())
            group.create_task(self._beat())
            while (text := await self._socket.receive()) is not None:
                await self._hear(decode_message(text))
        raise AssertionError("the server closed the link")

    def _ask(self, session: str) -> None:
        prompt_id = new_id()
        self._log.write("R", session, prompt_id)
        self._open[prompt_id] = session
        self._put(session, prompt_id, PromptState.AWAITING_REPLY)

    def _put(self, session: str, prompt_id: str, state: PromptState) -> None:
        record = replace(RECORD, prompt_id=prompt_id, session_id=session, state=state)
        self._seq += 1
        body = {**record.to_json(), **ABOUT}
        self._to_tell.append({"seq": self._seq, "kind": "prompt", "id": prompt_id, "body": body, "ttl_s": 3600.0})
        self._poked.set()

    async def _tell(self) -> None:
        while True:
            self._poked.clear()
            if not self._to_tell or self._under_way >= WINDOW:
                await self._poked.wait()
                await asyncio.sleep(GATHER_S)
                continue
            items, self._to_tell = self._to_tell[:BATCH], self._to_tell[BATCH:]
            self._under_way += 1
            head = [self._seq, f"sha256:{self._seq:064x}"]
            await self._socket.send(encode_message("up", seq=items[-1]["seq"], items=items, head=head))

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            await self._socket.send(encode_message("beat", head=[self._seq, f"sha256:{self._seq:064x}"]))

    async def _hear(self, message: dict[str, Any]) -> None:
        if message["m"] == "ack":
            self._under_way -= 1
            self._poked.set()
        elif message["m"] == "decision":
            decision = str(message["id"])
            if decision not in self._outcomes:
                self._outcomes[decision] = self._type(str(message["prompt_id"]), str(message["value"]))
            await self._socket.send(encode_message("outcome", id=decision, **self._outcomes[decision]))

    def _type(self, prompt_id: str, value: str) -> dict[str, Any]:
        session = self._open.pop(prompt_id, None)
        if session is None:
            return {"ok": False, "reason": "not_open", "sentence": "It is no longer open."}
        self._log.write("T", session, prompt_id, WORDS[value])
        self._put(session, prompt_id, PromptState.RESOLVED)
        asyncio.get_running_loop().call_later(self._pause_s * random.uniform(0.5, 1.5), self._ask, session)
        return {"ok": True, "stage": "typed", "sentence": f"Typed: {value}."}


async def live(sessions: int, pause_s: float, homes: list[Path]) -> None:
    await asyncio.gather(*(LightMachine(home, sessions, pause_s).run() for home in homes))


if __name__ == "__main__":
    asyncio.run(live(int(sys.argv[1]), float(sys.argv[2]), [Path(home) for home in sys.argv[3:]]))
