"""Secrets leave no machine: keys, tokens, passwords and credentials in a text become `[redacted]`."""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy

GONE = "[redacted]"
_SHAPES = lazy(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\bsk-[A-Za-z0-9_-]{16,}"
    r"|\b(?:ghp|gho|ghu|ghs|ghr|glpat|github_pat|hf|npm|pypi|dop_v1|shpat|rk_live|sk_live|pk_live)[_-][A-Za-z0-9_-]{16,}"
    r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}"
    r"|\bxapp-[A-Za-z0-9-]{10,}"
    r"|\b(?:AKIA|ASIA|AGPA|AROA)[A-Z0-9]{16}\b"
    r"|\bAIza[A-Za-z0-9_-]{30,}"
    r"|\bya29\.[A-Za-z0-9_-]{20,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
    r"|\b\d{8,10}:[A-Za-z0-9_-]{35}\b",
    re.DOTALL,
)
_IN_URL = lazy(r"(?P<scheme>\b[a-z][a-z0-9+.-]*://)(?P<user>[^\s/:@]*):(?P<secret>[^\s/@]+)@", re.IGNORECASE)
_HEADER = lazy(
    r"(?P<head>\b(?:authorization|proxy-authorization|x-api-key)\s*:\s*(?:bearer|basic|token)?\s*)\S{6,}", re.IGNORECASE
)
_NAMED = lazy(
    r"(?P<name>\b[\w.-]*(?:passwo?r?d|passphrase|passwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)[\w.-]*"
    r"[\"']?[ \t]*(?P<sign>[=:])[ \t]*[\"']?)(?P<value>(?!\[redacted\])[^\s\"',;]{4,})",
    re.IGNORECASE,
)
_COUNTED = lazy(r"\btokens?\b|tokens$|_tokens?_", re.IGNORECASE)  # what models are paid by is no secret
_COUNT = lazy(r"[~<>≈]?\d{1,3}(?:[.,]?\d{3}){0,3}(?:\.\d+)?[kKmM%]?(?:/\S+)?")
_NO_VALUE = lazy(
    r"(?:required|optional|missing|invalid|expired|incorrect|wrong|accepted|rejected|refused|hidden|none|null|true|false"
    r"|unset|empty|unknown)[.!)]*",
    re.IGNORECASE,
)
_FLAG = lazy(r"(?P<flag>--?(?:password|passwd|token|secret|api-key|apikey)[ =])(?P<value>\S{4,})", re.IGNORECASE)
_LONGEST_SHORT = 5
_WRAPS = 0.6  # of the widest row: a shorter one ended by itself
_FRAMES = dict.fromkeys(range(0x2500, 0x25A0), " ")


def redact(text: str, secrets: tuple[str, ...] = ()) -> str:
    """`text` without anything that looks like a secret, and without the given values."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) > _LONGEST_SHORT:
            text = text.replace(secret, GONE)
    text = _SHAPES.sub(GONE, text)
    text = _IN_URL.sub(rf"\g<scheme>\g<user>:{GONE}@", text)
    text = _HEADER.sub(rf"\g<head>{GONE}", text)
    text = _FLAG.sub(rf"\g<flag>{GONE}", text)
    return _NAMED.sub(_hide_value, text)


def _hide_value(match: re.Match[str]) -> str:
    """The value is hidden unless it counts tokens, or a sentence says something about the secret."""
    name, value = match["name"], match["value"]
    counts = _COUNT.fullmatch(value) and _COUNTED.search(name.rstrip("=: \t\"'"))
    says = match["sign"] == ":" and _NO_VALUE.fullmatch(value)
    return match[0] if counts or says else name + GONE


def redact_rows(text: str, secrets: tuple[str, ...] = ()) -> str:
    """`redact` for rows of a screen: a secret that a program has wrapped into the next row is taken out of both."""
    rows = text.split("\n")
    hidden = _hidden_cells(rows, secrets)
    return redact("\n".join(_without(row, hidden.get(at, set())) for at, row in enumerate(rows)), secrets)


def _hidden_cells(rows: list[str], secrets: tuple[str, ...]) -> dict[int, set[int]]:
    """By row: the columns of what is a secret once the rows are put together."""
    joined, places = _joined(rows)
    spans = [match.span() for match in _SHAPES.finditer(joined)]
    spans += [(match.end("head"), match.end()) for match in _HEADER.finditer(joined)]
    for secret in secrets:
        if len(secret) > _LONGEST_SHORT:
            spans += [match.span() for match in re.finditer(re.escape(secret), joined)]
    hidden: dict[int, set[int]] = {}
    for begin, end in spans:
        for row, col in places[begin:end]:
            hidden.setdefault(row, set()).add(col)
    return hidden


def _joined(rows: list[str]) -> tuple[str, list[tuple[int, int]]]:
    """One text without frames and indents, and where each of its characters stands."""
    bare = [row.translate(_FRAMES).rstrip() for row in rows]
    widest = max(map(len, bare), default=0)
    text: list[str] = []
    places: list[tuple[int, int]] = []
    for at, row in enumerate(bare):
        for col in range(len(row) - len(row.lstrip()), len(row)):
            text.append(row[col])
            places.append((at, col))
        if len(row) < _WRAPS * widest:
            text.append("\n")
            places.append((at, len(row)))
    return "".join(text), places


def _without(row: str, hidden: set[int]) -> str:
    out: list[str] = []
    for col, char in enumerate(row):
        if col not in hidden:
            out.append(char)
        elif col - 1 not in hidden:
            out.append(GONE)
    return "".join(out)
