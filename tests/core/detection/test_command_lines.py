"""A shell, a REPL, a pager and an editor at rest ask nothing: they wait for the next command, and are told as that."""

from __future__ import annotations

import pytest
from tests.support.playbook import BUSY, POLLING, RAW, READING, Keys, Nothing, Playbook, Raised

from atlasbridge.channels.templates import render_headline
from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
from atlasbridge.core.session.model import SessionRecord

SESSION = SessionRecord("s1", "bash", ("bash",), "/home/ada/shop", 1, 2, "2026-01-01T00:00:00.000Z")
LESS = ProbeAnswer(ProbeState.READING, canonical=False, echo=False, command="less")


@pytest.mark.parametrize("drawn", ["ada@vm:~/shop$ ", "root@vm:/# ", ">>> ", "shop git:main ❯ ", "In [3]: "])
def test_the_line_of_a_shell_is_told_as_the_next_command(drawn: str) -> None:
    play = Playbook(READING) >> drawn >> 1.0 << Raised("free_text")
    assert play.prompt.idle and play.prompt.constraints["commands"] is True
    assert render_headline(play.prompt, SESSION) == "💬 shop waits for your next command"


@pytest.mark.parametrize(
    ("drawn", "kind"), [("Your name: ", "free_text"), ("Continue? [y/N] ", "yes_no"), ("> ", "free_text")]
)
def test_a_question_is_no_command_line(drawn: str, kind: str) -> None:
    play = Playbook(READING) >> drawn >> 1.0 << Raised(kind)
    assert not play.prompt.idle


def test_a_pager_at_rest_waits_for_commands() -> None:
    play = Playbook(LESS) >> "\x1b[?1049h\x1b[Hone\r\ntwo\r\n\x1b[24;1H:" >> 3.0 << Raised("unknown")
    assert play.prompt.idle


def test_a_full_screen_program_that_nobody_knows_may_ask() -> None:
    play = Playbook(POLLING) >> "\x1b[?1049h\x1b[Hone\r\ntwo\r\n" >> 15.0 << Raised("unknown")
    assert not play.prompt.idle


def test_a_line_that_was_just_sent_is_no_prompt_although_the_program_has_not_taken_it_yet() -> None:
    play = Playbook(RAW) >> "(gdb) " >> 2.0 << Raised("free_text")
    play >> Keys("1") >> 0.01 >> "1" >> 0.3 >> Keys("\r") >> 0.4  # a busy machine: not a byte has come back
    assert [type(command).__name__ for _, command in play.heard].count("RaisePrompt") == 0
    play = Playbook(BUSY) >> "(gdb) " >> 5.0 >> Keys("run\r") >> RAW >> 0.4 << Nothing()
    play >> 0.6 << Raised("free_text")  # it did nothing with it: it waits
