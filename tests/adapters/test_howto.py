"""The commands of `docs/howto/add-an-adapter.md` are run as they stand there: adding a tool is adding a folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from atlasbridge.adapters.dialect_files import dialect_for, load_dialect
from atlasbridge.adapters.tool_start import ToolStart, prepare_start

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "add-an-adapter.md"


def commands() -> list[str]:
    """The page's own blocks, without the indentation of the list they stand in."""
    blocks = re.findall(r"^   ```sh\n(.*?)^   ```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [re.sub(r"^ {3}", "", block, flags=re.MULTILINE) for block in blocks]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    home = tmp_path_factory.mktemp("home")
    home.chmod(0o700)
    tools = Path(sys.executable).parent
    environ = {**os.environ, "ATLASBRIDGE_HOME": str(home), "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-eu", "-c", "umask 077\n" + "\n".join(commands())],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return home, done.stdout


def test_the_page_has_commands_to_run() -> None:
    assert len(commands()) == 3


def test_the_new_tool_is_listed_with_where_it_comes_from(said: tuple[Path, str]) -> None:
    home, output = said
    assert "paintbot" in output and "1.0.0" in output
    assert "".join(str(home / "adapters" / "paintbot").split()) in "".join(output.split())


def test_the_new_tool_is_recognised_by_its_rules_and_started_as_it_wants(said: tuple[Path, str]) -> None:
    home, _ = said
    assert dialect_for("/opt/paintbot", home / "dialects") == "paintbot"
    assert "paintbot-colour" in [rule.id for rule in load_dialect("paintbot", home / "dialects").rules]
    start = prepare_start(ToolStart(("paintbot",), {"HOME": "/"}, "/door"), "paintbot", "", str(home))
    assert start.environ == {"HOME": "/", "PAINTBOT_MODE": "careful"} and start.command == ("paintbot",)
