"""Rules and grants with the real Claude Code and Codex, offline against the mock model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atlasbridge.lab.stage import Stage

pytestmark = [pytest.mark.tools, pytest.mark.timeout(400)]
DEFAULT_TOOLS = Path(__file__).parents[2] / ".venv" / "tools"
ALLOW = '[[rule]]\nname = "touch"\nverdict = "allow"\ncommand = ["touch", "made-by-bash.txt"]\n'
DENY = '[[rule]]\nname = "no-touch"\nverdict = "deny"\ncommand = ["touch", "**"]\nreason = "make no files here"\n'


@pytest.fixture(autouse=True, scope="module")
def installed_tools() -> None:
    os.environ.setdefault("ATLASBRIDGE_TOOLS", str(DEFAULT_TOOLS))


def with_rules(text: str) -> Callable[[Path, Path], None]:
    def prepare(home: Path, folder: Path) -> None:
        (home.parent / "b" / "policy.toml").write_text(text)

    return prepare


def command(stage: Stage, *words: str) -> Any:
    done = subprocess.run(
        (sys.executable, "-m", "atlasbridge", *words, "--json"),
        env=stage.env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def sources(stage: Stage) -> list[str]:
    shown = command(stage, "audit", "show")
    entries = shown["entries"] if isinstance(shown, dict) else shown
    return [str(entry["source"]) for entry in entries if entry["event"] == "REPLY_INJECTED"]


def test_a_rule_that_allows_lets_the_command_run_and_nobody_is_asked() -> None:
    with Stage("claude", prepare=with_rules(ALLOW)) as stage:
        stage.next_prompt(120, idle=True)
        stage.say("please lab:bash now")
        stage.wait(lambda: (stage.folder / "made-by-bash.txt").exists(), "the file", 90)
        stage.wait(lambda: "rule:touch" in sources(stage), "the record of the rule")


def test_a_rule_allows_nothing_that_was_only_read_from_a_screen() -> None:
    """Codex draws nothing for a tab: two words look like one."""
    with Stage("codex", prepare=with_rules(ALLOW)) as stage:
        stage.next_prompt(120, idle=True)
        stage.say("please lab:bash now")
        prompt = stage.next_prompt(90)
        assert "touch made-by-bash.txt" in prompt["excerpt"] and not prompt["subject"]["complete"]
        assert not (stage.folder / "made-by-bash.txt").exists()


@pytest.mark.parametrize("tool", ["claude", "codex"])
def test_a_rule_that_refuses_leaves_no_trace_on_the_disk(tool: str) -> None:
    with Stage(tool, prepare=with_rules(DENY)) as stage:
        stage.next_prompt(120, idle=True)
        stage.say("please lab:bash now")
        stage.wait(lambda: "rule:no-touch" in sources(stage), "the record of the rule", 90)
        assert not (stage.folder / "made-by-bash.txt").exists()


def test_a_grant_is_used_up() -> None:
    with Stage("claude") as stage:
        stage.next_prompt(120, idle=True)
        stage.say("please lab:bash now")
        prompt = stage.next_prompt()
        made = command(stage, "grants", "add", prompt["prompt_id"], "--times", "1")
        assert made["answered"] and "touch made-by-bash.txt" in made["would"]
        stage.wait(lambda: (stage.folder / "made-by-bash.txt").exists(), "the file", 90)
        assert command(stage, "grants", "list") == []
        stage.next_prompt(90, idle=True)
        stage.say("please lab:bash now")
        assert "touch made-by-bash.txt" in stage.next_prompt(90)["excerpt"]
