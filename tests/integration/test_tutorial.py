"""The tutorial's commands, run as it writes them: what it shows is what the program prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.support.hubs import hub_process
from tests.support.terminal import ATLASBRIDGE, Terminal

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
_CHANGES = [
    (r"\b[0-9a-f]{8}\b", "ID"),
    (r"\b\d\d:\d\d:\d\d\b", "TIME"),
    (r"\b\d+ (?:s|min)\b", "AGE"),
    (r"sha256:\S+", "HASH"),
    (r"\b\d+ entries", "N entries"),
    (r"(?m)(?<= )/.+$", "FOLDER"),
    (r"\b\d{2,7}\b", "PID"),
    (r"─+", "─"),
    (r" +", " "),
]


def steady(text: str) -> str:
    """Without what is different each time."""
    for pattern, word in _CHANGES:
        text = re.sub(pattern, word, text)
    return text.strip()


def shown_after(command: str) -> list[str]:
    """What the tutorial shows below each place where this command stands."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", TUTORIAL.read_text("utf-8"), re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            line, _, rest = part.partition("\n")
            if line.startswith(command):
                found.append(steady(rest))
    return found


def first_command() -> list[str]:
    (line,) = re.findall(r"^\$ atlasbridge (run -- .*)$", TUTORIAL.read_text("utf-8"), re.M)
    return [*ATLASBRIDGE, *shlex.split(line)]


def test_what_the_tutorial_shows_is_what_the_program_prints() -> None:
    with hub_process() as hub, Terminal(first_command(), hub.home.root) as terminal:
        assert shown_after("atlasbridge run --") == ["Continue? (y/n)"]
        terminal.wait_for("Continue? (y/n)")
        terminal.wait_until(hub.is_asked, "the question")
        prompt_id = hub.ask("prompts")["prompts"][0]["prompt_id"][:8]
        assert [steady(hub.cli("ps").stdout)] == shown_after("atlasbridge ps")
        answered = hub.cli("reply", prompt_id, "y")
        again = hub.cli("reply", prompt_id, "y")
        assert [steady(answered.stdout), steady(again.stderr)] == shown_after("atlasbridge reply")
        assert again.returncode == 3
        terminal.wait_for("got=y")
        assert terminal.wait_exit() == 0
        assert [steady(hub.cli("audit", "verify").stdout)] == shown_after("atlasbridge audit verify")
