"""`run` says when nobody has tried the version of a tool that is installed; it starts nothing to find out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.terminal import ATLASBRIDGE, Terminal

from atlasbridge.adapters.installed import verified_versions


def install(root: Path, version: str) -> str:
    """A tool called claude, as npm would lay it out."""
    package = root / "claude-code"
    package.mkdir()
    (package / "package.json").write_text(json.dumps({"version": version}, indent=1))
    program = package / "claude"
    program.write_text('#!/bin/sh\necho started with "$2" | cut -c1-20\n')
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize("version", ["9.9.9", verified_versions("claude")[0]])
def test_an_untried_version_is_said_before_the_tool_starts(home: Path, tmp_path: Path, version: str) -> None:
    with Terminal((*ATLASBRIDGE, "run", "--channel", "none", install(tmp_path, version)), home) as terminal:
        assert terminal.wait_exit() == 0
        said = terminal.text()
    assert "started with" in said
    assert ("claude 9.9.9 was not tried" in said) is (version == "9.9.9")
    if version == "9.9.9":
        assert said.index("was not tried") < said.index("started with")
