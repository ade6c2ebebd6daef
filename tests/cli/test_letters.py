"""In which letters a command speaks: nothing that a stream lacks is a fault, on Windows neither."""

from __future__ import annotations

import io

import pytest

from atlasbridge.__main__ import choose_letters

WORDS = "channel  ──  größer…"


def said(letters: str, errors: str, on_windows: bool, chosen: bool = False, name: bytes = b"") -> bytes:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=letters, errors=errors)
    choose_letters(stream, on_windows, chosen)
    stream.write(name.decode("utf-8", "surrogateescape") or WORDS)
    stream.flush()
    return raw.getvalue()


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_behind_a_pipe_on_windows_everything_is_utf_8(errors: str) -> None:
    """Python opens a pipe there with the second of them, whatever the language of the system is."""
    assert said("cp1252", errors, on_windows=True) == WORDS.encode()


def test_letters_that_a_person_chose_are_kept_and_what_they_lack_is_a_mark() -> None:
    assert said("cp1252", "surrogateescape", on_windows=True, chosen=True) == b"channel  ??  gr\xf6\xdfer\x85"
    assert said("ascii", "strict", on_windows=False) == b"channel  ??  gr??er?"


def test_a_name_that_is_no_text_stays_what_it_is_elsewhere() -> None:
    assert said("utf-8", "surrogateescape", on_windows=False, name=b"a\xffb") == b"a\xffb"
