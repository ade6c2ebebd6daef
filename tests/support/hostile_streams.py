"""Streams made to confuse a detector: valid sequences and broken ones, frames, menus, keys and resizes, by a number.

The same number always gives the same stream.  Most are short, as mistakes are; one in twenty is long.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from atlasbridge.core.detection.detector import RAW_LIMIT, Detector
from atlasbridge.core.detection.events import Event, KeysTyped, OutputReceived, ProbeAnswer, ProbeState, Resized
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.lab.replay import Player

LONG_ONE_IN = 20
SIZES = ((24, 80), (3, 10), (1, 1), (12, 40), (8, 30), (6, 20), (40, 120))
COMMON = (1, 3, 1, 3, 4, 4, 1)  # mistakes do not need a large screen
PARTS = [
    *(
        b"\x1b[2J",
        b"\x1b[H",
        b"\x1b[?1049h",
        b"\x1b[?1049l",
        b"\x1b[?25l",
        b"\x1b[?25h",
        b"\x1b[7m",
        b"\x1b[0m",
        b"\x1b[K",
    ),
    *(b"\x1b[999;999H", b"\x1b[-1;0H", b"\x1b[38;2;1;2;3m", b"\x1b]0;title\x07", b"\x1bP+q\x1b", b"\x1b[", b"\x9b"),
    *(b"\x1b]7501;state=blocked:app=x:msg=!!!\x1b\\", b"\xff\xfe", b"\x00", b"\r", b"\n", b"\r\n", b"\b", b"\t", b" "),
    *(b"Continue? [y/N] ", b"Password: ", b"1) a\r\n2) b\r\n", b"3/3", b"> ", b"--More--", b"x" * 300, b"[j/n]? "),
    *(
        b"[ ] box\r\n",
        b"(*) radio\r\n",
        b"Press q to quit.\r\n",
        b"(m)ake or (b)reak?",
        b"a)b A)b (aAbB):",
        b"[12?q]? ",
    ),
    *(b"? Name \xe2\x80\xba ", b"\xe2\x9c\x94 Name zed\r\n", b"- off (disabled)\r\n", b"  Y or I : install\r\n"),
    *(
        "❯ one\r\n  two\r\n".encode(),
        "┌──────────┐\r\n".encode(),
        "│ <Yes> <No> │\r\n".encode(),
        "└──────────┘\r\n".encode(),
    ),
    *(
        "● Yes / ○ No".encode(),
        "◯ a\r\n◉ b\r\n".encode(),
        "全角文字".encode(),
        "\u202e\u200b".encode(),
        "─".encode() * 130,
    ),
    *("◆  Pick\r\n│  ◻ a\r\n│  └ ◻ b\r\n└".encode(), "続行しますか？ (はい/いいえ)".encode(), "e\u0301\u0302".encode()),
]
PROBES = [
    ProbeAnswer(state, canonical=canonical, echo=echo, timer=timer, command=command)
    for state in ProbeState
    for canonical in (True, False, None)
    for echo in (True, False)
    for timer in (True, False)
    for command in ("", "less")
]
PROBES += [
    ProbeAnswer(state, canonical=False, echo=False, timer=bool(period_s), period_s=period_s, others=more, serves=more)
    for state in (ProbeState.READING, ProbeState.POLLING)
    for period_s in (0.0, 0.5, 20.0)
    for more in (True, False)
]
PROBES += [
    ProbeAnswer(ProbeState.BUSY, canonical=False, echo=False, certain=certain, rows=rows)
    for certain in (True, False)
    for rows in (0, 5, 23)
]


def stream(chance: random.Random) -> Iterator[tuple[Event, float]]:
    """Events, each with the seconds that pass after it."""
    turns = chance.randrange(4, 13) if chance.randrange(LONG_ONE_IN) == 0 else chance.randrange(1, 3)
    for _ in range(turns):
        data = b"".join(chance.choices(PARTS, k=chance.randrange(1, 8)))
        event: Event = OutputReceived(data)
        kind = chance.random()
        if kind < 0.1:
            event = KeysTyped(data[-4:])
        elif kind < 0.2:
            event = Resized(chance.randrange(1, 50), chance.randrange(1, 130))
        yield event, chance.choices((0.01, 0.12, 0.3, 2.5), (4, 4, 4, 1))[0]


def attack(number: int, dialects: list[Dialect]) -> int:
    """One stream against a detector of its own; how many prompts it raised.  AssertionError: a promise is broken."""
    chance = random.Random(number)
    rows, cols = chance.choices(SIZES, COMMON)[0]
    player = Player(Detector(chance.choice(dialects), rows, cols), chance.choice(PROBES))
    now, raised = 10.0, 0
    for event, pause in stream(chance):
        player.probe = chance.choice(PROBES)
        heard = list(player.tell(event, now))
        now += pause
        heard += player.pass_time(now)
        for _, command in heard:
            prompt = getattr(command, "prompt", None)
            assert prompt is None or len(prompt.excerpt) <= 200, (number, prompt)
            raised += prompt is not None
    assert len(player.detector._raw) <= 2 * RAW_LIMIT, number
    return raised
