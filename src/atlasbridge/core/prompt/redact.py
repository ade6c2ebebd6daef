"""Secrets leave no machine: what `hidden` finds becomes `[redacted]`.  `leaves` is the last step of every way out.

Everything else of a text stays as it is, blanks and line breaks included, so that a reader sees what a command does and
that something of it was hidden.
"""

from __future__ import annotations

from collections.abc import Sequence

from atlasbridge.core.prompt.hidden import Span, find_hidden, find_known, is_token_like, merged
from atlasbridge.core.visible import visible

GONE = "[redacted]"
_DOT = "•"
_WRAPS = 0.6  # of the widest row: a shorter one ended by itself
_FRAMES = dict.fromkeys(range(0x2500, 0x25A0), " ")

LEAST_PIECE = 8  # a shorter one may be a word that stands elsewhere for itself


def leaves(text: str, secrets: tuple[str, ...] = ()) -> str:
    """`text` as it may leave this machine: nothing secret in it, and nothing that deceives a reader."""
    return visible(redact_rows(text, secrets))


def redact(text: str, secrets: tuple[str, ...] = ()) -> str:
    """`text` without anything that looks like a secret, and without the given values."""
    return _replaced(text, find_hidden(text, secrets))


def redact_rows(text: str, secrets: tuple[str, ...] = ()) -> str:
    """`redact` for rows of a screen: a secret that a program has wrapped into the next row is taken out of both."""
    return _replaced(text, _hidden_in_rows(text, secrets))


def hidden_pieces(text: str, secrets: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What `redact_rows` hides in these rows, piece by piece: the same pieces in a text that was put together from them
    would not be recognised there."""
    pieces = (text[begin:end] for begin, end in _hidden_in_rows(text, secrets))
    return tuple(piece for piece in pieces if len(piece) >= LEAST_PIECE)


def mask_rows(rows: Sequence[str], secrets: tuple[str, ...] = ()) -> list[str]:
    """The same for a screen whose columns must stay where they are: each row keeps its length."""
    text = "\n".join(rows)
    spans = _hidden_in_rows(text, secrets)
    return _replaced(text, spans, as_wide=True).split("\n") if spans else list(rows)


def mask_styled(rows: Sequence[Sequence[Sequence[object]]], secrets: tuple[str, ...] = ()) -> list[list[list[object]]]:
    """The same for rows of runs, each `[text, style, …]`."""
    masked = iter(mask_rows(["".join(str(run[0]) for run in row) for row in rows], secrets))
    return [_cut_like(row, text) for row, text in zip(rows, masked, strict=True)]


def _cut_like(row: Sequence[Sequence[object]], text: str) -> list[list[object]]:
    out: list[list[object]] = []
    at = 0
    for run in row:
        width = len(str(run[0]))
        out.append([text[at : at + width], *run[1:]])
        at += width
    return out


def _replaced(text: str, spans: list[Span], as_wide: bool = False) -> str:
    out: list[str] = []
    at = 0
    for begin, end in spans:
        out += (text[at:begin], _dots(end - begin) if as_wide else GONE)
        at = end
    return "".join((*out, text[at:]))


def _dots(width: int) -> str:
    return GONE.ljust(width, _DOT) if width >= len(GONE) else _DOT * width


def _hidden_in_rows(text: str, secrets: tuple[str, ...]) -> list[Span]:
    found = find_hidden(text, secrets)
    if "\n" not in text:
        return found
    joined, places = _joined(text.split("\n"))
    known = merged(find_known(joined, secrets))
    for begin, end in find_hidden(joined, secrets):
        certain = any(first <= begin and end <= last for first, last in known)
        found += _row_parts(joined, places, (begin, end), certain)
    return merged(iter(found))


def _row_parts(joined: str, places: list[int], span: Span, certain: bool) -> list[Span]:
    """Where the rows' parts of one secret stand.  Unless it is `certain`, a row may also have ended here for good: then
    the next one begins with something else, and only what no one would take for a word is hidden."""
    begin, end = first, _ = span
    certain_first = certain or not _named_in_the_row_above(joined, places, begin)
    parts: list[Span] = []
    for at in range(begin + 1, end + 1):
        if at == end or places[at] != places[at - 1] + 1:
            if certain or (certain_first and first == begin) or is_token_like(joined[first:at]):
                parts.append((places[first], places[at - 1] + 1))
            first = at
    in_one_row = places[end - 1] - places[begin] == end - 1 - begin
    return (
        [] if in_one_row and not certain else parts
    )  # there it was found already, or it only begins after a row's end


def _named_in_the_row_above(joined: str, places: list[int], begin: int) -> bool:
    """`Password:` ends one row, and what begins the next may well be something else."""
    return begin > 0 and places[begin] != places[begin - 1] + 1 and joined[:begin].rstrip().endswith((":", "="))


def _joined(rows: list[str]) -> tuple[str, list[int]]:
    """One text without frames and indents, and where each of its characters stands in the rows."""
    bare = [row.translate(_FRAMES).rstrip() for row in rows]
    widest = max(map(len, bare), default=0)
    text: list[str] = []
    places: list[int] = []
    begin = 0
    for row, whole in zip(bare, rows, strict=True):
        indent = len(row) - len(row.lstrip())
        text += row[indent:]
        places += range(begin + indent, begin + len(row))
        if len(row) < _WRAPS * widest:
            text.append("\n")
            places.append(begin + len(row))
        begin += len(whole) + 1
    return "".join(text), places
