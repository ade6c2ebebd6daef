"""Tables from escape sequence to control function, for control sequences (CSI) and short escape sequences.

A key is marks plus final byte: `?h` is `CSI ? ... h`, `$p` is `CSI ... $ p`.  Unlisted sequences do nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from atlasbridge.core.screen import queries
from atlasbridge.core.screen.terminal import Args, Terminal

_MAX_NUMBER = 65535
_parsed: dict[str, tuple[str, Args] | None] = {}


def parse_parameters(text: str) -> tuple[str, Args] | None:
    """Marks (a leading `<`, `=`, `>` or `?`, and intermediates) and numbers; None when it is malformed."""
    if text not in _parsed:
        if len(_parsed) >= 4096:
            _parsed.clear()
        _parsed[text] = _parse(text)
    return _parsed[text]


def _parse(text: str) -> tuple[str, Args] | None:
    prefix = text[:1] if text.startswith(("<", "=", ">", "?")) else ""
    rest = text[len(prefix) :]
    body = rest.rstrip(" !\"#$%&'()*+,-./")
    numbers = body.replace(":", ";").split(";")[:32]  # colons mean something in styles only, which are read elsewhere
    if not all(number == "" or (number.isdecimal() and number.isascii()) for number in numbers):
        return None
    return prefix + rest[len(body) :], tuple(min(int(number or "0"), _MAX_NUMBER) for number in numbers)


def _second(args: Args, default: int = 1) -> int:
    return (args[1] if len(args) > 1 else 0) or default


def _position(t: Terminal, args: Args) -> None:
    t.home((args[0] or 1) - 1, _second(args) - 1)


def _columns(t: Terminal, part: int) -> tuple[int, int] | None:
    """What of the cursor's line is erased."""
    return {0: (t.x, t.cols), 1: (0, t.x + 1), 2: (0, t.cols)}.get(part)


def _erase_line(t: Terminal, args: Args) -> None:
    if columns := _columns(t, args[0]):
        t.erase(t.y, *columns)
    t.wrap_due = False


def _erase_line_but(t: Terminal, args: Args) -> None:
    """What is not protected."""
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
    if len(args) == 1:  # five parameters are mouse highlighting
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
    """`CSI s` is two things: with left and right margins allowed it sets them."""
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
    # Questions.  `CSI ? u` has no entry: an xterm is silent, and tools then use the keyboard every terminal has.
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
