"""A tool that asks, and tries to decide for itself: started by a session, it leaves its children in every way it can.

Run as `python self_answer.py FOLDER`.  Each child waits until the question is asked, tries every operation that decides
something, and writes what it was told to FOLDER/MANNER.json.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from atlasbridge.core import wire
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.home import Home
from atlasbridge.core.process import send_with_fds

MANNERS = ("child", "daemon", "nohup", "bare")
HOME = "HOME_OF_THE_HUB"


def leave(manner: str, folder: str, program: str = __file__) -> None:
    """Start a child of ours in this manner; it must not be an obvious one."""
    command = [sys.executable, "-P", program, folder, manner]  # -P: a neighbour of this file is called operator
    if manner == "child":
        subprocess.Popen(command)
        return
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    for standard in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), standard)
    if manner == "nohup":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if manner == "bare":
        kept = {name: os.environ[name] for name in (HOME, "PYTHONPATH") if name in os.environ}
        os.execve(sys.executable, command, kept)
    os.execv(sys.executable, command)


def try_everything(home: Home) -> dict[str, Any]:
    prompt = wait_for_prompt(home)
    session_id = prompt["session_id"]
    return {
        "reply": ask(home, "reply", prompt_id=prompt["prompt_id"], value="y"),
        "keys": ask(home, "reply", prompt_id=prompt["prompt_id"], value="y", as_keys=True),
        "cancel": ask(home, "reply", prompt_id=prompt["prompt_id"], value="cancel"),
        "page": ask(home, "page"),
        "reload": ask(home, "reload"),
        "kill": ask(home, "kill", session_id=session_id),
        "stop": ask(home, "stop"),
        "unheard_of": ask(home, "grant", shape="*"),
        "attach": attach(home, session_id),
        "look": ask(home, "sessions"),
    }


def ask(home: Home, op: str, **fields: Any) -> dict[str, Any]:
    with HubClient(home) as hub:
        return hub.request(op, **fields)


def wait_for_prompt(home: Home) -> dict[str, Any]:
    while not (prompts := ask(home, "prompts")["prompts"]):
        time.sleep(0.02)
    return dict(prompts[0])


def attach(home: Home, session_id: str) -> dict[str, Any]:
    """Sit down at the session's terminal as a person would, with "y" already typed."""
    keys, typed = os.pipe()
    os.write(typed, b"y\n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(10)
        connection.connect(str(home.sessions / f"{session_id[:8]}.sock"))
        attach = wire.encode({"m": "attach", "rows": 24, "cols": 80})
        send_with_fds(connection, attach, (keys, os.open(os.devnull, os.O_WRONLY)))
        buffer = wire.LineBuffer()
        for _ in range(2):
            for message in buffer.feed(connection.recv(65536)):
                if message["m"] == "failed":
                    return {"ok": False, "reason": "self", "message": message["text"]}
    return {"ok": True}


def main() -> None:
    folder = sys.argv[1]
    if len(sys.argv) > 2:
        result = try_everything(Home(Path(os.environ[HOME])))
        draft = Path(folder) / f"{sys.argv[2]}.draft"
        draft.write_text(json.dumps(result))
        draft.rename(draft.with_suffix(".json"))
        return
    for manner in MANNERS:
        leave(manner, folder)
    print("answered:", input("Delete everything? [y/N] "), flush=True)


if __name__ == "__main__":
    main()
