"""The stream of a tool run into a terminal: tokens, control characters, sequences, control strings."""

from __future__ import annotations

from atlasbridge.core.screen import queries
from atlasbridge.core.screen.sequences import DESIGNATE, ESCAPES, SEQUENCES, parse_parameters
from atlasbridge.core.screen.terminal import Terminal
from atlasbridge.core.screen.tokens import MAX_STRING, Tokenizer

_NOTICES = {"7501": "osc7501", "9": "osc9", "99": "osc99", "777": "osc777", "133": "osc133"}
_STYLE_PARAMETERS = frozenset("0123456789;:")


class Stream:
    __slots__ = ("_printed", "_terminal", "_tokenizer")

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._tokenizer = Tokenizer()
        self._printed = False  # whether the last thing of all was text: only then may it be repeated

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
            return  # parts of parameters are known in styles alone
        handler = SEQUENCES.get(parsed[0] + final)
        if handler is not None:
            handler(self._terminal, parsed[1])

    def _interrupted(self, params: str, final: str) -> None:
        """Control characters inside a sequence take effect, and the sequence goes on after them."""
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
