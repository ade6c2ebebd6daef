"""What works on Unix only says so, wherever a command finds out."""

from __future__ import annotations

import os

import click
import pytest

from atlasbridge.cli import main as command_line
from atlasbridge.cli.run import needs_unix
from atlasbridge.core.errors import AtlasBridgeError


def failing(error: Exception) -> click.Command:
    def fail() -> None:
        raise error

    return click.Command("fails", callback=fail)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ModuleNotFoundError("No module named 'termios'", name="termios"), "works on Unix only"),
        (ModuleNotFoundError("No module named 'nonsense'", name="nonsense"), "internal error"),
        (ValueError("termios"), "internal error"),
    ],
)
def test_a_command_that_finds_a_module_of_unix_missing_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, told: str
) -> None:
    monkeypatch.delattr(os, "fork")
    monkeypatch.setattr(command_line, "cli", failing(error))
    assert command_line.main([]) == 1
    assert told in capsys.readouterr().err


def test_on_unix_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_unix("this")
    monkeypatch.delattr(os, "fork")
    with pytest.raises(AtlasBridgeError, match="this works on Unix only"):
        needs_unix("this")
