"""Bytes of a terminal stream cut into tokens: text runs, control characters, escape sequences, control strings.

Any chunking of the same bytes gives the same tokens.  What a token means is left to `terminal`.
"""

from __future__ import annotations

import codecs
import re

MAX_STRING = 16384  # longer OSC or DCS bodies (images, clipboards) are swallowed whole
_SLICE = 8192  # bytes tokenised at once: a flood never becomes a huge list, whose memory would stay with us

# Inside a sequence a terminal executes control characters and goes on; CAN, SUB and ESC end it.
_INSIDE_CSI = r"[\x00-\x17\x19\x1c-\x3f\x7f]{0,1024}"
_INSIDE_ESC = r"[\x00-\x17\x19\x1c-\x2f\x7f]{0,8}"
_OSC_BODY = r"\][^\x07\x18\x1a\x1b]*"
_DCS_BODY = r"[PX^_][^\x18\x1a\x1b]*"
_TITLE_BODY = r"k[^\x00-\x1f\x7f]{0,256}"  # the title of TERM=screen; without its end it is text, as an xterm shows it
_split = re.compile(
    rf"(?:\x1b\[({_INSIDE_CSI})([@-~])"  # 1, 2: parameters and final byte of a control sequence
    r"|([\x00-\x1a\x1c-\x1f\x7f]+"  # 3: control characters ...
    rf"|\x1b{_OSC_BODY}(?:\x07|\x1b\\|[\x18\x1a]|(?=\x1b[^\\]))"  # ... or a control string ...
    rf"|\x1b{_DCS_BODY}(?:\x1b\\|[\x18\x1a]|(?=\x1b[^\\]))"
    rf"|\x1b{_TITLE_BODY}\x1b\\"
    rf"|(?!\x1b{_TITLE_BODY}\x1b?\Z)\x1b{_INSIDE_ESC}[0-OQ-WYZ\\`-~])"  # ... or a short escape sequence
    rf"|(\x1b(?:\[{_INSIDE_CSI}|(?:{_OSC_BODY}|{_DCS_BODY}|{_TITLE_BODY})\x1b?|{_INSIDE_ESC})\Z)"  # 4: unfinished
    rf"|\x1b\[{_INSIDE_CSI}|\x1b{_INSIDE_ESC})?"  # a broken sequence is dropped, what follows is text again
    r"([^\x00-\x1f\x7f]*)",  # 5: the text after it
    re.S,
).findall
_osc_end = re.compile(r"[\x07\x18\x1a\x1b]").search
_dcs_end = re.compile(r"[\x18\x1a\x1b]").search

# In UTF-8 terminals show U+0080 to U+009F and obey none of them.  What is kept here must not steer another terminal.
_C1 = dict.fromkeys(range(0x80, 0xA0), "\ufffd")
_has_c1 = re.compile("[\x80-\x9f]").search

Token = tuple[str, str, str, str, str]  # parameters, final byte, other, unfinished, text


class Tokenizer:
    """Keeps what a chunk left unfinished: part of a UTF-8 character, of a sequence, of a control string."""

    __slots__ = ("_body", "_decode", "_held", "_size")

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._held = ""
        self._body: list[str] | None = None  # pieces of a control string whose end has not come
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
        # The unfinished piece is the last token but for the empty match at the very end.
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
        """Keep a piece of a control string, or only its first characters once the string is too long."""
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
            return [("", "", whole[:2], "", ""), *self._tokens(text[at:])]  # another sequence cut the string off
        after = at + (2 if text[at] == "\x1b" else 1)
        tokens = self._tokens(text[after:])
        return [("", "", whole + text[at:after] if fits else whole[:2], "", ""), *tokens]
