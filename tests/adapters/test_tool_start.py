"""How a tool is started is asked of its own folder; no other part of the program knows a tool by name."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import atlasbridge
from atlasbridge.adapters import registry, tool_start
from atlasbridge.adapters.registry import AdapterRegistry
from atlasbridge.adapters.tool_start import TOOLS, ToolStart, prepare_start
from atlasbridge.core.errors import AdapterError

PREPARE = """
from atlasbridge.core.values import replace


def prepare(start):
    return replace(start, command=(*start.command, "--told"), hook_s=0.2)
"""
ADAPTER = """
from atlasbridge.adapters.pty import PtyAdapter


class MineAdapter(PtyAdapter):
    TOOL_NAME = "mine"
"""


def started(tool: str, home: Path, dialect: str = "") -> ToolStart:
    start = ToolStart((f"/opt/{tool}", "-x"), {"PATH": "/bin"}, "/door.sock")
    return prepare_start(start, tool, dialect, str(home))


def own(home: Path, name: str, text: str) -> Path:
    file = home / "adapters" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_claude_code_is_started_with_its_hook_and_opencode_with_its_events(tmp_path: Path) -> None:
    claude, opencode = started("claude", tmp_path), started("opencode", tmp_path)
    assert claude.command[0] == "/opt/claude" and "--settings" in claude.command and claude.hook_s > 0
    assert "/door.sock" in "".join(opencode.environ.values()) and opencode.command == ("/opt/opencode", "-x")


@pytest.mark.parametrize(
    ("tool", "dialect"), [("vim", ""), ("codex", ""), ("claude", "generic"), ("wrapper", "claude")]
)
def test_a_tool_that_needs_nothing_and_one_under_other_rules_are_started_as_they_are(
    tmp_path: Path, tool: str, dialect: str
) -> None:
    assert started(tool, tmp_path, dialect) == ToolStart((f"/opt/{tool}", "-x"), {"PATH": "/bin"}, "/door.sock")


def test_a_folder_in_the_home_may_prepare_its_tool_and_wins_over_ours(tmp_path: Path) -> None:
    own(tmp_path, "mine/prepare.py", PREPARE)
    own(tmp_path, "claude/prepare.py", PREPARE)
    for tool in ("mine", "claude"):
        assert started(tool, tmp_path).command == (f"/opt/{tool}", "-x", "--told")


@pytest.mark.parametrize("name", ["mine.py", "mine/adapter.py"])
def test_a_file_in_the_home_is_an_adapter_without_an_entry_point(tmp_path: Path, name: str) -> None:
    file = own(tmp_path, name, ADAPTER)
    start = started("mine", tmp_path)
    assert start.outside and start.command[-4:] == ("/door.sock", str(file), "/opt/mine", "-x")
    assert AdapterRegistry.find(str(file)).__name__ == "MineAdapter"
    assert AdapterRegistry.origins(tmp_path)["mine"].startswith(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("def (", "SyntaxError"),
        ("x = 1", "no class"),
        ("raise SystemError", "SystemError"),
    ],
)
def test_a_file_that_cannot_be_an_adapter_says_why(tmp_path: Path, text: str, wrong: str) -> None:
    with pytest.raises(AdapterError, match=wrong):
        AdapterRegistry.find(str(own(tmp_path, "mine.py", text)))


def test_what_others_could_have_written_is_not_run(tmp_path: Path) -> None:
    file = own(tmp_path, "mine/prepare.py", PREPARE)
    file.chmod(0o666)
    with pytest.raises(AdapterError, match="changed by others"):
        started("mine", tmp_path)
    file.chmod(0o600)
    file.parent.chmod(0o777)
    with pytest.raises(AdapterError, match="changed by others"):
        started("mine", tmp_path)


def test_the_composition_root_knows_no_tool_by_name() -> None:
    tools = {path.parent.name for path in Path(TOOLS).glob("*/dialect.toml")} - {"generic"}
    source = (Path(atlasbridge.__file__).parent / "bootstrap.py").read_text()
    assert tools and not [tool for tool in tools if re.search(rf"\b{tool}\b", source, re.IGNORECASE)]


@pytest.mark.parametrize(("tool", "light"), [("true", True), ("claude", False)])
def test_an_ordinary_program_is_started_without_an_import_for_it(tmp_path: Path, tool: str, light: bool) -> None:
    code = (
        "import sys; from atlasbridge.adapters.tool_start import ToolStart, prepare_start\n"
        f"prepare_start(ToolStart(({tool!r},), {{}}, '/d'), {tool!r}, '', {str(tmp_path)!r})\n"
        "print(*(m for m in sys.modules if m.startswith('atlasbridge.adapters.')), 'asyncio' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert out.pop() == "False"
    assert (set(out) == {"atlasbridge.adapters.tool_start", "atlasbridge.adapters.entry_points"}) is light


OF_THE_DOCUMENT = """
from atlasbridge.adapters.registry import AdapterRegistry
from atlasbridge.adapters.pty import PtyAdapter

@AdapterRegistry.register("gemini")
class GeminiAdapter(PtyAdapter):
    SUPPORTED_VERSIONS = [">=0.1.0"]
    TOOL_NAME = "gemini"
"""


@pytest.mark.parametrize("where", ["home", "package"])
def test_an_adapter_file_of_the_document_is_found_by_run_and_by_the_registry(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, package = tmp_path / "home", tmp_path / "package"
    place = home / "adapters" if where == "home" else package
    for folder in (home, package, place):
        folder.mkdir(exist_ok=True, mode=0o755)
    (place / "gemini.py").write_text(OF_THE_DOCUMENT)
    (package / "contract.py").write_text("# a module of ours, and no tool's")
    monkeypatch.setenv("ATLASBRIDGE_HOME", str(home))
    monkeypatch.setattr(tool_start, "TOOLS", str(package))
    monkeypatch.setattr(registry, "TOOLS", package)
    monkeypatch.setattr(registry.AdapterRegistry, "_registered", {})
    assert tool_start.find_outside("gemini", str(home)) == str(place / "gemini.py")
    assert tool_start.find_outside("contract", str(home)) == ""
    found = registry.AdapterRegistry.get("gemini")
    assert (found.__name__, found.TOOL_NAME) == ("GeminiAdapter", "gemini")  # type: ignore[attr-defined]
    assert "gemini" in registry.AdapterRegistry.list_supported()
    assert registry.AdapterRegistry.origins(home)["gemini"] == str(place / "gemini.py")
