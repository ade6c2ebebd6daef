"""Questions without a terminal while things die: the caller, the proxy, its agent or the hub, at any moment.

Every attempt to answer has a word of its own, so an answer that is lost, doubled or given to another is seen at once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.support.hubs import HubProcess
from tests.support.waiting import wait_for

from atlasbridge.core.errors import AtlasBridgeError, HubUnavailable

MOST_ATTEMPTS = 60
# asks for one permission, and keeps every line that it gets back; what it got in full counts
AGENT = """
import sys
sys.stdout.write(sys.argv[1] + "\\n"); sys.stdout.flush()
for line in sys.stdin:
    with open(sys.argv[2], "a") as heard: heard.write(line)
    break
"""

CALLER = """
import sys
from atlasbridge.client import Client
said = Client(url=sys.argv[1], token=sys.argv[2]).ask(sys.argv[3], text=True, ttl_s=600)
print(said.words)
sys.exit(0 if said else 1)
"""

# an MCP client of a few lines, in a process of its own: anyone who starts the server counts as the one that asks
MCP_CALLER = """
import json, subprocess, sys
server = subprocess.Popen(
    [sys.executable, "-m", "atlasbridge", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
)
def say(**message):
    try:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n"); server.stdin.flush()
    except BrokenPipeError:
        sys.exit(1)
say(id=0, method="initialize", params={"protocolVersion": "2025-06-18", "capabilities": {},
    "clientInfo": {"name": "rounds", "version": "1"}})
asked = {"question": sys.argv[1], "free_text": True, "ttl_s": 600}
for line in server.stdout:
    message = json.loads(line)
    if message.get("id") == 0:
        say(method="notifications/initialized")
        say(id=1, method="tools/call", params={"name": "ask_human", "arguments": asked})
    elif message.get("id") == 1:
        result = message.get("result", {})
        failed = "error" in message or result.get("isError")
        print(message if failed else result["content"][0]["text"], file=sys.stderr if failed else sys.stdout)
        sys.exit(1 if failed else 0)
sys.exit(1)
"""


def open_prompts(hub: HubProcess) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = hub.ask("prompts")["prompts"]
    except AtlasBridgeError:
        return []  # a hub that is just dying or starting
    return found


def ask_many(hub: HubProcess, count: int) -> None:
    """All at once: every caller gets its own answer."""
    callers = [hub.popen("ask", f"Say w{number}?", "--text", "--ttl", "10m") for number in range(count)]
    while any(caller.poll() is None for caller in callers):
        for prompt in open_prompts(hub):
            word = prompt["excerpt"].split()[-1].rstrip("?")
            try:
                hub.ask("reply", prompt_id=prompt["prompt_id"], value=word, as_text=True)
            except AtlasBridgeError:
                continue  # it ended meanwhile
    for number, caller in enumerate(callers):
        out, err = caller.communicate()
        assert (out, caller.returncode) == (f"w{number}\n", 0), (number, out, err)


class Answering:
    """A person who answers again and again until nobody asks; each attempt says something else."""

    def __init__(self, hub: HubProcess, word: Callable[[int], str], as_text: bool) -> None:
        self._hub, self._word, self._as_text = hub, word, as_text
        self.attempts = 0
        self.taken: list[str] = []
        self.unknown: list[str] = []  # the hub died before it said what became of them

    def once(self) -> None:
        for prompt in open_prompts(self._hub):
            self.attempts = min(self.attempts + 1, MOST_ATTEMPTS)
            word = self._word(self.attempts)
            try:
                self._hub.ask("reply", prompt_id=prompt["prompt_id"], value=word, as_text=self._as_text)
            except HubUnavailable:
                self.unknown.append(word)
            except AtlasBridgeError:
                continue  # refused: it ended meanwhile
            else:
                self.taken.append(word)

    def check(self, heard: list[str], must_hear: bool) -> None:
        """One answer at most was taken, and who asked heard that one and no other."""
        assert len(self.taken) <= 1 and len(heard) <= 1, (self.taken, self.unknown, heard)
        if self.taken:
            assert heard in ([], self.taken) and (heard or not must_hear), (self.taken, self.unknown, heard)
        elif heard:
            assert heard[0] in self.unknown, (self.unknown, heard)
        assert heard or not must_hear, (self.taken, self.unknown)


class AskQuestion:
    """`atlasbridge ask`."""

    victims: tuple[str, ...] = ("hub", "hub twice", "caller", "none")
    moments: tuple[str, ...] = ("before", "asked", "answering", "answering")

    def __init__(self, hub: HubProcess, number: int, folder: Path) -> None:
        self.caller = hub.popen("ask", f"Question {number}?", "--text", "--ttl", "10m")
        self.answering = Answering(hub, lambda attempt: f"w{number}-{attempt}", as_text=True)

    def kill(self, victim: str) -> None:
        self.caller.kill()

    def end(self, lives: bool) -> list[str]:
        out, err = self.caller.communicate()
        if lives:
            assert self.caller.returncode == 0, (out, err, self.caller.returncode)
        return out.split()


class WebQuestion(AskQuestion):
    """The client library over HTTP, as a program elsewhere would use it.  It starts no hub: before it has asked, one
    that is not there is an error."""

    moments = ("asked", "answering", "answering")

    def __init__(self, hub: HubProcess, number: int, folder: Path) -> None:
        token = folder / "token"
        if not token.exists():
            token.write_text(hub.cli("token", "create", f"rounds-{folder.name}", "--scope", "ask").stdout.strip())
        url = json.loads((hub.home.root / "web.json").read_text())["url"]
        self.caller = subprocess.Popen(
            [sys.executable, "-c", CALLER, url, token.read_text(), f"Question {number}?"],
            env=hub.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.answering = Answering(hub, lambda attempt: f"w{number}-{attempt}", as_text=True)


class McpQuestion(AskQuestion):
    """`atlasbridge mcp`, started by a client that calls one tool and waits."""

    victims = ("hub", "hub twice", "caller", "server", "none")

    def __init__(self, hub: HubProcess, number: int, folder: Path) -> None:
        self.caller = subprocess.Popen(
            [sys.executable, "-c", MCP_CALLER, f"Question {number}?"],
            env=hub.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.answering = Answering(hub, lambda attempt: f"w{number}-{attempt}", as_text=True)

    def kill(self, victim: str) -> None:
        if victim == "server":
            kill_children(self.caller.pid)
        else:
            self.caller.kill()


class AcpQuestion:
    """`atlasbridge acp` with an agent that asks for one permission."""

    victims = ("hub", "hub twice", "proxy", "agent", "none")
    moments: tuple[str, ...] = AskQuestion.moments

    def __init__(self, hub: HubProcess, number: int, folder: Path) -> None:
        self._heard = folder / f"heard-{number}"
        options = [
            {"optionId": f"w{number}-{at}", "name": f"Way {at}", "kind": "allow_once"}
            for at in range(1, MOST_ATTEMPTS + 1)
        ]
        params = {"sessionId": "s", "toolCall": {"toolCallId": "c", "title": f"Question {number}"}, "options": options}
        request = {"jsonrpc": "2.0", "id": number, "method": "session/request_permission", "params": params}
        agent = [sys.executable, "-c", AGENT, json.dumps(request), str(self._heard)]
        self.caller = subprocess.Popen(
            hub.command("acp", "--", *agent),
            env=hub.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._reading = threading.Thread(target=self._read, daemon=True)  # an editor that does nothing
        self._reading.start()
        self.answering = Answering(hub, lambda attempt: str(attempt), as_text=False)
        self._number = number

    def _read(self) -> None:
        assert self.caller.stdout is not None
        for _ in self.caller.stdout:
            pass

    def kill(self, victim: str) -> None:
        if victim == "proxy":
            self.caller.kill()
            return
        kill_children(self.caller.pid)

    def end(self, lives: bool) -> list[str]:
        assert self.caller.stdin is not None and self.caller.stdout is not None
        self.caller.wait(60)
        self._reading.join(60)
        self.caller.stdin.close()
        self.caller.stdout.close()
        if lives:
            assert self.caller.returncode == 0, self.caller.returncode
        lines = self._heard.read_text().splitlines(keepends=True) if self._heard.exists() else []
        chosen = [json.loads(line)["result"]["outcome"]["optionId"] for line in lines if line.endswith("\n")]
        return [word.rpartition("-")[2] for word in chosen if word.startswith(f"w{self._number}-")] or chosen


KINDS: tuple[type[AskQuestion] | type[AcpQuestion], ...] = (AskQuestion, WebQuestion, McpQuestion, AcpQuestion)


def kill_children(pid: int) -> None:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    for child in children.read_text().split() if children.exists() else ():
        try:
            os.kill(int(child), 9)
        except ProcessLookupError:
            pass  # it ended by itself


def kill_rounds(hub: HubProcess, rounds: int, chance: Random) -> Counter[str]:
    """Kill -9 somewhere in the life of a question; counts how the questions ended.  The hub has a page with a port of
    its own."""
    ended: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            kind = chance.choice(KINDS)
            victim = chance.choice(kind.victims)
            died = _round(hub, kind(hub, number, Path(folder)), victim, chance)
            ended[f"{kind.__name__[:3].lower()}, {victim} killed, {'left' if died else 'answered'}"] += 1
            wait_for(lambda: not open_prompts(hub))
    return ended


def _round(hub: HubProcess, open_question: AskQuestion | AcpQuestion, victim: str, chance: Random) -> bool:
    """True: who asked died before it could hear."""
    moment = chance.choice(open_question.moments)
    if moment != "before":
        wait_for(lambda: bool(open_prompts(hub)))
    first = threading.Thread(target=open_question.answering.once)
    if moment == "answering":
        first.start()
    _pause(
        open_question.caller,
        chance.choice([0.0, 0.0, 0.002, 0.005, 0.01, 0.02, 0.1, 0.5 if moment == "before" else 0.05]),
    )
    lives = victim.startswith("hub") or victim == "none" or open_question.caller.poll() is not None
    if victim.startswith("hub"):
        _kill_hub(hub)
        hub.start()
        if victim == "hub twice":
            _pause(open_question.caller, chance.choice([0.0, 0.01, 0.1, 0.3]))
            _kill_hub(hub)
            hub.start()
    elif victim != "none" and open_question.caller.poll() is None:
        open_question.kill(victim)
    if moment == "answering":
        first.join()
    while open_question.caller.poll() is None:
        open_question.answering.once()
    heard = open_question.end(lives)
    open_question.answering.check(heard, must_hear=lives)
    return not heard


def _kill_hub(hub: HubProcess) -> None:
    if hub.pid:
        try:
            hub.kill_9()
        except ProcessLookupError:
            pass  # it was on its way out


def _pause(caller: subprocess.Popen[str], pause_s: float) -> None:
    """At once or a little later: somewhere between the claim and the handing over."""
    try:
        caller.wait(pause_s) if pause_s else None
    except subprocess.TimeoutExpired:
        pass
