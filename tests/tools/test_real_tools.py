"""The real AI CLIs, offline against the mock model: every dialog is recognised, and the answer does what it says.

Claude Code and Codex must be there (`make test-tools` installs them), and of Continue and Kimi Code a few dialogs are
walked, of Cline and gptme in `test_more_tools`; the others are for `make lab-real`, which says so with
ATLASBRIDGE_LAB_REAL=1.  A tool that is missing is a failure, never a pass; only Vibe and OpenHands may be missing,
where there is no Python for them, and goose and Kilo, where there is no program for the machine.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.real_tools.canary import version_of, walk_through
from tests.real_tools.dialogs import WALKS, Walk
from tests.real_tools.realtool import find_tool
from tests.real_tools.stage import Stage

pytestmark = [pytest.mark.tools, pytest.mark.timeout(900)]
ALL = os.environ.get("ATLASBRIDGE_LAB_REAL") == "1"
DEFAULT_TOOLS = Path(__file__).parents[2] / ".venv" / "tools"
TOOLS = Path(os.environ.get("ATLASBRIDGE_TOOLS", DEFAULT_TOOLS))


def _runs(program: str) -> bool:
    """A version manager may have a name on the PATH that runs nothing."""
    found = shutil.which(program)
    return found is not None and subprocess.run((found, "-c", ""), capture_output=True).returncode == 0


NEWER = ALL and any(map(_runs, ("python3.12", "python3.13", "python3.14")))
ABSENT = {
    **{tool: not NEWER and not (TOOLS / tool).exists() for tool in ("vibe", "openhands")},
    **{tool: platform.machine() != "x86_64" and not (TOOLS / tool).exists() for tool in ("goose", "kilo")},
}
WANTED = tuple(tool for tool in WALKS if not ABSENT.get(tool)) if ALL else ("claude", "codex")
QUICK = ("cn", "kimi")  # of these every test run walks the dialogs that matter most
MATTER = ("trust: y", "bash: y", "bash: n", "write: n", "bait: silent")


@pytest.fixture(autouse=True, scope="module")
def installed_tools() -> None:
    """Where `tools/install-extras` puts them, unless somebody says otherwise."""
    os.environ.setdefault("ATLASBRIDGE_TOOLS", str(DEFAULT_TOOLS))


@pytest.mark.parametrize("tool", WANTED if ALL else (*WANTED, *QUICK))
def test_the_tool_is_installed_in_a_version_that_was_verified(tool: str) -> None:
    assert find_tool(tool) is not None, f"{tool} is missing: run tools/install-extras"
    done = subprocess.run(
        (sys.executable, "-m", "atlasbridge", "adapters", "show", tool.partition("-")[0], "--json"),
        capture_output=True,
        text=True,
    )
    assert version_of(tool) in json.loads(done.stdout)["versions"]


@pytest.mark.parametrize(
    ("tool", "walk"),
    [
        pytest.param(tool, walk, id=f"{tool}-{walk.name}")
        for tool in WANTED
        for walk in WALKS[tool]
        if walk.often or ALL
    ],
)
def test_every_dialog_is_recognised_and_answered(tool: str, walk: Walk) -> None:
    results = list(walk_through(tool, walk))
    wrong = [f"{result.dialog}: {result.detail}" for result in results if not result.ok]
    assert not wrong, "\n\n".join(wrong)
    assert len(results) == len(walk.dialogs)


@pytest.mark.skipif(ALL, reason="all of their dialogs are walked")
@pytest.mark.parametrize("tool", QUICK)
def test_the_dialogs_that_matter_most_are_recognised_and_answered(tool: str) -> None:
    main = WALKS[tool][0]
    walk = replace(main, dialogs=tuple(dialog for dialog in main.dialogs if dialog.name in MATTER))
    results = list(walk_through(tool, walk, (80, 24)))
    wrong = [f"{result.dialog}: {result.detail}" for result in results if not result.ok]
    assert not wrong, "\n\n".join(wrong)
    assert len(results) == len(walk.dialogs) >= 4


def test_claudes_hook_takes_the_answer_and_what_it_does_not_understand_is_typed() -> None:
    with Stage("claude") as stage:
        stage.next_prompt(90, idle=True)
        for value, made in (("n", False), ("y", True)):
            stage.say("please lab:bash now")
            prompt = stage.next_prompt()
            assert stage.reply(prompt, value)[0] == 0
            assert stage.outcome(prompt) == "resolved"
            stage.next_prompt(idle=True)
            assert (stage.folder / "made-by-bash.txt").exists() is made
        stage.say("please lab:ask now")  # a question is not for the hook
        assert stage.reply(stage.next_prompt(), "SQLite")[0] == 0
        stage.next_prompt(idle=True)
        assert [event["way"] for event in stage.named("prompt.injected")] == ["hook", "hook", "keys"]


def test_the_persons_own_hooks_stay_in_force_and_their_settings_untouched(tmp_path: Path) -> None:
    theirs = tmp_path / "their-hook-ran"
    settings = {
        "hooks": {"PermissionRequest": [{"hooks": [{"type": "command", "command": f"touch {theirs}-user"}]}]},
        "env": {"THEIR_OWN": "1"},
    }
    passed = {"hooks": {"PermissionRequest": [{"hooks": [{"type": "command", "command": f"touch {theirs}-passed"}]}]}}

    def prepare(home: Path, folder: Path) -> None:
        (home / ".claude").mkdir()
        (home / ".claude" / "settings.json").write_text(json.dumps(settings))

    with Stage("claude", prepare=prepare, arguments=("--settings", json.dumps(passed))) as stage:
        stage.next_prompt(90, idle=True)
        stage.say("please lab:bash now")
        prompt = stage.next_prompt()
        told = {"kind": "command", "text": "touch made-by-bash.txt", "folder": str(stage.folder), "source": "hook"}
        assert told.items() <= prompt["subject"].items()
        stage.wait(lambda: Path(f"{theirs}-user").exists(), "the hook of the person's settings")
        stage.wait(lambda: Path(f"{theirs}-passed").exists(), "the hook of the settings they passed")
        assert json.loads((stage.home / ".claude" / "settings.json").read_text()) == settings
        assert stage.reply(prompt, "n")[0] == 0
        stage.next_prompt(idle=True)
        assert not (stage.folder / "made-by-bash.txt").exists()


def test_without_a_hook_the_screen_decides(tmp_path: Path) -> None:
    """Settings that are not ours to understand are left alone, and the dialog is answered all the same."""
    own = tmp_path / "own.json"
    own.write_text(json.dumps({"hooks": {"PermissionRequest": []}, "disableAllHooks": True}))
    with Stage("claude", arguments=("--settings", str(own))) as stage:
        stage.next_prompt(90, idle=True)
        stage.say("please lab:bash now")
        prompt = stage.next_prompt()
        assert "touch made-by-bash.txt" in prompt["excerpt"]
        always = [choice["value"] for choice in prompt["choices"] if choice.get("always")]
        assert always == ["2", "3"]
        assert stage.reply(prompt, "y")[0] == 0
        stage.wait(lambda: (stage.folder / "made-by-bash.txt").exists(), "the file")


@pytest.mark.skipif(not ALL, reason="OpenCode is walked by make lab-real")
def test_opencode_tells_what_it_asks_and_the_persons_own_plugin_stays_in_force(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.js"
    theirs.write_text(
        f"""import {{ writeFileSync }} from "node:fs"
export const Theirs = async () => {{ writeFileSync("{tmp_path}/ran", ""); return {{}} }}
"""
    )

    def prepare(home: Path, folder: Path) -> None:
        file = home / ".config" / "opencode" / "opencode.json"
        ours = {"$schema": "https://opencode.ai/config.json", **json.loads(file.read_text())}  # else OpenCode adds it
        file.write_text(json.dumps({**ours, "plugin": [theirs.as_uri()]}))

    with Stage("opencode", prepare=prepare) as stage:
        before = (stage.home / ".config" / "opencode" / "opencode.json").read_text()
        stage.next_prompt(180, idle=True)
        stage.wait(lambda: (tmp_path / "ran").exists(), "the person's own plugin")
        stage.say("please lab:edit now")
        prompt = stage.next_prompt()
        said = f"△ Permission required\nin {stage.folder}\n  → Edit seed.txt\n-colour = red\n+colour = blue"
        assert prompt["excerpt"] == said
        assert "opencode (its events)" in prompt["evidence"][0]["detail"]
        assert (stage.home / ".config" / "opencode" / "opencode.json").read_text() == before
        assert stage.reply(prompt, "n")[0] == 0


@pytest.mark.skipif(not ALL, reason="OpenCode is walked by make lab-real")
def test_without_events_the_screen_decides_in_opencode() -> None:
    with Stage("opencode", arguments=("--pure",)) as stage:  # no plugins at all
        stage.next_prompt(180, idle=True)
        stage.say("please lab:bash now")
        prompt = stage.next_prompt()
        assert "touch made-by-bash.txt" in prompt["excerpt"] and str(stage.folder) in prompt["excerpt"]
        assert stage.reply(prompt, "n")[0] == 0
        stage.next_prompt(idle=True)
        assert not (stage.folder / "made-by-bash.txt").exists()


def test_words_are_refused_at_a_permission_dialog_and_nothing_is_typed() -> None:
    with Stage("codex") as stage:
        stage.next_prompt(90, idle=True)
        stage.say("please lab:bash now")
        prompt = stage.next_prompt()
        status, answer = stage.reply(prompt, "please do not")
        assert (status, answer["reason"]) == (3, "bad_value")
        assert "Would you like to run the following command?" in stage.text()
        assert stage.reply(prompt, "n")[0] == 0
        stage.next_prompt(idle=True)
        assert not (stage.folder / "made-by-bash.txt").exists()
