"""The strong set-up from beginning to end, as root inside a mount namespace of its own: prints one JSON object.

Users, /etc, /run and /var/lib are this namespace's own, so nothing of it is left on the machine.  The person is `dev`;
their tool is this very file with the word `attack`, run inside a session of theirs.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import pwd
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.support import hostile_tool, page_person

HUB_HOME = "/var/lib/atlasbridge"
SOCKET = "/run/atlasbridge/hub.sock"
SETUP = "/etc/atlasbridge/system"
DEV_HOME = "/home/dev"
CONFIG = """[channels.web]
port = 0

[channels.telegram]
enabled = false
bot_token = "123456:CANARY-token"

[session]
detach_key = "^] d"
"""
ENVIRON = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "ATLASBRIDGE_SESSION_ZYGOTE": "0"}
if "PYTHONPATH" in os.environ:
    ENVIRON["PYTHONPATH"] = os.environ["PYTHONPATH"]


def ours(*words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "atlasbridge", *words]


def as_root(*words: str) -> dict[str, Any]:
    home = pwd.getpwuid(os.getuid()).pw_dir
    done = subprocess.run(ours(*words), env={**ENVIRON, "HOME": home}, capture_output=True, text=True)
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr}


def command_of(user: str, *words: str) -> list[str]:
    return [
        "setpriv",
        "--reuid",
        user,
        "--regid",
        user,
        "--init-groups",
        "--bounding-set=-all",
        "--inh-caps=-all",
        *words,
    ]


def as_dev(*words: str) -> dict[str, Any]:
    return run_as("dev", *ours(*words))


def run_as(user: str, *words: str) -> dict[str, Any]:
    home = f"/home/{user}"
    done = subprocess.run(
        command_of(user, *words), env={**ENVIRON, "HOME": home}, cwd=home, capture_output=True, text=True,
    )  # fmt: skip
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr}


def until(condition: Any, what: str, patience_s: float = 60.0) -> Any:
    deadline = time.monotonic() + patience_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} never came; hub: {tail(f'{HUB_HOME}/hub.log')}"
        time.sleep(0.2)
    return found


def tail(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text(errors="replace")[-2000:]
    return ""


def prompts() -> list[dict[str, Any]]:
    return list(json.loads(as_dev("approvals", "--json")["out"] or "[]"))


def ask_in_session(script: str) -> str:
    """A session of dev's whose program asks; the prompt's id."""
    known = {one["prompt_id"] for one in prompts()}
    started = as_dev("run", "--detach", "bash", "-c", script)
    assert started["code"] == 0, started
    new = until(lambda: [one for one in prompts() if one["prompt_id"] not in known], "the question")
    return str(new[0]["prompt_id"])


# what a tool tries


def attempt(work: Any) -> str:
    """ "" where it worked."""
    try:
        return work() or ""
    except OSError as error:
        return type(error).__name__


def refused(*words: str) -> str:
    done = subprocess.run(ours(*words), capture_output=True, text=True)
    return (done.stderr or done.stdout).strip() if done.returncode else ""


def replace_socket() -> str:
    own = socket.socket(socket.AF_UNIX)
    own.bind(f"{SOCKET}.false")
    own.listen()
    os.rename(f"{SOCKET}.false", SOCKET)
    return ""


def attack(prompt_id: str, hub_pid: int) -> None:
    """Inside dev's session, as dev; the results go to a file, then it asks."""
    tried = {**attempts(prompt_id, hub_pid), **ways(Path(DEV_HOME))}
    Path(f"{DEV_HOME}/attacks.json").write_text(json.dumps(tried))
    input("Attacks are over. Continue? [y/N] ")


def ways(folder: Path) -> dict[str, str]:
    """The attacks of hostile_tool on the hub's socket and on those of hosts, and the login that a browser has kept."""
    came = hostile_tool.many_ways(Path(SOCKET).parent, folder)
    worked = ("answered", "{'ok': True", "descriptors", "opened: [0")
    tried = {f"way: {name}": "" if said.startswith(worked) else said for name, said in came.items()}
    Path(folder, "came.json").write_text(json.dumps(came))
    port = int(Path(folder, "port").read_text())
    status, said = hostile_tool.send_reply(
        Path(SOCKET).parent, folder, lambda: socket.create_connection(("127.0.0.1", port), 20)
    )
    return {**tried, "decide with the login of a browser": f"{status} {said}" if status != 200 else ""}


def attempts(prompt_id: str, hub_pid: int) -> dict[str, str]:
    """ "" where one has worked."""
    files = ["atlasbridge.db", "audit.log", "audit.head", "config.toml", "policy.toml", "hub.lock", "web.json"]
    tried = {f"read {name}": attempt(lambda name=name: open(f"{HUB_HOME}/{name}").close()) for name in files}
    tried |= {f"write {name}": attempt(lambda name=name: open(f"{HUB_HOME}/{name}", "a").close()) for name in files}
    tried |= {
        "replace the socket": attempt(replace_socket),
        "remove the socket": attempt(lambda: os.unlink(SOCKET)),
        "change the set-up": attempt(lambda: open(SETUP, "a").close()),
        "replace the set-up": attempt(lambda: Path(f"{SETUP}.new").write_text("") and ""),
        "kill the hub": attempt(lambda: os.kill(hub_pid, signal.SIGKILL)),
        "stop the hub": attempt(lambda: os.kill(hub_pid, signal.SIGSTOP)),
        "read the hub's memory": attempt(lambda: open(f"/proc/{hub_pid}/mem").close()),
        "read the hub's environment": attempt(lambda: Path(f"/proc/{hub_pid}/environ").read_text() and ""),
        "answer": refused("reply", prompt_id[:8], "y"),
        "answer, cut loose": refused_alone("reply", prompt_id[:8], "y"),
        "let a browser in": refused("web", "--no-open"),
        "make a token": refused("token", "create", "x", "--scope", "admin"),
        "enrol a passkey": refused("passkey", "add", "--no-qr"),
        "reload the rules": refused("hub", "reload"),
        "stop the service": refused("hub", "stop"),
        "take it all back": refused("hub", "uninstall", "--system"),
    }
    return tried


def refused_alone(*words: str) -> str:
    """The same by a grandchild whose parents have ended."""
    out = os.path.expanduser("~/alone.out")
    if os.fork() == 0:
        os.setsid()
        parent = os.getpid()
        if os.fork() == 0:
            while os.getppid() == parent:
                time.sleep(0.05)
            done = subprocess.run(ours(*words), capture_output=True, text=True)
            Path(out + ".part").write_text(f"{done.returncode}\n{done.stderr or done.stdout}")
            os.rename(out + ".part", out)
        os._exit(0)
    os.wait()
    deadline = time.monotonic() + 60
    while not os.path.exists(out) and time.monotonic() < deadline:
        time.sleep(0.1)
    code, _, said = Path(out).read_text().partition("\n")
    return said.strip() if code != "0" else ""


def outsider_of_default(token: str, prompt_id: str) -> dict[str, str]:
    """Another account against a hub in the default set-up; "" where one has worked.  It has found a token."""
    own = f"{DEV_HOME}/.atlasbridge"
    names = ["atlasbridge.db", "audit.log", "config.toml", "hub.lock", "web.json", "hub.sock", "web.sock"]
    tried = {f"read {name}": attempt(lambda name=name: open(f"{own}/{name}").close()) for name in names}
    tried |= {f"write {name}": attempt(lambda name=name: open(f"{own}/{name}", "a").close()) for name in names}
    tried |= {
        f"speak to {name}": attempt(lambda name=name: speak(f"{own}/{name}")) for name in ("hub.sock", "web.sock")
    }
    tried |= {
        "list the folder": attempt(lambda: os.listdir(own) and ""),
        "replace the socket": attempt(lambda: os.rename(__file__, f"{own}/hub.sock") or ""),
    }
    for pid in pids_of("dev"):
        name = f"{Path(f'/proc/{pid}/comm').read_text().strip()} {pid}"
        tried |= {
            f"stop {name}": attempt(lambda pid=pid: os.kill(pid, signal.SIGSTOP) or ""),
            f"read the memory of {name}": attempt(lambda pid=pid: open(f"/proc/{pid}/mem").close()),
            f"read the environment of {name}": attempt(
                lambda pid=pid: Path(f"/proc/{pid}/environ").read_bytes() and ""
            ),
            f"open the files of {name}": attempt(lambda pid=pid: os.listdir(f"/proc/{pid}/fd") and ""),
            f"trace {name}": attempt(lambda pid=pid: hostile_tool.trace(pid) or ""),
        }
    for port in listening():
        tried[f"answer with a token at port {port}"] = by_token(port, token, prompt_id)
    return tried


def speak(path: str) -> str:
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(path)
        return ""


def pids_of(user: str) -> list[int]:
    uid = pwd.getpwnam(user).pw_uid
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and uid_of(name) == uid]


def uid_of(pid: str) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/status").read_text().partition("Uid:")[2].split()[0])
    return -1


def listening() -> list[int]:
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [
        int(row[1].partition(":")[2], 16)
        for row in rows
        if row[3] == "0A" and int(row[7]) == pwd.getpwnam("dev").pw_uid
    ]


def by_token(port: int, token: str, prompt_id: str) -> str:
    import httpx

    answer = httpx.post(
        f"http://127.0.0.1:{port}/api/v1/prompts/{prompt_id}/reply",
        headers={"Authorization": f"Bearer {token}"},
        json={"value": "y", "request_key": "0123456789abcdef"},
        timeout=20,
    )
    return "" if answer.status_code == 200 else f"{answer.status_code} {answer.text}"


def default_hub() -> dict[str, Any]:
    """Before anything is installed: dev has a hub of their own, and eve is another account of the machine."""
    asked = ask_in_session('read -p "Delete build? [y/N] " a; echo "$a" > default-answer')
    token = json.loads(as_dev("token", "create", "ci", "--scope", "answer", "--json")["out"])["token"]
    other = run_as("eve", sys.executable, "-P", __file__, "outsider of default", token, asked)
    assert other["code"] == 0, other
    told = {"tried": json.loads(other["out"]), "answered": os.path.exists(f"{DEV_HOME}/default-answer")}
    told["still asked"] = asked in {one["prompt_id"] for one in prompts()}
    assert as_dev("reply", asked, "n")["code"] == 0
    until(lambda: json.loads(as_dev("ps", "--json")["out"] or "[]") == [], "the session's end")
    as_dev("hub", "stop")
    return told


def opened_page(prompt_id: str) -> dict[str, Any]:
    """`atlasbridge web` as a member: the link goes to a browser of theirs, and works for nobody else."""
    script = Path(DEV_HOME, "browser")
    script.write_text(
        f'#!/bin/sh\nprintf %s "$1" > {DEV_HOME}/opened.new && mv {DEV_HOME}/opened.new {DEV_HOME}/opened\n'
    )
    script.chmod(0o755)
    shown = {"BROWSER": f"{script} %s", "DISPLAY": ":7"}
    words = ["env", *(f"{name}={value}" for name, value in shown.items()), *ours("web", "--open")]
    told: dict[str, Any] = {"web": run_as("dev", *words)}
    link = until(lambda: tail(f"{DEV_HOME}/opened"), "the browser")
    person = [sys.executable, "-P", page_person.__file__, link, prompt_id, "perhaps"]
    told["eve"] = run_as("eve", *person)
    told["dev"] = run_as("dev", *person)
    return told


def page_login(prompt_id: str, value: str) -> dict[str, Any]:
    """A browser of dev's, outside of every session: logs in by a link and answers."""
    link = json.loads(as_dev("web", "--no-open", "--json")["out"])["links"]["local"]
    done = run_as("dev", sys.executable, "-P", page_person.__file__, link, prompt_id, value)
    assert done["code"] == 0, done
    return {**json.loads(done["out"]), "port": link.partition("/#")[0].rpartition(":")[2]}


def outsider(prompt_id: str, hub_pid: int) -> dict[str, str]:
    """As a user who is no member; plainly at the socket, too."""
    tried = attempts(prompt_id, hub_pid)
    try:
        said = hostile_tool.reply(Path(SOCKET).parent, prompt_id)
    except (OSError, ValueError) as error:
        said = f"hung up: {error}"
    of_their_hub = ("let a browser in", "make a token", "enrol a passkey", "reload the rules", "stop the service")
    tried = {name: why for name, why in tried.items() if name not in of_their_hub}
    return {**tried, "plainly": "" if "'ok': True" in said else said}


MORE = ("environment", "own terminal", "pid namespace", "outlive host")


def attack_alone(name: str) -> Any:
    """One attack of hostile_tool in a session of its own; what came of it."""
    folder = Path(DEV_HOME, name.replace(" ", "-"))
    folder.mkdir()
    (folder / "system").touch()
    os.chown(folder, pwd.getpwnam("dev").pw_uid, -1)
    words = [sys.executable, "-P", hostile_tool.__file__, name, str(Path(SOCKET).parent), str(folder)]
    assert as_dev("run", "--detach", "--", *words)["code"] == 0
    return json.loads(until(lambda: (folder / "done").exists() and (folder / "done").read_text(), name))


def install_over_a_link(own: Path) -> dict[str, Any]:
    """Dev's tool has put a link to a folder of root's in the place of dev's own, and waits for root."""
    roots = Path("/var/lib/of-root")
    roots.mkdir(mode=0o700)
    for name in ("config.toml", "policy.toml"):
        (roots / name).write_text("# CANARY-of-root\n")
    own.rename(own.with_name("aside"))
    own.symlink_to(roots)
    installed = as_root("hub", "install", "--system", "--for", "dev")
    taken = [str(path) for path in Path(HUB_HOME).rglob("*") if path.is_file() and b"CANARY-of-" in path.read_bytes()]
    uninstalled = as_root("hub", "uninstall", "--system")
    left = {path.name: (path.read_text(), path.stat().st_uid) for path in sorted(roots.iterdir())}
    own.unlink()
    own.with_name("aside").rename(own)
    return {"install": installed, "taken": taken, "uninstall": uninstalled, "left": left}


def story() -> dict[str, Any]:
    told: dict[str, Any] = {}
    subprocess.run(["useradd", "-m", "-d", DEV_HOME, "-s", "/bin/bash", "dev"], check=True, capture_output=True)
    own = Path(DEV_HOME) / ".atlasbridge"
    own.mkdir(mode=0o700)
    (own / "config.toml").write_text(CONFIG)
    (own / "config.toml").chmod(0o600)
    subprocess.run(["chown", "-R", "dev:dev", str(own)], check=True)
    subprocess.run(["useradd", "-m", "-d", "/home/eve", "-s", "/bin/bash", "eve"], check=True, capture_output=True)
    told["default"] = default_hub()
    told["install"] = as_root("hub", "install", "--system", "--for", "dev")
    assert told["install"]["code"] == 0, told["install"]
    told["config left"] = (own / "config.toml").read_text()
    hub_pid = int(Path(f"{HUB_HOME}/hub.lock").read_text())
    status = Path(f"/proc/{hub_pid}/status").read_text()
    told["hub uid"] = next(line.split()[1] for line in status.splitlines() if line.startswith("Uid"))
    told["capabilities"] = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff"))
    told["modes"] = {path: oct(os.stat(path).st_mode & 0o7777) for path in (HUB_HOME, "/run/atlasbridge", SETUP)}
    told["doctor"] = as_dev("doctor", "--json")["out"]
    told["again"] = as_root("hub", "install", "--system", "--for", "dev")
    hub_pid = int(Path(f"{HUB_HOME}/hub.lock").read_text())

    asked = ask_in_session('read -p "Delete build? [y/N] " a; echo "$a" > page-answer')
    login = page_login(asked, "y")
    told["page"] = login
    until(lambda: os.path.exists(f"{DEV_HOME}/page-answer"), "the page's answer")
    told["page answer"] = until(lambda: Path(f"{DEV_HOME}/page-answer").read_text().strip(), "its text")
    until(lambda: asked not in {one["prompt_id"] for one in prompts()}, "the end of that question")
    for name, text in (("found", json.dumps(login)), ("sessions", f"{DEV_HOME}/.atlasbridge/sessions")):
        Path(DEV_HOME, name).write_text(text)
        os.chmod(f"{DEV_HOME}/{name}", 0o644)
    Path(DEV_HOME, "port").write_text(login["port"])
    person = subprocess.Popen(
        command_of("dev", *ours("events", "--follow")), env={**ENVIRON, "HOME": DEV_HOME}, stdout=subprocess.DEVNULL
    )
    Path(DEV_HOME, "person").write_text(str(person.pid))

    first = ask_in_session('read -p "Overwrite config? [y/N] " a; echo "$a" > answer')
    words = f"exec '{sys.executable}' -P '{__file__}' attack {first} {hub_pid}"
    known = {one["prompt_id"] for one in prompts()}
    assert as_dev("run", "--detach", "bash", "-c", words)["code"] == 0
    until(lambda: os.path.exists(f"{DEV_HOME}/attacks.json"), "the attacks", 240.0)
    told["attacks"] = json.loads(Path(f"{DEV_HOME}/attacks.json").read_text())
    told["came"] = json.loads(Path(f"{DEV_HOME}/came.json").read_text())
    told["typed by an attack"] = os.path.exists(f"{DEV_HOME}/answer")
    told["still asked"] = first in {one["prompt_id"] for one in prompts()}
    told["second"] = bool(until(lambda: [one for one in prompts() if one["prompt_id"] not in known], "the end"))

    told["more attacks"] = {name: attack_alone(name) for name in MORE}
    told["still asked after more"] = first in {one["prompt_id"] for one in prompts()}
    person.kill()
    told["opened"] = opened_page(first)
    other = run_as("eve", sys.executable, "-P", __file__, "outsider", first, str(hub_pid))
    assert other["code"] == 0, other
    told["attacks of another account"] = json.loads(other["out"])
    run_as("eve", *ours("hub", "stop"))

    told["reply"] = as_dev("reply", first[:8], "y")
    until(lambda: os.path.exists(f"{DEV_HOME}/answer"), "the answer")
    told["answer"] = until(lambda: Path(f"{DEV_HOME}/answer").read_text().strip(), "the answer's text")
    told["dev audit"] = as_dev("audit", "verify")
    told["dev audit show"] = as_dev("audit", "show", "--event", "REPLY_RECEIVED", "--json")["out"]
    told["root audit"] = as_root("audit", "verify")
    told["passkey"] = as_root("passkey", "add", "--json")
    told["root config"] = as_root("config", "set", "prompts.timeout_seconds", "1200")
    told["config owner"] = os.stat(f"{HUB_HOME}/config.toml").st_uid == os.stat(HUB_HOME).st_uid

    os.kill(hub_pid, signal.SIGKILL)  # root may; the loop starts it again, and sessions come back
    until(lambda: int(Path(f"{HUB_HOME}/hub.lock").read_text() or 0) not in (0, hub_pid), "the next hub")
    told["asked again"] = bool(until(prompts, "what waits, at the next hub"))
    told["stop"] = as_root("hub", "stop")
    told["start"] = as_root("hub", "start")

    told["sudo only"] = as_root("hub", "install", "--system", "--for", "dev", "--sudo-only")
    until(prompts, "the hub")
    last = ask_in_session('read -p "Overwrite all? [y/N] " a; echo "$a" > sudo-answer')
    told["without sudo"] = as_dev("reply", last[:8], "y")
    told["not answered without sudo"] = not os.path.exists(f"{DEV_HOME}/sudo-answer")
    told["with sudo"] = as_root("reply", last[:8], "y")
    until(lambda: os.path.exists(f"{DEV_HOME}/sudo-answer") or told["with sudo"]["code"], "sudo's answer")
    told["sudo answer"] = tail(f"{DEV_HOME}/sudo-answer").strip()

    told["uninstall"] = as_root("hub", "uninstall", "--system")
    told["left"] = [path for path in (HUB_HOME, "/run/atlasbridge", "/etc/atlasbridge") if os.path.exists(path)]
    told["left"] += glob.glob("/etc/cron.d/atlasbridge*") + glob.glob("/etc/systemd/system/atlasbridge*")
    told["users left"] = [
        line for line in Path("/etc/passwd").read_text().splitlines() if line.startswith("atlasbridge")
    ]
    told["groups left"] = [
        line for line in Path("/etc/group").read_text().splitlines() if line.startswith("atlasbridge")
    ]
    told["config back"] = (own / "config.toml").read_text()
    told["config mode"] = oct((own / "config.toml").stat().st_mode & 0o777)
    told["linked"] = install_over_a_link(own)
    for one in json.loads(as_dev("ps", "--json")["out"] or "[]"):
        as_dev("kill", one["session_id"][:8])
    as_dev("hub", "stop")
    return told


if __name__ == "__main__":
    if sys.argv[1:2] == ["attack"]:
        attack(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1:2] == ["outsider"]:
        sys.stdout.write(json.dumps(outsider(sys.argv[2], int(sys.argv[3]))))
    elif sys.argv[1:2] == ["outsider of default"]:
        sys.stdout.write(json.dumps(outsider_of_default(sys.argv[2], sys.argv[3])))
    else:
        sys.stdout.write(json.dumps(story()))
