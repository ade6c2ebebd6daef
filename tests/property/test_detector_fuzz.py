"""Streams made to confuse: valid sequences, broken ones, frames, menus.  `ATLASBRIDGE_FUZZ=1000000` runs more."""

from __future__ import annotations

import os
import random

import pytest

from atlasbridge.adapters.dialect_files import available, load_dialect
from atlasbridge.core.prompt.detector import RAW_LIMIT, Detector
from atlasbridge.core.prompt.events import KeysTyped, OutputReceived, ProbeAnswer, ProbeState, Resized
from atlasbridge.lab.replay import Player

STREAMS = int(os.environ.get("ATLASBRIDGE_FUZZ", "600"))
PARTS = [
    b"\x1b[2J",
    b"\x1b[H",
    b"\x1b[?1049h",
    b"\x1b[?1049l",
    b"\x1b[?25l",
    b"\x1b[?25h",
    b"\x1b[7m",
    b"\x1b[0m",
    b"\x1b[K",
    b"\x1b[999;999H",
    b"\x1b[-1;0H",
    b"\x1b[38;2;1;2;3m",
    b"\x1b]0;title\x07",
    b"\x1b]7501;state=blocked:app=x:msg=!!!\x1b\\",
    b"\x1bP+q\x1b",
    b"\x1b[",
    b"\x9b",
    b"\xff\xfe",
    b"\x00",
    b"\r",
    b"\n",
    b"\r\n",
    b"\b",
    b"\t",
    b" ",
    b"Continue? [y/N] ",
    b"Password: ",
    b"1) a\r\n2) b\r\n",
    "❯ one\r\n  two\r\n".encode(),
    "┌──────────┐\r\n".encode(),
    "│ <Yes> <No> │\r\n".encode(),
    "└──────────┘\r\n".encode(),
    "● Yes / ○ No".encode(),
    "◯ a\r\n◉ b\r\n".encode(),
    "全角文字".encode(),
    "\u202e\u200b".encode(),
    b"3/3",
    b"> ",
    b"--More--",
    b"x" * 300,
    "─".encode() * 130,
    b"[ ] box\r\n",
    b"(*) radio\r\n",
    b"Press q to quit.\r\n",
]
PROBES = [
    ProbeAnswer(state, canonical=canonical, echo=echo, timer=timer, command=command)
    for state in ProbeState
    for canonical in (True, False, None)
    for echo in (True, False)
    for timer in (False,)
    for command in ("", "less")
]


@pytest.mark.parametrize("seed", range(6))
def test_no_stream_raises_and_memory_stays_bounded(seed: int) -> None:
    chance = random.Random(seed)
    dialects = [load_dialect(name) for name in available()]
    for _ in range(STREAMS // 6):
        rows, cols = chance.choice([(24, 80), (3, 10), (1, 1), (40, 120)])
        player = Player(Detector(chance.choice(dialects), rows, cols), chance.choice(PROBES))
        now = 10.0
        for _ in range(chance.randrange(1, 12)):
            player.probe = chance.choice(PROBES)
            data = b"".join(chance.choice(PARTS) for _ in range(chance.randrange(1, 8)))
            events = [
                OutputReceived(data),
                KeysTyped(data[:4]),
                Resized(chance.randrange(1, 50), chance.randrange(1, 130)),
            ]
            for _, command in player.tell(chance.choices(events, (8, 1, 1))[0], now):
                prompt = getattr(command, "prompt", None)
                assert prompt is None or len(prompt.excerpt) <= 200
            now += chance.choice((0.01, 0.1, 0.5, 2.5))
            list(player.pass_time(now))
        assert len(player.detector._raw) <= 2 * RAW_LIMIT
