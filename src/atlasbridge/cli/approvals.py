"""`atlasbridge approvals`: the open prompts, live, and answers by keystroke."""

from __future__ import annotations

import os
import select
import sys
import termios
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from getpass import getpass
from typing import Any

import click

from atlasbridge.cli.approvals_view import Board, Intention, decide_key, render_board
from atlasbridge.cli.printing import ago, hub_client, json_option, print_json, print_table
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.errors import HubUnavailable
from atlasbridge.core.values import replace


@click.command("approvals")
@click.option("--once", is_flag=True, help="Print the list and end.")
@json_option
def command(once: bool, as_json: bool) -> None:
    """Watch open prompts and answer them with a keystroke."""
    with hub_client(start=True) as hub:
        if as_json:
            print_json(hub.ask("prompts")["prompts"])
        elif once or not (sys.stdin.isatty() and sys.stdout.isatty()):
            found = hub.ask("prompts")
            print_list(found["prompts"])
            print_left(found["still_waiting"])
        else:
            Watch(hub).run()


def print_list(prompts: list[dict[str, Any]]) -> None:
    rows = [
        (
            item["prompt_id"][:8],
            item["tool"],
            item["type"],
            item["confidence"],
            ago(item["created_at"]),
            item["excerpt"],
        )
        for item in prompts
    ]
    print_table(("prompt", "tool", "type", "sure", "age", "question"), rows, "nothing is waiting for you")


def print_left(prompts: list[dict[str, Any]]) -> None:
    """What nobody answered in time and the tool still asks."""
    if prompts:
        rows = [(item["prompt_id"][:8], item["tool"], ago(item["created_at"]), item["excerpt"]) for item in prompts]
        print_table(("still waiting", "tool", "age", "question"), rows, "")
        click.echo("their time is over; ask again: atlasbridge reply ID --again")


class Watch:
    """The live list.  One thread listens for events and rings a bell; this one draws and reads keys."""

    def __init__(self, hub: HubClient) -> None:
        self._hub = hub
        self._clock = SystemClock()
        self._bell, self._ring = os.pipe()
        self._board = Board()
        self._gone = False

    def run(self) -> None:
        from rich.console import Console
        from rich.live import Live

        threading.Thread(target=self._listen, daemon=True, name="approvals-events").start()
        with keys_at_once(), Live(console=Console(), auto_refresh=False, transient=True) as live:
            self._refresh()
            while True:
                live.update(render_board(self._board), refresh=True)
                key = self._wait()
                if self._gone:
                    raise HubUnavailable("the hub went away", "start it with: atlasbridge hub start")
                if key and not self._obey(decide_key(key, self._board.current), live):
                    return

    def _listen(self) -> None:
        try:
            with hub_client() as events:
                for _ in events.stream("events", follow=True):
                    os.write(self._ring, b".")
        except HubUnavailable:
            pass  # told below, by the thread that draws
        self._gone = True
        os.write(self._ring, b"x")

    def _wait(self) -> str:
        """A key, or "" when something happened or a moment passed (ages change)."""
        ready, _, _ = select.select([sys.stdin, self._bell], [], [], 1.0)
        if self._bell in ready:
            os.read(self._bell, 4096)
        key = os.read(sys.stdin.fileno(), 16).decode(errors="replace") if sys.stdin in ready else ""
        self._refresh()
        return key

    def _refresh(self) -> None:
        self._board = self._board.refreshed(self._hub.ask("prompts")["prompts"], self._clock.now())

    def _obey(self, intention: Intention, live: Any) -> bool:
        match intention.do:
            case "quit":
                return False
            case "up" | "down":
                self._board = self._board.moved(-1 if intention.do == "up" else 1, self._clock.now())
            case "text":
                live.stop()
                with lines_as_usual():
                    text = self._ask_text()
                self._reply(text, as_text=True)
                live.start()
            case "answer" if self._board.armed(self._clock.now()):
                self._reply(intention.value)
        return True

    def _ask_text(self) -> str | None:
        current = self._board.current
        if current is None:
            return None
        try:
            return getpass("secret: ") if current["constraints"].get("secret") else input("text: ")
        except (EOFError, KeyboardInterrupt):
            return None

    def _reply(self, value: str | None, as_text: bool = False) -> None:
        current = self._board.current
        if value is None or current is None:
            return
        answer = self._hub.request("reply", prompt_id=current["prompt_id"], value=value, as_text=as_text)
        text = answer["message"] if answer.get("ok") else f"refused ({answer['reason']}): {answer['message']}"
        self._board = replace(self._board, message=text)
        self._refresh()


@contextmanager
def keys_at_once() -> Iterator[None]:
    """Keys without Enter and without echo, for as long as it lasts."""
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin.fileno(), termios.TCSANOW)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


@contextmanager
def lines_as_usual() -> Iterator[None]:
    """A whole line with echo, in the middle of keys at once."""
    before = termios.tcgetattr(sys.stdin)
    usual = [*before]
    usual[3] |= termios.ICANON | termios.ECHO
    try:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, usual)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)
