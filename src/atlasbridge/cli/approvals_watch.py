"""`approvals` live: draws the board, reads keys, sends answers.  What a key may do, the board that was drawn decides.

Threads listen and send; they ring a bell, and only the one that draws changes anything.
"""

from __future__ import annotations

import os
import select
import subprocess
import threading
from queue import SimpleQueue
from typing import Any

from atlasbridge.cli.approvals_board import Board, Editing, same_meaning
from atlasbridge.cli.approvals_grant import Offer, meant_span, read_offer
from atlasbridge.cli.approvals_keys import Intention, Key, KeyReader, decide_key
from atlasbridge.cli.approvals_view import paint, render_frame
from atlasbridge.cli.full_screen import FullScreen
from atlasbridge.cli.printing import hub_client
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.errors import HubUnavailable
from atlasbridge.core.own_python import own_environ, own_python
from atlasbridge.core.values import replace
from atlasbridge.core.visible import visible

RETRY_S = 0.3
LOOK_S = 1.0
SNOOZE_S = 900.0


class Watch:
    def __init__(self, rings: bool = False) -> None:
        self._rings = rings
        self._hub: HubClient | None = None
        self._clock = SystemClock()
        self._bell, self._ring = os.pipe()
        os.set_blocking(self._ring, False)
        self._board = Board()
        self._keys = KeyReader()
        self._told: SimpleQueue[tuple[str, str]] = SimpleQueue()
        self._goes_on = True
        self._screen = FullScreen(self._ring)

    def run(self) -> None:
        threading.Thread(target=self._listen, daemon=True, name="approvals-events").start()
        with self._screen:
            while self._goes_on:
                self._refresh()
                self._draw()
                for key in self._wait():
                    self._press(key)
                    self._draw()

    def _listen(self) -> None:
        """Rings whenever something happens, over any number of hubs."""
        while True:
            try:
                with hub_client() as events:
                    self._wake()
                    for _ in events.stream("events", follow=True):
                        self._wake()
            except HubUnavailable:
                pass  # told by the thread that draws
            self._wake()
            select.select([], [], [], RETRY_S)

    def _wake(self) -> None:
        try:
            os.write(self._ring, b".")
        except BlockingIOError:
            pass  # it rings already

    def _wait(self) -> list[Key]:
        """Keys, or none when something happened or a moment passed (ages change)."""
        ready, _, _ = select.select([0, self._bell], [], [], LOOK_S)
        if self._bell in ready:
            os.read(self._bell, 4096)
        if 0 not in ready:
            return []
        data = os.read(0, 4096)
        self._goes_on &= bool(data)  # the terminal is gone
        return self._keys.feed(data)

    def _refresh(self) -> None:
        while not self._told.empty():
            prompt_id, text = self._told.get()
            pending = tuple(item for item in self._board.pending if item != prompt_id)
            self._board = replace(self._board, message=text, pending=pending)
        try:
            self._hub = self._hub or hub_client()
            found = self._hub.ask("prompts")
            queue = self._hub.request("queue").get("queue", ())  # nothing, where a hub is older than this command
        except HubUnavailable:
            self._hang_up()
            return
        if self._board.away:
            self._board = replace(self._board, message="the hub is back")
        self._ring_for(found["prompts"])
        left = tuple(item["prompt_id"] for item in found["still_waiting"])
        board = replace(self._board, away=False, left=left, queue=tuple(queue))
        self._board = board.refreshed(found["prompts"], self._clock.now())

    def _ring_for(self, prompts: list[dict[str, Any]]) -> None:
        """Once for what was not there at the last look."""
        known = {item["prompt_id"] for item in self._board.prompts}
        if self._rings and any(item["prompt_id"] not in known for item in prompts):
            self._screen.write("\a")

    def _hang_up(self) -> None:
        if self._hub is not None:
            self._hub.close()
            self._hub = None
        self._board = replace(self._board, away=True)

    def _draw(self) -> None:
        cols, rows = self._screen.size
        frame = render_frame(self._board, rows, cols)
        self._screen.write(paint(frame, "NO_COLOR" not in os.environ))
        self._board = self._board.drawn(frame.shown)

    def _press(self, key: Key) -> None:
        board = self._board
        if board.editing is not None:
            self._edit(board.editing, key)
        elif key.pasted:
            self._say("pasted text answers nothing: press t first")
        elif board.reviewing:
            self._confirm(board.reviewing, key.text)
        elif board.offer is not None:
            self._grant(board.offer, key.text)
        else:
            self._obey(decide_key(key.text, board.current))

    def _say(self, text: str) -> None:
        self._board = replace(self._board, message=text)

    def _obey(self, intention: Intention) -> None:
        now = self._clock.now()
        board = replace(self._board, message="")
        match intention.do:
            case "quit":
                self._goes_on = False
            case "suspend":
                self._screen.suspend()
            case "up" | "down":
                self._board = board.moved(-1 if intention.do == "up" else 1, now)
            case "page_up" | "page_down":
                self._board = board.scrolled(-1 if intention.do == "page_up" else 1)
            case "search":
                self._board = replace(board, editing=Editing("search", board.search))
            case "escape":
                self._board = replace(board, search="", marked=(), aside="").settled(now)
            case "mark":
                self._board = board.marking()
            case "view":
                self._board = board.turned("screen")
            case "queue":
                self._board = board.turned("queue")
            case "attach":
                self._attach()
            case "snooze":
                self._snooze()
            case "again":
                for prompt_id in board.left:
                    self._request(prompt_id, "ask_again")
            case "text" | "choose":
                self._begin(intention)
            case "grant":
                self._offer()
            case "answer":
                self._answer(intention.value)

    def _snooze(self) -> None:
        """It decides nothing: the selected one is asked again in a while."""
        if self._board.current is not None:
            self._request(self._board.current["prompt_id"], "snooze", for_s=SNOOZE_S)

    def _begin(self, intention: Intention) -> None:
        """A line for the selected prompt and for no other."""
        current = self._board.current
        hindrance = self._board.hindrance(self._clock.now())
        if current is None or hindrance:
            self._say(hindrance)
            return
        secret = bool(current["constraints"].get("secret")) and intention.do == "text"
        line = Editing(intention.do, intention.value, current["prompt_id"], secret)
        self._board = replace(self._board, editing=line, message="")

    def _offer(self) -> None:
        """What the hub would allow for a while stands in the place of the question until a key decides."""
        board, now = self._board, self._clock.now()
        hindrance = board.hindrance(now)
        if board.current is None or hindrance:
            self._say(hindrance)
            return
        prompt_id = board.current["prompt_id"]
        made = self._ask_grant(prompt_id, preview=True)
        if made["ok"]:
            self._board = board.offering(read_offer(prompt_id, made), now)
        else:
            self._say(visible(made["message"], keep_lines=False))

    def _ask_grant(self, prompt_id: str, **wanted: Any) -> dict[str, Any]:
        try:
            self._hub = self._hub or hub_client()
            return self._hub.request("grant.add", prompt_id=prompt_id, **wanted)
        except HubUnavailable:
            self._hang_up()
            return {"ok": False, "message": "the hub is away: nothing was granted"}

    def _grant(self, offer: Offer, key: str) -> None:
        now = self._clock.now()
        intention, span = decide_key(key, None), meant_span(key)
        if intention.do in ("page_up", "page_down"):
            self._board = self._board.scrolled(-1 if intention.do == "page_up" else 1)
        elif span is None:
            self._board = self._board.leave_offer(now, "nothing was granted")
        elif hindrance := self._board.hindrance(now):
            self._say(hindrance.replace("answered", "granted"))
        else:
            made = self._ask_grant(offer.prompt_id, for_s=span.for_s, times=span.times, folder=span.folder)
            said = f"granted: {made['words']}" if made["ok"] else made["message"]
            self._board = self._board.leave_offer(now, visible(said, keep_lines=False))

    def _edit(self, line: Editing, key: Key) -> None:
        now = self._clock.now()
        if key.pasted or key.text.isprintable():
            line = replace(line, text=line.text + key.text)
        elif key.text in ("\x7f", "\x08"):
            line = replace(line, text=line.text[:-1])
        elif key.text == "\x15":
            line = replace(line, text="")
        elif key.text in ("\x1b", "\x03"):
            cleared = replace(self._board, editing=None, message="")
            self._board = replace(cleared, search="").settled(now) if line.purpose == "search" else cleared
            return
        elif key.text in ("\r", "\n"):
            self._board = replace(self._board, editing=None)
            if line.purpose != "search":
                self._send(line.prompt_id, line.text, as_text=line.purpose == "text")
            return
        board = replace(self._board, editing=line)
        self._board = replace(board, search=line.text).settled(now) if line.purpose == "search" else board

    def _answer(self, value: str) -> None:
        board = self._board
        if board.current is None:
            return
        if not board.marked:
            hindrance = board.hindrance(self._clock.now())
            if hindrance:
                self._say(hindrance)
            else:
                self._send(board.current["prompt_id"], value)
        elif len(board.reviewed) != len(board.marked) or not same_meaning(board.reviewed, value):
            self._say(f"{value!r} does not mean the same to all that are marked; nothing was answered")
        else:
            self._board = board.review(value, self._clock.now())

    def _confirm(self, value: str, key: str) -> None:
        """All that are marked were shown: the same key again answers each of them for itself."""
        intention = decide_key(key, self._board.reviewed[0])
        if intention.do in ("page_up", "page_down"):
            self._board = replace(self._board, message="").scrolled(-1 if intention.do == "page_up" else 1)
            return
        if intention != Intention("answer", value):
            self._board = self._board.leave_review(self._clock.now(), "nothing was answered")
            return
        hindrance = self._board.hindrance(self._clock.now())
        if hindrance:
            self._say(hindrance)
            return
        chosen, self._board = self._board.marked, replace(self._board.leave_review(self._clock.now()), marked=())
        for prompt_id in chosen:
            self._send(prompt_id, value)

    def _send(self, prompt_id: str, value: str, as_text: bool = False) -> None:
        self._request(prompt_id, "reply", value=value, as_text=as_text)

    def _request(self, prompt_id: str, op: str, **fields: Any) -> None:
        """In a thread of its own: typing may take its time, and the list goes on."""
        self._board = replace(self._board, pending=(*self._board.pending, prompt_id), message="answering …")

        def send() -> None:
            try:
                with hub_client() as hub:
                    answer = hub.request(op, prompt_id=prompt_id, **fields)
                text = answer["message"] if answer.get("ok") else f"refused ({answer['reason']}): {answer['message']}"
            except HubUnavailable as error:
                text = f"whether the answer was taken is not known ({error}): look at the session"
            self._told.put((prompt_id, visible(str(text), keep_lines=False)))
            self._wake()

        threading.Thread(target=send, daemon=True, name="approvals-answer").start()

    def _attach(self) -> None:
        current: dict[str, Any] | None = self._board.current
        if current is None:
            return
        words = own_python("atlasbridge", "attach", current["session_id"])
        done: list[subprocess.CompletedProcess[bytes]] = []
        environ = own_environ(os.environ)
        self._screen.without(lambda: done.append(subprocess.run(words, env=environ, stderr=subprocess.PIPE)))
        said = done[0].stderr.decode(errors="replace").strip().removeprefix("atlasbridge: ")
        self._say(visible(said, keep_lines=False))
