"""Rules and grants with the real Claude Code and Codex, offline against the mock model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.real_tools.stage import Stage
from tests.support.fake_telegram import FakeTelegram
from tests.support.page_client import API, enter_now

pytestmark = [pytest.mark.tools, pytest.mark.timeout(400)]
DEFAULT_TOOLS = Path(__file__).parents[2] / ".venv" / "tools"
ALLOW = '[[rule]]\nname = "touch"\nverdict = "allow"\ncommand = ["touch", "made-by-bash.txt"]\n'
TWO = '[[rule]]\nname = "two"\nverdict = "ask"\ncommand = ["touch", "**"]\napprovals = 2\n'
BOTH = pytest.mark.parametrize("tool", ["claude", "codex"])
WAYS = {"claude": "hook", "codex": "keys"}  # how the answer comes to the tool
DENY = '[[rule]]\nname = "no-touch"\nverdict = "deny"\ncommand = ["touch", "**"]\nreason = "make no files here"\n'


@pytest.fixture(autouse=True, scope="module")
def installed_tools() -> None:
    os.environ.setdefault("ATLASBRIDGE_TOOLS", str(DEFAULT_TOOLS))


def with_rules(text: str) -> Callable[[Path, Path], None]:
    def prepare(home: Path, folder: Path) -> None:
        (home.parent / "b" / "policy.toml").write_text(text)

    return prepare


def two_channels(server: FakeTelegram) -> str:
    people = (
        '[[people]]\nname = "ann"\nidentities = ["telegram:1001"]\n[[people]]\nname = "bob"\nidentities = ["web:bob"]\n'
    )
    chat = f'bot_token = "{server.token}"\nallowed_users = [1001]\napi_url = "{server.url}"\nmessages_per_s = 100\n'
    return f"{people}[channels.web]\nport = 0\n[channels.telegram]\n{chat}"


def asking(messages: list[dict[str, Any]], words: str) -> dict[str, Any] | None:
    return next((one for one in reversed(messages) if words in one.get("text", "") and "reply_markup" in one), None)


def command(stage: Stage, *words: str) -> Any:
    done = subprocess.run(
        (sys.executable, "-m", "atlasbridge", *words, "--json"),
        env=stage.env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def records(stage: Stage, event: str) -> list[dict[str, Any]]:
    shown = command(stage, "audit", "show")
    entries = shown["entries"] if isinstance(shown, dict) else shown
    return [entry for entry in entries if entry["event"] == event]


def ways(stage: Stage) -> list[str]:
    return [str(entry.get("way", "keys")) for entry in records(stage, "REPLY_INJECTED")]


def sources(stage: Stage) -> list[str]:
    return [str(entry["source"]) for entry in records(stage, "REPLY_INJECTED")]


@BOTH
def test_a_rule_that_allows_lets_the_command_run_and_nobody_is_asked(tool: str) -> None:
    with Stage(tool, prepare=with_rules(ALLOW)) as stage:
        stage.next_prompt(120, idle=True)
        stage.say("please lab:bash now")
        stage.wait(lambda: (stage.folder / "made-by-bash.txt").exists(), "the file", 90)
        stage.wait(lambda: "rule:touch" in sources(stage), "the record of the rule")
        assert ways(stage) == [WAYS[tool]]


def test_a_newcomers_first_rule_comes_from_what_they_allowed() -> None:
    with Stage("claude") as stage:
        stage.next_prompt(120, idle=True)
        for _ in range(2):
            stage.say("please lab:bash now")
            assert stage.reply(stage.next_prompt(90), "1")[0] == 0
            stage.next_prompt(90, idle=True)
        assert [item["count"] for item in command(stage, "policy", "suggest", "--add")] == [2]
        (stage.folder / "made-by-bash.txt").unlink()
        stage.say("please lab:bash now")
        stage.wait(lambda: (stage.folder / "made-by-bash.txt").exists(), "the file, unasked", 90)
        assert any(source.startswith("rule:touch") for source in sources(stage))


def test_a_rule_allows_nothing_that_was_only_read_from_a_screen() -> None:
    """Codex draws nothing for a tab: two words look like one.  Anyone who names hooks in `-c` gets none of ours."""
    with Stage("codex", prepare=with_rules(ALLOW), arguments=("-c", "hooks.Stop=[]")) as stage:
        stage.next_prompt(120, idle=True)
        stage.say("please lab:bash now")
        prompt = stage.next_prompt(90)
        assert "touch made-by-bash.txt" in prompt["excerpt"] and not prompt["subject"]["complete"]
        assert not (stage.folder / "made-by-bash.txt").exists()


@BOTH
def test_a_rule_that_refuses_leaves_no_trace_on_the_disk_and_the_model_hears_why(tool: str) -> None:
    with Stage(tool, prepare=with_rules(DENY)) as stage:
        stage.next_prompt(120, idle=True)
        stage.say("please lab:bash now")
        stage.wait(lambda: "rule:no-touch" in sources(stage), "the record of the rule", 90)
        assert not (stage.folder / "made-by-bash.txt").exists()
        assert [entry["reason"] for entry in records(stage, "REPLY_RECEIVED")] == ["make no files here"]
        stage.wait(lambda: "make no files here" in stage.model.newest, "the reason", 60)
        assert ways(stage) == [WAYS[tool]] and not (stage.folder / "made-by-bash.txt").exists()


@BOTH
def test_a_grant_is_used_up_and_another_one_expires(tool: str) -> None:
    with Stage(tool) as stage:
        stage.next_prompt(120, idle=True)
        stage.say("please lab:bash now")
        prompt = stage.next_prompt()
        made = command(stage, "grants", "add", prompt["prompt_id"], "--times", "1")
        assert made["answered"] and "touch made-by-bash.txt" in made["would"]
        stage.wait(lambda: (stage.folder / "made-by-bash.txt").exists(), "the file", 90)
        assert command(stage, "grants", "list") == []
        stage.next_prompt(90, idle=True)
        stage.say("please lab:bash now")
        again = stage.next_prompt(90)
        assert "touch made-by-bash.txt" in again["excerpt"]
        assert command(stage, "grants", "add", again["prompt_id"], "--for", "1s")["answered"]
        stage.next_prompt(90, idle=True)
        stage.wait(lambda: command(stage, "grants", "list") == [], "the end of the grant")
        stage.say("please lab:bash now")
        assert "touch made-by-bash.txt" in stage.next_prompt(90)["excerpt"]


@BOTH
def test_two_people_on_the_page_and_in_telegram_must_agree(tool: str) -> None:
    with FakeTelegram() as server:
        ann = server.person(1001)
        with Stage(tool, config=two_channels(server), prepare=with_rules(TWO)) as stage:
            stage.next_prompt(120, idle=True)
            stage.say("please lab:bash now")
            asked = stage.next_prompt(90)
            shown = server.wait_for(lambda: asking(ann.sees(), "2 people must approve"), "the card in Telegram", 60)
            ann.tap(shown, "Yes")  # the choice that allows once, however the tool words it
            opened = command(stage, "web", "--no-open", "--name", "bob")
            with httpx.Client(base_url=opened["url"], timeout=60) as page:
                enter_now(page, opened["links"]["local"])
                path = f"{API}/prompts/{asked['prompt_id']}"
                stage.wait(lambda: page.get(path).json()["agreed"] == ["ann"], "the first voice on the page", 60)
                assert not (stage.folder / "made-by-bash.txt").exists()
                said = page.post(f"{path}/reply", json={"value": "1"})
                assert said.status_code == 200, said.text
            stage.wait(lambda: (stage.folder / "made-by-bash.txt").exists(), "the file", 90)
            server.wait_for(lambda: not asking(ann.sees(), "2 people must approve"), "the edit in Telegram", 60)
