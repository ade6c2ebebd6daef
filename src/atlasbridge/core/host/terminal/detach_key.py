"""Finds the detach key in a person's input: a prefix key and a letter, for example `Ctrl-] d`.

Pure. The prefix typed twice is sent once; the prefix before any other key is sent with it. Longer key encodings of
terminals (kitty, xterm's modifyOtherKeys) are supported as well.
"""

from __future__ import annotations

import re

from atlasbridge.core.errors import ConfigError
from atlasbridge.core.patterns import lazy

_KITTY = rb"\x1b\[%d(?::\d*)*;%s(?::[12])?(?:;[\d:]*)?u"
_OTHER_KEYS = rb"\x1b\[27;%s;%d~"
_NOISE = lazy(rb"(?:\x1b\[[\d:]*;\d+:3[\d:;]*u|\x1b\[574[45]\d[\d:;]*u)+")  # key releases, modifiers
_known: dict[tuple[bytes, bytes], tuple[re.Pattern[bytes], re.Pattern[bytes]]] = {}


class DetachKey:
    """Receives every read from the keyboard, and remembers a prefix that waits for its letter."""

    def __init__(self, spec: str) -> None:
        self.prefix, self._letter = _parse(spec)
        self._pending = b""
        self._is_prefix, self._is_letter = _patterns(self.prefix, self._letter)

    @property
    def pending(self) -> bool:
        """Whether a prefix waits for its letter. While none does, a single byte other than `prefix` does not have to be
        fed."""
        return bool(self._pending)

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        """Returns the bytes for the tool, and whether the person wants to detach."""
        if not self._pending and self._is_plain(data):
            return data, False
        out = b""
        while data:
            if self._pending:
                out, data, leave = self._after_prefix(out, data)
                if leave:
                    return out, True
                continue
            found = self._is_prefix.search(data)
            if found is None:
                return out + data, False
            out += data[: found.start()]
            self._pending = found.group()
            data = data[found.end() :]
        return out, False

    def _is_plain(self, data: bytes) -> bool:
        return self.prefix not in data and b"\x1b[" not in data

    def _after_prefix(self, out: bytes, data: bytes) -> tuple[bytes, bytes, bool]:
        if noise := _NOISE.match(data):
            return out + noise.group(), data[noise.end() :], False
        pending, self._pending = self._pending, b""
        if letter := self._is_letter.match(data):
            return out, data[letter.end() :], True
        if again := self._is_prefix.match(data):
            return out + pending, data[again.end() :], False
        return out + pending, data, False

    @property
    def name(self) -> str:
        """The key in readable form."""
        code = ord(self.prefix)
        return (f"Ctrl-{chr(code ^ 0x40)}" if code < 0x20 else self.prefix.decode()) + f" {self._letter.decode()}"


def _patterns(prefix: bytes, letter: bytes) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """The patterns of the prefix and of the letter in all encodings. They are cached, so that a fork server shares them
    with its hosts."""
    if (prefix, letter) not in _known:
        number = ord(prefix) ^ 0x40 if ord(prefix) < 0x20 else ord(prefix)
        forms = [re.escape(prefix)]
        for code in {number, ord(chr(number).lower())}:
            forms += [_KITTY % (code, rb"5"), _OTHER_KEYS % (rb"5", code)]
        small = ord(letter)
        letters = re.escape(letter) + b"|" + _KITTY % (small, rb"1?") + rb"|\x1b\[%d(?::\d*)*u" % small
        _known[prefix, letter] = lazy(b"|".join(forms)), lazy(letters)
    return _known[prefix, letter]


def _parse(spec: str) -> tuple[bytes, bytes]:
    prefix, _, letter = spec.strip().replace("Ctrl-", "^").replace("ctrl-", "^").partition(" ")
    if len(prefix) == 2 and prefix[0] == "^" and "@" <= prefix[1].upper() <= "_" and len(letter.strip()) == 1:
        return bytes([ord(prefix[1].upper()) ^ 0x40]), letter.strip().encode("ascii", "replace")
    raise ConfigError(f"detach_key: cannot read {spec!r}", 'write a control key and a letter, for example "^] d"')
