"""What real terminals send without anybody pressing a key: replies to queries, and reports of mouse and focus.

Collected from the manuals and sources of xterm, kitty, VTE, tmux, screen, the Linux console, foot, WezTerm and iTerm2;
`random_reply` fills in what varies.  `C` stands for CSI, `O` for OSC, `D` for DCS, `A` for APC, `P` for PM, `S` for
SOS and `T` for the string's end, each in 7 or in 8 bit.
"""

from __future__ import annotations

import random
from itertools import pairwise

_TEMPLATES = (
    *("C?1;2c", "C?62;1;2;6;7;8;9;15;22c", "C?65;1;9c", "C?6c", "C?64;1;2;4;6;17;18;21;22;52c", "C>41;{n};0c"),
    *("C>1;{n};1c", "C>84;0;0c", "C>83;{n};0c", "C>0;276;0c", "C=0c", "D!|00000000T", "D!|7E565445T", "D!|464f4f54T"),
    *("C0n", "C{n};{n}R", "C?{n};{n};1R", "C?10n", "C?13n", "C?27;1;0;0n", "C?53n", "C?57;1n", "C?997;1n", "C?997;2n"),
    *("C?{n};{d}$y", "C{n};{d}$y", "C?2026;2$y", "C?2027;0$y", "C?1004;1$y", "C?{n}u", "C?0u", "C?1u", "C?31u"),
    *("D1$r0mT", "D1$r0;1;38;5;{n}mT", "D1$r1 qT", "D1$r{n};{n}rT", 'D1$r65;1"pT', "D0$rT", "D1$r0$}T", "D1$r1*xT"),
    *(
        "D>|xterm({n})T",
        "D>|kitty(0.{n}.1)T",
        "D>|VTE({n})T",
        "D>|tmux 3.4T",
        "D>|WezTerm 2024{n}T",
        "D>|foot(1.{n}.0)T",
    ),
    *("D1+r436F=323536T", "D1+r544E=787465726DT", "D0+r52474200T", "D1+r6B6579=1B5B317EyT", "D1+r5463T"),
    *("O10;rgb:{h}/{h}/{h}T", "O11;rgb:{h}/{h}/{h}T", "O12;rgb:{h}/{h}/{h}T", "O4;{n};rgb:{h}/{h}/{h}T"),
    *("O11;rgba:{h}/{h}/{h}/ffffT", "O17;#ffffffT", "O10;rgb:{h}/{h}/{h}T\x1b\\", "O104T", "O21;foreground=rgb:{h}T"),
    *(
        "O52;c;eQ0KMQ0KeXkxT",
        "O52;p;{b}T",
        "O52;;{b}T",
        "Ol{w}T",
        "OL{w}T",
        "O]{w}T",
        "O7501;status={w}T",
        "O9;4;1;{n}T",
    ),
    *("O1337;ReportCellSize={n}.0;{n}.0;1.0T", "O1337;Capabilities={w}T", "O60;{w}T", "O99;i={n}:p=?;{w}T"),
    *(
        "C8;{n};{n}t",
        "C9;{n};{n}t",
        "C4;{n};{n}t",
        "C6;{n};{n}t",
        "C3;{n};{n}t",
        "C1t",
        "C2t",
        "C5;{n};{n}t",
        "C48;{n};{n};1;1t",
    ),
    *("A Gi={n};OKT", "AGi=31;OKT", "AGi={n},p=1;ENOENT:{w}T", "AGi={n};EINVAL:y1yT", "A{w}T", "P{w}T", "S{w}T"),
    *(
        "C<0;{n};{n}M",
        "C<0;{n};{n}m",
        "C<64;{n};{n}M",
        "C{n};{n};{n}M",
        "CM {x}{x}",
        "CM#{x}{x}",
        "CMC{x}{x}",
        "CI",
        "CO",
    ),
    *("Ct{x}{x}", "CT{x}{x}{x}{x}{x}{x}", "C?1;3;256S", "C?2;0;{n};{n}S", "C?1;0S", "C2;1x", "C3;1;1;112;112;1;0x"),
    *(
        "C121;1:3u",
        "C49;1:3u",
        "C13;1:3u",
        "C57441;1:3u",
        "C1;1:3A",
        "C27;1;{n}R",
        "C?{n};1;0n",
        "C{n}*y",
        "D{n}!~ABCDT",
    ),
    *("C0;0;0$y", "C{n};{n};{n}&w", "C>77;{n};0c", "C>65;{n};1c", "C>115;{n};0c", "O633;P;{w}T", "O3;{w}T", "D0!uT"),
)
_SEVEN = {"C": "\x1b[", "O": "\x1b]", "D": "\x1bP", "A": "\x1b_", "P": "\x1b^", "S": "\x1bX", "T": "\x1b\\"}
_EIGHT = {"C": "\x9b", "O": "\x9d", "D": "\x90", "A": "\x9f", "P": "\x9e", "S": "\x98", "T": "\x9c"}
_WORDS = "y1n2 \r3abcqtzg/Yes No;=,.:@-_%"  # a title can be anything that a program has set


def random_reply(chance: random.Random) -> bytes:
    text = chance.choice(_TEMPLATES)
    eight, encoded = chance.random() < 0.3, chance.random() < 0.5
    out = bytearray()
    place = 0
    while place < len(text):
        char = text[place]
        if char == "{":
            out += _fill(text[place + 1], chance).encode()
            place += 3
            continue
        first = place == 0 and char in _SEVEN
        end = char == "T" and text[0] in "ODAPS" and place >= len(text) - 3
        if (first or end) and not (end and place == 0):
            out += _control(char, text[0], eight, encoded, chance)
        else:
            out += char.encode()
        place += 1
    return bytes(out)


def _control(char: str, kind: str, eight: bool, encoded: bool, chance: random.Random) -> bytes:
    if char == "T" and kind == "O" and chance.random() < 0.5:
        return b"\x07"
    if eight:
        return _EIGHT[char].encode("utf-8" if encoded else "latin-1")
    return _SEVEN[char].encode()


def _fill(what: str, chance: random.Random) -> str:
    match what:
        case "n":
            return str(chance.choice((0, 1, 2, 3, chance.randrange(300), chance.randrange(100_000))))
        case "d":
            return str(chance.randrange(5))
        case "h":
            return f"{chance.randrange(65536):04x}"
        case "b":
            return "".join(chance.choices("eQ0KMXkxYnl5MTEx", k=4 * chance.randrange(1, 9)))
        case "x":
            return chr(chance.randrange(0x21, 0x7F))
        case _:
            return "".join(chance.choices(_WORDS, k=chance.randrange(1, 40)))


def pieces(data: bytes, chance: random.Random) -> list[bytes]:
    """As a terminal that is read byte by byte, in halves, or at once would give it."""
    if chance.random() < 0.3:
        return [data]
    cuts = (
        sorted(chance.sample(range(1, len(data)), min(len(data) - 1, chance.randrange(1, 6)))) if len(data) > 1 else []
    )
    edges = [0, *cuts, len(data)]
    return [data[begin:end] for begin, end in pairwise(edges)]
