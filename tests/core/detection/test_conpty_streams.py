"""What a Windows console sends, written down by hand: it draws with absolute positions, writes blanks as moves, clears
to the end of lines, hides its cursor meanwhile, and draws everything again after a change of size.

Nobody can tell there who reads: only the screen and silence speak.
"""

from __future__ import annotations

from itertools import chain

import pytest

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.detection.events import (
    Command,
    OutputReceived,
    ProbeAnswer,
    ProbeState,
    RaisePrompt,
    ReplyTyped,
    Resized,
    WithdrawPrompt,
)
from atlasbridge.core.prompt.answer import decide_answer, encode_answer
from atlasbridge.core.prompt.model import Answer, Prompt, PromptType
from atlasbridge.lab.replay import Player

BLIND = ProbeAnswer(ProbeState.UNKNOWN, "this system cannot tell")
OPENING = b"\x1b[?9001h\x1b[?1004h\x1b[?25l\x1b[2J\x1b[m\x1b[H\x1b]0;C:\\Windows\\System32\\cmd.exe\x07\x1b[?25h"
DEL = (
    OPENING + b"Microsoft Windows [Version 10.0.22631.3447]\r\n(c) Microsoft Corporation.\x1b[1CAll rights\r\n",
    b"\x1b[?25l\x1b[4;1HC:\\work>\x1b[?25h",
    b"\x1b[?25ldel *\x1b[5;1HC:\\work\\*, Are you sure (Y/N)?\x1b[1C\x1b[?25h",
)
POWERSHELL = (
    OPENING,
    b"\x1b[?25l\x1b[93m\x1b[1;1HConfirm\x1b[m\x1b[K\r\nAre you sure you want to perform this action?\x1b[K\r\n"
    b'Performing the operation "Remove File" on target "C:\\work\\a.txt".\x1b[K\r\n',
    b"\x1b[93m[Y] Yes\x1b[m\x1b[2C[A] Yes to All\x1b[2C[N] No\x1b[2C[L] No to All\x1b[2C[S] Suspend\x1b[2C",
    b"[?] Help\x1b[1C",
    b'(default is "Y"):\x1b[1C\x1b[?25h',
)
NPM = (
    OPENING,
    b"\x1b[?25l\x1b[1;1HNeed to install the following packages:\x1b[K\r\n  create-vite@5.2.3\x1b[K\r\n",
    b"Ok to proceed? (y)\x1b[1C\x1b[K\x1b[?25h",
)
MENU = (
    OPENING,
    b"\x1b[?25l\x1b[3;1H\x1b[38;5;153m" + "─".encode() * 80 + b"\x1b[m"
    b"\x1b[4;2HBash command\x1b[K\x1b[6;4Hnpm install left-pad\x1b[K\x1b[7;4H\x1b[2mInstall a package\x1b[m\x1b[K"
    b"\x1b[9;2HDo you want to proceed?\x1b[K"
    b"\x1b[10;2H\x1b[38;5;153m" + "❯".encode() + b"\x1b[1C1.\x1b[1CYes\x1b[m\x1b[K"
    b"\x1b[11;4H2.\x1b[1CNo,\x1b[1Cand\x1b[1Ctell\x1b[1CClaude\x1b[1Cwhat\x1b[1Cto\x1b[1Cdo\x1b[1Cdifferently\x1b[1C(esc)\x1b[K"
    b"\x1b[13;2H\x1b[2mEsc to cancel\x1b[m\x1b[K",
)


class Shown:
    def __init__(self, dialect: str = "generic", rows: int = 24, cols: int = 80) -> None:
        self.detector = Detector(load_dialect(dialect), rows, cols)
        self.player = Player(self.detector, BLIND)
        self.now = 0.0
        self.commands: list[Command] = []

    def draw(self, *chunks: bytes, every_s: float = 0.01) -> Shown:
        for chunk in chunks:
            self._keep(self.player.pass_time(self.now))
            self._keep(self.player.tell(OutputReceived(chunk), self.now))
            self.now += every_s
        return self

    def rest(self, seconds: float = 4.0) -> Shown:
        self.now += seconds
        self._keep(self.player.pass_time(self.now))
        return self

    def tell(self, event: Resized | ReplyTyped) -> Shown:
        self._keep(self.player.tell(event, self.now))
        return self

    def _keep(self, told: object) -> None:
        self.commands += [command for _, command in told]  # type: ignore[attr-defined]

    @property
    def raised(self) -> list[Prompt]:
        return [command.prompt for command in self.commands if isinstance(command, RaisePrompt)]

    @property
    def withdrawn(self) -> list[str]:
        return [command.reason for command in self.commands if isinstance(command, WithdrawPrompt)]


def keys_for(prompt: Prompt, words: str) -> bytes:
    answer = decide_answer(prompt, words)
    assert isinstance(answer, Answer), answer
    return b"".join(step.keys for step in encode_answer(prompt, answer))


@pytest.mark.parametrize(
    ("stream", "kind", "words"),
    [
        (DEL, PromptType.TYPE_YES_NO, "Are you sure (Y/N)?"),
        (NPM, PromptType.TYPE_YES_NO, "Ok to proceed? (y)"),
        (MENU, PromptType.TYPE_MULTIPLE_CHOICE, "Do you want to proceed?"),
    ],
)
def test_a_question_is_raised_as_it_looks(stream: tuple[bytes, ...], kind: PromptType, words: str) -> None:
    shown = Shown("claude" if stream is MENU else "generic").draw(*stream).rest()
    (prompt,) = shown.raised
    assert prompt.type is kind and words in prompt.excerpt
    assert "\x1b" not in prompt.excerpt


def test_a_confirmation_of_powershell_is_raised_with_its_choices() -> None:
    (prompt,) = Shown().draw(*POWERSHELL).rest().raised
    assert "Remove File" in prompt.screen and '(default is "Y")' in prompt.excerpt


@pytest.mark.parametrize("stream", [DEL, NPM, POWERSHELL, MENU])
def test_any_chunking_raises_the_same(stream: tuple[bytes, ...]) -> None:
    whole = Shown().draw(b"".join(stream)).rest().raised
    single = Shown().draw(*(bytes([byte]) for byte in chain(*stream)), every_s=0.0).rest().raised
    assert [prompt.digest for prompt in whole] == [prompt.digest for prompt in single] != []


def test_the_keys_are_those_of_the_question() -> None:
    (delete,) = Shown().draw(*DEL).rest().raised
    assert keys_for(delete, "n") == b"n\r" and keys_for(delete, "y") == b"y\r"
    (menu,) = Shown("claude").draw(*MENU).rest().raised
    assert [choice.label for choice in menu.choices][:1] == ["Yes"]
    assert keys_for(menu, "1") == b"1"


def test_a_console_that_draws_everything_again_asks_nothing_twice() -> None:
    shown = Shown().draw(*DEL).rest()
    again = b"\x1b[?25l\x1b[2J\x1b[H" + b"".join(DEL)[len(OPENING) :]
    shown.draw(again).rest().draw(again).rest()
    assert len(shown.raised) == 1 and shown.withdrawn == []


def test_an_answered_question_is_withdrawn_when_the_console_draws_what_follows() -> None:
    shown = Shown().draw(*DEL).rest()
    shown.tell(ReplyTyped(shown.raised[0].digest))
    shown.draw(b"\x1b[?25l\x1b[5;1HC:\\work\\*, Are you sure (Y/N)? n\x1b[7;1HC:\\work>\x1b[?25h").rest(0.5)
    assert shown.withdrawn == ["answered"]
    assert [prompt.digest for prompt in shown.raised].count(shown.raised[0].digest) == 1


def test_a_progress_that_draws_over_itself_asks_nothing() -> None:
    bars = [
        b"\x1b[?25l\x1b[3;1HDownloading\x1b[1Cnode-v20.msi\x1b[1C%3d%%\x1b[1C[%s%s]\x1b[K\x1b[?25h"
        % (part, b"#" * (part // 5), b"." * (20 - part // 5))
        for part in range(100)
    ]
    shown = Shown().draw(OPENING, *bars, every_s=0.25)
    assert shown.raised == []


def test_words_that_look_like_a_question_far_above_ask_nothing() -> None:
    log = [b"\x1b[?25lstep\x1b[1C%d\x1b[1Cof\x1b[1C40: compiling\x1b[K\r\n\x1b[?25h" % part for part in range(40)]
    shown = Shown().draw(OPENING + b"The old tool asked: Continue? (y/n)\x1b[K\r\n", *log, every_s=0.3)
    assert shown.raised == []
