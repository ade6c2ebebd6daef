"""Parses the output stream of a tool and applies it to a terminal: text, control characters, sequences, control
strings."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

from atlasbridge.core.screen import queries
from atlasbridge.core.screen.terminal import Args, Terminal

# Splits the bytes of a terminal stream into tokens: text runs, control characters, escape sequences, control strings.
#
# The tokens do not depend on how the bytes are chunked. `Stream` interprets them.

MAX_STRING = 16384  # longer OSC or DCS bodies (images, clipboards) are discarded
_SLICE = 8192  # bytes tokenised at once: a flood never creates a huge list, whose memory would not be released

# Inside a sequence, a terminal executes control characters and continues; CAN, SUB and ESC end it.
_INSIDE_CSI = r"[\x00-\x17\x19\x1c-\x3f\x7f]{0,1024}"
_INSIDE_ESC = r"[\x00-\x17\x19\x1c-\x2f\x7f]{0,8}"
_OSC_BODY = r"\][^\x07\x18\x1a\x1b]*"
_DCS_BODY = r"[PX^_][^\x18\x1a\x1b]*"
_TITLE_BODY = r"k[^\x00-\x1f\x7f]{0,256}"  # the title of TERM=screen; without its end it is text, as in an xterm
_split = re.compile(
    rf"(?:\x1b\[({_INSIDE_CSI})([@-~])"  # 1, 2: parameters and final byte of a control sequence
    r"|([\x00-\x1a\x1c-\x1f\x7f]+"  # 3: control characters ...
    rf"|\x1b{_OSC_BODY}(?:\x07|\x1b\\|[\x18\x1a]|(?=\x1b[^\\]))"  # ... or a control string ...
    rf"|\x1b{_DCS_BODY}(?:\x1b\\|[\x18\x1a]|(?=\x1b[^\\]))"
    rf"|\x1b{_TITLE_BODY}\x1b\\"
    rf"|(?!\x1b{_TITLE_BODY}\x1b?\Z)\x1b{_INSIDE_ESC}[0-OQ-WYZ\\`-~])"  # ... or a short escape sequence
    rf"|(\x1b(?:\[{_INSIDE_CSI}|(?:{_OSC_BODY}|{_DCS_BODY}|{_TITLE_BODY})\x1b?|{_INSIDE_ESC})\Z)"  # 4: unfinished
    rf"|\x1b\[{_INSIDE_CSI}|\x1b{_INSIDE_ESC})?"  # an invalid sequence is dropped; what follows is text again
    r"([^\x00-\x1f\x7f]*)",  # 5: the text after it
    re.S,
).findall
_osc_end = re.compile(r"[\x07\x18\x1a\x1b]").search
_dcs_end = re.compile(r"[\x18\x1a\x1b]").search

# UTF-8 terminals show U+0080 to U+009F and do not execute them. They are replaced, because the stored text must not
# control another terminal.
_C1 = dict.fromkeys(range(0x80, 0xA0), "\ufffd")
_has_c1 = re.compile("[\x80-\x9f]").search

Token = tuple[str, str, str, str, str]  # parameters, final byte, other, unfinished, text


class Tokenizer:
    """Keeps the unfinished end of a chunk: a part of a UTF-8 character, of a sequence, or of a control string."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._held = ""
        self._body: list[str] | None = None  # pieces of an unfinished control string
        self._size = 0

    def slices(self, data: bytes) -> range:
        return range(0, len(data), _SLICE)

    def split(self, data: bytes, start: int = 0) -> list[Token]:
        text = self._decode(data[start : start + _SLICE])
        if not text.isascii() and _has_c1(text):
            text = text.translate(_C1)
        if self._held:
            text = self._held + text
            self._held = ""
        if self._body is None:
            return self._tokens(text)
        return self._inside_string(text)

    def _tokens(self, text: str) -> list[Token]:
        tokens: list[Token] = _split(text)
        # The unfinished piece is the last token, except for the empty match at the very end.
        for token in tokens[-2:]:
            if token[3]:
                self._hold(token[3])
        return tokens

    def _hold(self, piece: str) -> None:
        if piece[1:2] in ("]", "P", "X", "^", "_") and piece[1:]:
            if piece.endswith("\x1b"):
                self._held = "\x1b"
                piece = piece[:-1]
            self._body = []
            self._size = 0
            self._collect(piece)
        else:
            self._held = piece

    def _collect(self, piece: str) -> None:
        """Keeps a piece of a control string, or only its first characters once the string is too long."""
        assert self._body is not None
        self._size += len(piece)
        if self._size <= MAX_STRING:
            if piece:
                self._body.append(piece)
        else:
            self._body[:] = [self._body[0][:2] if self._body else piece[:2]]

    def _inside_string(self, text: str) -> list[Token]:
        assert self._body is not None
        is_osc = self._body[0][1] == "]"
        end = (_osc_end if is_osc else _dcs_end)(text)
        if end is None:
            self._collect(text)
            return []
        at = end.start()
        if text[at] == "\x1b" and at + 1 == len(text):
            self._collect(text[:at])
            self._held = "\x1b"
            return []
        return self._finish_string(text, at)

    def _finish_string(self, text: str, at: int) -> list[Token]:
        assert self._body is not None
        self._collect(text[:at])
        whole, fits = "".join(self._body), self._size <= MAX_STRING
        self._body = None
        if text[at] == "\x1b" and text[at + 1] != "\\":
            return [("", "", whole[:2], "", ""), *self._tokens(text[at:])]  # another sequence has ended the string
        after = at + (2 if text[at] == "\x1b" else 1)
        tokens = self._tokens(text[after:])
        return [("", "", whole + text[at:after] if fits else whole[:2], "", ""), *tokens]


# Tables from escape sequence to function, for control sequences (CSI) and short escape sequences.
#
# A key is marks plus final byte: `?h` is `CSI ? ... h`, `$p` is `CSI ... $ p`. Unlisted sequences do nothing.

_MAX_NUMBER = 65535
_parsed: dict[str, tuple[str, Args] | None] = {}


def parse_parameters(text: str) -> tuple[str, Args] | None:
    """Returns marks (a leading `<`, `=`, `>` or `?`, and intermediates) and numbers; None if the text is malformed."""
    if text not in _parsed:
        if len(_parsed) >= 4096:
            _parsed.clear()
        _parsed[text] = _parse(text)
    return _parsed[text]


def _parse(text: str) -> tuple[str, Args] | None:
    prefix = text[:1] if text.startswith(("<", "=", ">", "?")) else ""
    rest = text[len(prefix) :]
    body = rest.rstrip(" !\"#$%&'()*+,-./")
    numbers = body.replace(":", ";").split(";")[:32]  # colons have a meaning only in styles, which are parsed elsewhere
    if not all(number == "" or (number.isdecimal() and number.isascii()) for number in numbers):
        return None
    return prefix + rest[len(body) :], tuple(min(int(number or "0"), _MAX_NUMBER) for number in numbers)


def _second(args: Args, default: int = 1) -> int:
    return (args[1] if len(args) > 1 else 0) or default


def _position(t: Terminal, args: Args) -> None:
    t.home((args[0] or 1) - 1, _second(args) - 1)


def _columns(t: Terminal, part: int) -> tuple[int, int] | None:
    """The columns of the cursor's line to erase."""
    return {0: (t.x, t.cols), 1: (0, t.x + 1), 2: (0, t.cols)}.get(part)


def _erase_line(t: Terminal, args: Args) -> None:
    if columns := _columns(t, args[0]):
        t.erase(t.y, *columns)
    t.wrap_due = False


def _erase_line_but(t: Terminal, args: Args) -> None:
    """Erases the cells that are not protected."""
    if columns := _columns(t, args[0]):
        t.erase_unguarded(t.y, *columns)
    t.wrap_due = False


def _erase_screen_but(t: Terminal, args: Args) -> None:
    whole = {0: range(t.y + 1, t.rows), 1: range(t.y), 2: range(t.rows)}.get(args[0], range(0))
    for y in whole:
        t.erase_unguarded(y, 0, t.cols)
    if args[0] < 2:
        _erase_line_but(t, args)
    t.wrap_due = False


def _erase_screen(t: Terminal, args: Args) -> None:
    if args[0] == 0:
        t.erase(t.y, t.x, t.cols)
        t.erase_lines(t.y + 1, t.rows)
    elif args[0] == 1:
        t.erase_lines(0, t.y)
        t.erase(t.y, 0, t.x + 1)
    elif args[0] == 2:
        t.erase_lines(0, t.rows)
    elif args[0] == 3:
        t.history.clear()
        t.past.clear()
    t.wrap_due = False


def _erase_cells(t: Terminal, args: Args) -> None:
    t.erase(t.y, t.x, min(t.cols, t.x + (args[0] or 1)))
    t.wrap_due = False


def _insert_lines(t: Terminal, args: Args) -> None:
    if t.top <= t.y <= t.bottom and t.left <= t.x < t.edge:
        t.scroll_down(args[0] or 1, t.y)
        t.move(t.y, t.left)


def _delete_lines(t: Terminal, args: Args) -> None:
    if t.top <= t.y <= t.bottom and t.left <= t.x < t.edge:
        t.scroll_up(args[0] or 1, t.y, keep=False)
        t.move(t.y, t.left)


def _scroll_down(t: Terminal, args: Args) -> None:
    if len(args) == 1:  # with five parameters it is mouse highlighting
        t.scroll_down(args[0] or 1, t.top)


def _clear_tabs(t: Terminal, args: Args) -> None:
    if args[0] == 0:
        t.tabs.discard(t.x)
    elif args[0] == 3:
        t.tabs.clear()


def _report_status(t: Terminal, args: Args, private: bool = False) -> None:
    if args[0] == 5 and not private:
        t.answer(queries.STATUS_OK)
    elif args[0] == 6:
        y, x = (t.y - t.top, t.x - t.left) if t.origin else (t.y, t.x)
        t.answer(queries.cursor_position(y, x, private))
    elif args[0] == 15 and private:
        t.answer(queries.NO_PRINTER)


def _report_ansi_mode(t: Terminal, args: Args) -> None:
    state = {4: 1 if t.insert else 2, 20: 1 if t.newline else 2}.get(args[0], 0)
    t.answer(queries.mode_report(args[0], state, private=False))


def _window(t: Terminal, args: Args) -> None:
    if args[0] == 22:
        t.push_title()
    elif args[0] == 23:
        t.pop_title()
    else:
        t.answer(queries.window_report(args[0], t.rows, t.cols))


def _set_kitty(t: Terminal, args: Args) -> None:
    def change(stack: list[int]) -> None:
        old, flags = stack[-1], args[0]
        stack[-1] = {1: flags, 2: old | flags, 3: old & ~flags}.get(_second(args), old)

    t.change_kitty(change)


def _pop_kitty(stack: list[int], count: int) -> None:
    del stack[-count:]


def _next_line(t: Terminal, count: int) -> None:
    t.down(count)
    t.carriage_return()


def _previous_line(t: Terminal, count: int) -> None:
    t.up(count)
    t.carriage_return()


def _save_or_side_margins(t: Terminal, args: Args) -> None:
    """`CSI s` has two meanings: if left and right margins are enabled, it sets them."""
    if 69 in t.modes:
        t.set_side_margins((args[0] or 1) - 1, _second(args, t.cols) - 1)
    else:
        t.save_cursor()


def _down_anywhere(t: Terminal, count: int) -> None:
    """Unlike cursor down, it does not stop at the margin."""
    t.move(min(t.y + count, t.bottom) if t.origin else t.y + count, t.x)


SEQUENCES: dict[str, Callable[[Terminal, Args], None]] = {
    "H": _position,
    "f": _position,
    "A": lambda t, args: t.up(args[0] or 1),
    "B": lambda t, args: t.down(args[0] or 1),
    "e": lambda t, args: _down_anywhere(t, args[0] or 1),
    "C": lambda t, args: t.forth(args[0] or 1),
    "a": lambda t, args: t.move(t.y, t.x + (args[0] or 1)),
    "D": lambda t, args: t.back(args[0] or 1),
    "E": lambda t, args: _next_line(t, args[0] or 1),
    "F": lambda t, args: _previous_line(t, args[0] or 1),
    "G": lambda t, args: t.to_column((args[0] or 1) - 1),
    "`": lambda t, args: t.to_column((args[0] or 1) - 1),
    "d": lambda t, args: t.to_row((args[0] or 1) - 1),
    "I": lambda t, args: t.tab(args[0] or 1),
    "Z": lambda t, args: t.back_tab(args[0] or 1),
    "g": _clear_tabs,
    "K": _erase_line,
    "?K": _erase_line_but,
    "J": _erase_screen,
    "?J": _erase_screen_but,
    "X": _erase_cells,
    "@": lambda t, args: t.insert_cells(args[0] or 1),
    "P": lambda t, args: t.delete_cells(args[0] or 1),
    "L": _insert_lines,
    "M": _delete_lines,
    "S": lambda t, args: t.scroll_up(args[0] or 1, t.top),
    "T": _scroll_down,
    "b": lambda t, args: t.repeat(args[0] or 1),
    "r": lambda t, args: t.set_margins((args[0] or 1) - 1, _second(args, t.rows) - 1),
    "s": _save_or_side_margins,
    '"q': lambda t, args: t.guard(args[0] == 1),
    "u": lambda t, args: t.restore_cursor(),
    "h": lambda t, args: t.set_ansi_modes(args, True),
    "l": lambda t, args: t.set_ansi_modes(args, False),
    "?h": lambda t, args: t.set_modes(args, True),
    "?l": lambda t, args: t.set_modes(args, False),
    "?s": lambda t, args: t.save_modes(args),
    "?r": lambda t, args: t.restore_modes(args),
    "!p": lambda t, args: t.soft_reset(),
    ">u": lambda t, args: t.change_kitty(lambda stack: stack.append(args[0])),
    "<u": lambda t, args: t.change_kitty(lambda stack: _pop_kitty(stack, args[0] or 1)),
    "=u": _set_kitty,
    # Queries. `CSI ? u` has no entry: an xterm does not answer it, and tools then use the plain keyboard.
    "c": lambda t, args: t.answer(queries.PRIMARY if args[0] == 0 else None),
    ">c": lambda t, args: t.answer(queries.SECONDARY if args[0] == 0 else None),
    "=c": lambda t, args: t.answer(queries.TERTIARY if args[0] == 0 else None),
    ">q": lambda t, args: t.answer(queries.VERSION if args[0] == 0 else None),
    "n": _report_status,
    "?n": lambda t, args: _report_status(t, args, private=True),
    "?$p": lambda t, args: t.answer(queries.mode_report(args[0], t.mode_state(args[0]), private=True)),
    "$p": _report_ansi_mode,
    "t": _window,
}


def _keypad(t: Terminal, on: bool) -> None:
    t.application_keypad = on


def _line_start(t: Terminal) -> None:
    t.carriage_return()
    t.linefeed()


ESCAPES: dict[str, Callable[[Terminal], None]] = {
    "7": lambda t: t.save_cursor(),
    "8": lambda t: t.restore_cursor(),
    "D": lambda t: t.linefeed(),
    "E": _line_start,
    "M": lambda t: t.reverse_linefeed(),
    "H": lambda t: t.tabs.add(t.x),
    "c": lambda t: t.clear(),
    "n": lambda t: t.use_charset(2),
    "o": lambda t: t.use_charset(3),
    "=": lambda t: _keypad(t, True),
    ">": lambda t: _keypad(t, False),
    "Z": lambda t: t.answer(queries.PRIMARY),
    "#8": lambda t: t.align(),
}
DESIGNATE = {"(": 0, ")": 1, "*": 2, "+": 3}


_NOTICES = {"7501": "osc7501", "9": "osc9", "99": "osc99", "777": "osc777", "133": "osc133"}
_STYLE_PARAMETERS = frozenset("0123456789;:")


class Stream:
    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._tokenizer = Tokenizer()
        self._printed = False  # whether the last token was text: only text can be repeated

    def feed(self, data: bytes) -> None:
        for start in self._tokenizer.slices(data):
            self._run(self._tokenizer.split(data, start))

    def _run(self, tokens: list[tuple[str, str, str, str, str]]) -> None:
        terminal = self._terminal
        turns = terminal.inks.turns
        printed = self._printed
        for params, final, other, _, text in tokens:
            if final:
                if final == "m":
                    ink = turns.get((terminal.ink, params))
                    if ink is None:
                        self._style(params)
                    else:
                        terminal.ink = ink
                elif printed or final != "b":
                    self._sequence(params, final)
            elif other == "\r\n":
                if terminal.boxed:
                    terminal.carriage_return()
                else:
                    terminal.x = 0
                terminal.linefeed()
            elif other:
                self._other(other)
            if text:
                terminal.print(text)
                printed = True
            elif final or other:
                printed = False
        self._printed = printed

    def _style(self, params: str) -> None:
        if _STYLE_PARAMETERS.issuperset(params):
            self._terminal.colour(params)
        else:
            self._sequence(params, "m")

    def _sequence(self, params: str, final: str) -> None:
        parsed = parse_parameters(params)
        if parsed is None:
            self._interrupted(params, final)
            return
        if ":" in params:
            return  # sub-parameters are supported only in styles
        handler = SEQUENCES.get(parsed[0] + final)
        if handler is not None:
            handler(self._terminal, parsed[1])

    def _interrupted(self, params: str, final: str) -> None:
        """Executes the control characters inside a sequence, then continues the sequence after them."""
        rest = "".join(char for char in params if " " <= char != "\x7f")
        if rest == params:
            return
        for char in params:
            self._control(char)
        if final == "m":
            self._style(rest)
        else:
            self._sequence(rest, final)

    def _other(self, token: str) -> None:
        if token[0] != "\x1b":
            for char in token:
                self._control(char)
        elif token[1] in "]PX^_" or (token[1] == "k" and len(token) > 2):
            self._string(token)
        else:
            self._escape(token)

    def _control(self, char: str) -> None:
        terminal = self._terminal
        if char in "\n\x0b\x0c":
            if terminal.newline:
                terminal.carriage_return()
            terminal.linefeed()
        elif char == "\r":
            terminal.carriage_return()
        elif char == "\b":
            terminal.back(1)
        elif char == "\t":
            terminal.tab(1)
        elif char == "\x07":
            terminal.notify("bell")
        elif char in "\x0e\x0f":
            terminal.use_charset(1 if char == "\x0e" else 0)

    def _escape(self, token: str) -> None:
        inside, final = token[1:-1], token[-1]
        for char in inside:
            self._control(char)
        marks = "".join(char for char in inside if " " <= char != "\x7f")
        if marks in DESIGNATE:
            self._terminal.designate(DESIGNATE[marks], final)
        elif handler := ESCAPES.get(marks + final):
            handler(self._terminal)

    def _string(self, token: str) -> None:
        end = "\x07" if token[1] == "]" and token[-1] == "\x07" else "\x1b\\"
        if not token.endswith(end) or len(token) - len(end) > MAX_STRING:
            return
        body = "".join(char for char in token[2 : -len(end)] if char >= " ")
        terminal = self._terminal
        if token[1] == "k":
            terminal.set_title(body)
        elif token[1] == "]":
            number, _, payload = body.partition(";")
            self._command(number, payload, end)
        elif token[1] == "P" and body.startswith("+q"):
            terminal.answer(*queries.capability_report(body[2:]))
        elif token[1] == "P" and body.startswith("$q"):
            style = terminal.inks.style(terminal.ink)
            terminal.answer(queries.setting_report(body[2:], style, terminal.top, terminal.bottom))

    def _command(self, number: str, payload: str, end: str) -> None:
        terminal = self._terminal
        if number in ("0", "2"):
            terminal.set_title(payload)
        elif number in _NOTICES:
            terminal.notify(_NOTICES[number], payload)
            if number == "7501" and payload == "?":
                terminal.answer(b"\x1b]7501;?\x1b\\")
        elif number in ("4", "10", "11", "12"):
            terminal.answer(*queries.colour_reports(int(number), payload, end))
