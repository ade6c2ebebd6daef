"""The style of a cell: a style is one int (flags, foreground, background), and an ink is one character that represents
it.

Rows store their styles as a string of inks with the length of their text, so that both are cut and joined in the same
way.
"""

from __future__ import annotations

BOLD, DIM, ITALIC, UNDERLINE, BLINK, REVERSE, HIDDEN, STRIKE = (1 << bit for bit in range(8))
FLAGS = 0xFF
_FG_SHIFT, _BG_SHIFT = 8, 34
_COLOUR = (1 << 26) - 1
_INDEXED, _TRUE = 1 << 24, 2 << 24

GUARDED = 1 << 60  # stored beside a style, never a part of it: a protected cell looks like any other
MAX_INKS = 16384
_MAX_TURNS = 4096

_ON = {1: BOLD, 2: DIM, 3: ITALIC, 4: UNDERLINE, 5: BLINK, 6: BLINK, 7: REVERSE, 8: HIDDEN, 9: STRIKE, 21: UNDERLINE}
_OFF = {
    22: BOLD | DIM,
    23: ITALIC,
    24: UNDERLINE,
    25: BLINK,
    27: REVERSE,
    28: HIDDEN,
    29: STRIKE,
}

PLAIN = "\0"  # the ink of the default style
_GREYS = {8, 59, 102, 145, *range(0xEC, 0xFB)}  # "bright black", and the palette's greys except the lightest
_DARK_GREYS = range(0xE8, 0xEC)
_TINT = 24  # maximum difference between the components of a grey
_PALEST = 200  # maximum brightness of a grey that counts as faded


def foreground(style: int) -> int | str | None:
    """None for the default colour, 0 to 255 for a palette entry, "#rrggbb" for true colour."""
    return _colour(style >> _FG_SHIFT & _COLOUR)


def background(style: int) -> int | str | None:
    return _colour(style >> _BG_SHIFT & _COLOUR)


def _colour(value: int) -> int | str | None:
    if value >= _TRUE:
        return f"#{value & 0xFFFFFF:06x}"
    return value & 0xFF if value else None


def is_faded(style: int) -> bool:
    """Whether the text is less prominent, like the explanation of a choice or the placeholder of a field."""
    return bool(style & DIM) or _is_grey(foreground(style))


def is_dull(style: int) -> bool:
    """Whether the background has no meaning: the default, or a grey."""
    ground = background(style)
    return ground is None or ground in _DARK_GREYS or _is_grey(ground)


def is_coloured(style: int) -> bool:
    """Whether the text has a colour of its own that is not a grey."""
    colour = foreground(style)
    return colour is not None and colour not in _DARK_GREYS and not _is_grey(colour)


def _is_grey(colour: int | str | None) -> bool:
    if not isinstance(colour, str):
        return colour in _GREYS
    parts = bytes.fromhex(colour[1:])
    return max(parts) - min(parts) <= _TINT and 0 < max(parts) <= _PALEST


def _with_fg(style: int, colour: int) -> int:
    return style & ~(_COLOUR << _FG_SHIFT) | colour << _FG_SHIFT


def _with_bg(style: int, colour: int) -> int:
    return style & ~(_COLOUR << _BG_SHIFT) | colour << _BG_SHIFT


def background_only(style: int) -> int:
    """The part of a style that an erased cell keeps."""
    return style & _COLOUR << _BG_SHIFT


def render_sgr(style: int) -> str:
    """The SGR parameters that set this style, for programs that ask (DECRQSS)."""
    return render_colours(foreground(style), background(style), style)


def render_colours(front: int | str | None, back: int | str | None, flags: int) -> str:
    """Like `render_sgr`, for the parts of a style."""
    params = ["0"]
    params += [str(code) for code, flag in _ON.items() if flags & flag and code not in (6, 21)]
    for base, colour in ((30, front), (40, back)):
        if isinstance(colour, str):
            red, green, blue = bytes.fromhex(colour[1:])
            params.append(f"{base + 8};2;{red};{green};{blue}")
        elif colour is not None:
            simple = base + colour if colour < 8 else base + 52 + colour if colour < 16 else 0
            params.append(str(simple) if simple else f"{base + 8};5;{colour}")
    return ";".join(params)


def parse_sgr(style: int, params: str) -> int:
    """The style after `CSI params m`. Unknown codes are skipped."""
    codes = params.split(";")
    at = 0
    while at < len(codes):
        code = codes[at]
        at += 1
        if ":" in code:
            style = _apply_colon(style, code.split(":"))
            continue
        number = _number(code)
        if number in (38, 48, 58):
            colour, used = _extended([_number(piece) for piece in codes[at : at + 4]])
            at += used
            style = _paint(style, number, colour)
        else:
            style = _apply(style, number)
    return style


def _number(text: str) -> int:
    return min(int(text), 65535) if text.isdecimal() and len(text) < 10 else 0


def _apply(style: int, code: int) -> int:
    if code == 0:
        return 0
    if code in _ON:
        return style | _ON[code]
    if code in _OFF:
        return style & ~_OFF[code]
    if 30 <= code <= 37:
        return _with_fg(style, _INDEXED | code - 30)
    if 40 <= code <= 47:
        return _with_bg(style, _INDEXED | code - 40)
    if 90 <= code <= 97:
        return _with_fg(style, _INDEXED | code - 82)
    if 100 <= code <= 107:
        return _with_bg(style, _INDEXED | code - 92)
    if code == 39:
        return _with_fg(style, 0)
    if code == 49:
        return _with_bg(style, 0)
    return style


def _apply_colon(style: int, parts: list[str]) -> int:
    code, rest = _number(parts[0]), [_number(part) for part in parts[1:]]
    if code == 4:
        return style | UNDERLINE if rest[0] else style & ~UNDERLINE
    if code not in (38, 48, 58):
        return style
    if rest[0] == 2 and len(rest) >= 5:  # 38:2:<colour space>:r:g:b
        rest = [2, *rest[2:5]]
    return _paint(style, code, _extended(rest)[0])


def _extended(args: list[int]) -> tuple[int | None, int]:
    """The colour after 38 or 48, and the number of its parameters."""
    if len(args) >= 2 and args[0] == 5:
        return (_INDEXED | args[1] if args[1] < 256 else None), 2
    if len(args) >= 4 and args[0] == 2:
        red, green, blue = args[1:4]
        valid = red < 256 and green < 256 and blue < 256
        return (_TRUE | red << 16 | green << 8 | blue if valid else None), 4
    return None, len(args)


def _paint(style: int, code: int, colour: int | None) -> int:
    if colour is None or code == 58:  # the colour of an underline is not stored
        return style
    return _with_fg(style, colour) if code == 38 else _with_bg(style, colour)


class Inks:
    """The styles in use, each represented by one character, and a cache of the effect of each SGR sequence."""

    def __init__(self) -> None:
        self.styles: list[int] = [0]
        self._guarded: set[str] = set()  # inks of cells that a selective erase keeps
        self._chars: dict[int, str] = {0: PLAIN}
        self.turns: dict[tuple[str, str], str] = {}

    def style(self, ink: str) -> int:
        return self.styles[ord(ink)]

    def ink(self, style: int) -> str:
        char = self._chars.get(style)
        if char is None:
            char = chr(len(self.styles))
            self.styles.append(style & ~GUARDED)
            self._chars[style] = char
            if style & GUARDED:
                self._guarded.add(char)
        return char

    def guard(self, ink: str, on: bool) -> str:
        """The same style with or without the protection of DECSCA."""
        return self.ink(self.style(ink) | (GUARDED if on else 0))

    def open_runs(self, inks: str, start: int, end: int) -> list[tuple[int, int]]:
        """The runs of columns between `start` and `end` that are not protected."""
        if self._guarded.isdisjoint(inks):
            return [(start, end)]
        runs: list[tuple[int, int]] = []
        for col in range(start, end):
            if inks[col] in self._guarded:
                continue
            if runs and runs[-1][1] == col:
                runs[-1] = (runs[-1][0], col + 1)
            else:
                runs.append((col, col + 1))
        return runs

    def turn(self, ink: str, params: str) -> str:
        """The ink after `CSI params m`."""
        if len(self.turns) >= _MAX_TURNS:
            self.turns.clear()
        new = self.turns[ink, params] = self.guard(self.ink(parse_sgr(self.style(ink), params)), ink in self._guarded)
        return new

    @property
    def full(self) -> bool:
        return len(self.styles) >= MAX_INKS

    def renew(self, live: set[str]) -> dict[int, str]:
        """Drops all inks except the live ones. Returns old code -> new ink. If too many are live, they lose their
        colours."""
        keep = ~0 if len(live) <= MAX_INKS // 2 else FLAGS
        old, guarded = self.styles, self._guarded
        self.styles, self._chars, self._guarded = [0], {0: PLAIN}, set()
        self.turns.clear()
        return {ord(ink): self.guard(self.ink(old[ord(ink)] & keep), ink in guarded) for ink in live}
