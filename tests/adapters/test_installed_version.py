"""Which version of a tool would run is read from its installation, and said when nobody has tried it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atlasbridge.adapters.installed import installed_version, verified_versions, warn_of_version


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\nexit 99\n")  # must never be started
    path.chmod(0o755)
    return path


def npm_tool(root: Path, version: str) -> str:
    """As npm lays it out: a link in `.bin`, the package beside it."""
    package = root / "node_modules" / "@vendor" / "tool"
    target = program(package / "bin" / "claude.js")
    (package / "package.json").write_text(json.dumps({"name": "@vendor/tool", "version": version}, indent=2))
    link = root / "node_modules" / ".bin" / "claude"
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    return str(link.parent)


def test_an_npm_package_says_its_version(tmp_path: Path) -> None:
    assert installed_version("claude", npm_tool(tmp_path, "9.8.7")) == "9.8.7"


def test_a_python_environment_says_its_version(tmp_path: Path) -> None:
    aider = program(tmp_path / "bin" / "aider")
    (tmp_path / "lib" / "python3.11" / "site-packages" / "aider_chat-0.99.1.dist-info").mkdir(parents=True)
    assert installed_version("aider", str(aider.parent)) == "0.99.1"


@pytest.mark.parametrize("place", ["share/claude/versions/3.2.1", "Cellar/codex/3.2.1/bin/codex"])
def test_a_folder_named_after_the_version_says_it(tmp_path: Path, place: str) -> None:
    target = program(tmp_path / place)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").symlink_to(target)
    assert installed_version("claude", str(tmp_path / "bin")) == "3.2.1"


def test_a_version_nobody_has_tried_is_said_in_one_sentence(tmp_path: Path) -> None:
    said = warn_of_version("claude", npm_tool(tmp_path, "9.8.7"))
    assert said.startswith("claude 9.8.7 was not tried") and "generic rules" in said and "\n" not in said


def test_nothing_is_said_of_a_known_version_another_tool_or_an_unknown_place(tmp_path: Path) -> None:
    known = verified_versions("claude")[0]
    assert warn_of_version("claude", npm_tool(tmp_path / "known", known)) == ""
    program(tmp_path / "bin" / "claude")
    program(tmp_path / "bin" / "make")
    for name in ("claude", "make", "missing"):
        assert warn_of_version(name, str(tmp_path / "bin")) == ""
