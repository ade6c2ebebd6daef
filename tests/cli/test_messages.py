"""What a command prints when it cannot do what was asked: the reason, what to do, and a status that a script sees."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from atlasbridge.cli.help import man_pages
from atlasbridge.cli.main import main


def test_a_group_without_a_command_prints_its_help_and_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["later"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("Usage: atlasbridge later") and "see: " not in said


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["reply", "api", "--keys"], "see: atlasbridge reply --help"),
        (["sesions"], "did you mean atlasbridge ps"),
        (["logs", "-n", "-4"], "see: atlasbridge logs --help"),
        (["audit", "show", "-n", "0"], "see: atlasbridge audit show --help"),
    ],
)
def test_a_wrong_command_line_names_the_command_to_look_at(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert hint in capsys.readouterr().err


def test_a_program_that_cannot_be_recorded_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "record", "-o", str(tmp_path / "x.cast"), "--", "no-such-program"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("atlasbridge: no-such-program was not found") and "internal error" not in said


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a file that is always full")
@pytest.mark.parametrize("words", [["--help"], ["--version"], ["version"]])
def test_output_that_cannot_be_written_is_a_fault(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-P", "-m", "atlasbridge", *words], stdout=full, stderr=subprocess.PIPE)
    said = done.stderr.decode()
    assert done.returncode == 1 and "No space left on device" in said and "Traceback" not in said


def test_a_question_without_an_answer_on_standard_input_is_a_fault(tmp_path: Path) -> None:
    words = [sys.executable, "-P", "-m", "atlasbridge", "setup"]
    environ = {**os.environ, "ATLASBRIDGE_HOME": str(tmp_path)}
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environ)
    assert done.returncode == 2 and "see: atlasbridge setup --help" in done.stderr


def test_a_request_of_a_hook_that_names_no_tool_is_denied_with_the_reason(tmp_path: Path) -> None:
    words = [sys.executable, "-P", "-m", "atlasbridge", "ask", "--hook"]
    environ = {**os.environ, "ATLASBRIDGE_HOME": str(tmp_path)}
    done = subprocess.run(words, input="{}", capture_output=True, text=True, env=environ)
    assert done.returncode == 0 and "the request has no 'tool_name'" in done.stdout


def test_man_pages_fit_the_lines_that_man_leaves() -> None:
    lines = [line.replace("\\-", "-") for _, text in man_pages() for line in text.split("\n")]
    assert [line for line in lines if len(line) > 72 and not line.startswith((".", "atlasbridge"))] == []
