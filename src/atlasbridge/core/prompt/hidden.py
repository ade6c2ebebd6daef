"""Which parts of a text are secrets: literal, token-like values and nothing else.

A part that is found here never holds a blank or a character that means something to a shell: who hides syntax hides
what a command does.  What is put in place of the parts is `redact`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from atlasbridge.core.patterns import lazy

Span = tuple[int, int]

SYNTAX = "$`()[]{}|;&<>\"'\\"  # and every blank and control character
_LITERAL = lazy(r"[^\s$`()\[\]{}|;&<>\"'\\\x00-\x20\x7f-\xa0]+")
_VALUE = lazy(r"[^\s$`()\[\]{}|;&<>\"'\\\x00-\x20\x7f-\xa0,]+")
_MEANS_MORE = "$`([{\\"  # behind a value: it goes on, and not literally

_SHAPES = lazy(
    r"\bsk-[A-Za-z0-9_-]{16,}"
    r"|\b(?:ghp|gho|ghu|ghs|ghr|glpat|github_pat|hf|npm|pypi|dop_v1|shpat|rk_live|sk_live|pk_live)[_-][A-Za-z0-9_-]{16,}"
    r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}"
    r"|\bxapp-[A-Za-z0-9-]{10,}"
    r"|\b(?:AKIA|ASIA|AGPA|AROA)[A-Z0-9]{16}\b"
    r"|\bAIza[A-Za-z0-9_-]{30,}"
    r"|\bya29\.[A-Za-z0-9_-]{20,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
)
_BOT_TOKEN = lazy(r":[A-Za-z0-9_-]{35}\b")
_BOT_NUMBER = lazy(r"(?<!\w)\d{8,10}\Z")
# Looked for first, because most text has none of them and a search for a fixed word costs next to nothing.
_SHAPE_SIGNS = (
    *("sk", "gh", "glpat", "hf", "npm", "pypi", "dop_v1", "shpat", "_live", "xox", "xapp-", "IA", "PA", "OA", "AIza"),
    *("ya29", "eyJ"),
)
_NAME_SIGNS = ("pass", "secret", "token", "key", "credential", "mysql_pwd")
_HEADER_SIGNS = ("authorization", "x-api-key", "x-auth-token")
_KEY_BLOCK = lazy(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(.*?)(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)", re.DOTALL
)
_KEY_LINE = lazy(r"[A-Za-z0-9+/]{20,}={0,2}|[A-Za-z0-9+/]+={1,2}")
_IN_URL = lazy(r"[a-z0-9+.-]://[^\s/:@]{0,200}:", re.IGNORECASE)
_HEADER = lazy(
    r"\b(?:proxy-)?authorization[ \t]*:[ \t]*(?P<scheme>(?:bearer|basic|token)[ \t]+)?"
    r"|\bx-(?:api-key|auth-token)[ \t]*:[ \t]*",
    re.IGNORECASE,
)
_USER = lazy(r"(?<!\S)(?:-u|--user|--proxy-user)[ =]['\"]?[\w.@-]+:")
_WORD = lazy(
    r"passwo?r?d|passphrase|mysql_pwd|secret|token|api[_-]?key|(?:access|private|auth|signing|encryption)[_-]?key"
    r"|credential|(?<![a-z])pass(?=\\?[\"']?[ \t]*=)",
    re.IGNORECASE,
)
_NAME_BEFORE, _NAME_BEHIND = lazy(r"[\w.-]*\Z"), lazy(r"[\w.-]*")
_LONGEST_NAME, _LONGEST_LINE = 80, 400
_ABOUT_IT = lazy(  # says where the secret is, or how it is: no secret itself
    r"(?:^|[_.-])(?:file|path|dir|folder|helper|ur[li]|endpoint|host|cmd|command|script|program|type|name|len|length|size|count"
    r"|limit|store|provider|manager|policy|ttl|expir\w*|age|hint|prompt|field|label|format|mode|clean|smudge|process"
    r"|required|enabled)s?$",
    re.IGNORECASE,
)
_SIGN = lazy(r"(?P<close>\\?[\"'])?(?P<before>[ \t]*)(?P<sign>[=:])(?P<gap>[ \t]*)(?P<open>\\?[\"'])?")
_FLAG_GAP = lazy(r"(?P<gap>[ \t]+)(?P<open>[\"'])?")
_FLAG = lazy(r"-{1,2}\w[\w-]*\Z")
_COUNTED = lazy(r"\btokens?\b|tokens$|_tokens?_", re.IGNORECASE)  # what models are paid by is no secret
_COUNT = lazy(r"[~≈]?\d{1,3}(?:[.,]?\d{3}){0,3}(?:\.\d+)?[kKmM%]?(?:/\S+)?")
_NO_VALUE = lazy(
    r"(?:required|optional|missing|invalid|expired|incorrect|wrong|accepted|rejected|refused|hidden|none|null|true|false"
    r"|unset|empty|unknown)[.!]*",
    re.IGNORECASE,
)
_COMMAND_LIKE = lazy(r"[=$`;&|<>(){}\[\]\\]|(?<!\S)-\w")
_TOKEN_START = lazy(r"[A-Za-z0-9_]")
_OWN_ID = lazy(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # every record has some, and nothing below finds any
_SHORTEST_TEXT = 7  # `a://:b@`
_SHORTEST, _SHORTEST_ATTACHED, _SHORTEST_SENT = 4, 3, 6
_LONG_WITH_SLASH = 16
_SHORT_SECRET, _SHORTEST_SECRET, _SHORTEST_WORD = 6, 3, 5


def find_hidden(text: str, secrets: tuple[str, ...] = ()) -> list[Span]:
    """Every part that must not leave, in order, none touching another."""
    if not secrets and (len(text) < _SHORTEST_TEXT or _OWN_ID.fullmatch(text)):
        return []
    low = text.lower()
    found = [*find_known(text, secrets), *_shaped(text), *_keys(text), *_in_addresses(text), *_of_users(text)]
    if any(sign in low for sign in _HEADER_SIGNS):
        found += _in_headers(text)
    if any(sign in low for sign in _NAME_SIGNS):
        found += _named(text)
    return merged(part for span in found for part in literal_parts(text, span))


def literal_parts(text: str, span: Span) -> Iterator[Span]:
    """The one place where it is made sure that no syntax is hidden."""
    for match in _LITERAL.finditer(text, *span):
        yield match.span()


def merged(spans: Iterator[Span]) -> list[Span]:
    out: list[Span] = []
    for begin, end in sorted(spans):
        if out and begin <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((begin, end))
    return out


def is_token_like(value: str) -> bool:
    """Random rather than said: no plain word, which might be a program's name, and no path."""
    if not _TOKEN_START.match(value) or "://" in value:
        return False
    digit, small, large = (any(test(char) for char in value) for test in (str.isdigit, str.islower, str.isupper))
    if "/" in value:
        return len(value) >= _LONG_WITH_SLASH and digit and small and large
    return digit or (small and any(map(str.isupper, value[1:])))


def is_looked_for(secret: str) -> bool:
    """Shorter ones occur everywhere, and a short plain word is one that others say, too."""
    return len(secret) >= (_SHORTEST_WORD if secret.isalpha() else _SHORTEST_SECRET)


def find_known(text: str, secrets: tuple[str, ...]) -> Iterator[Span]:
    """Short ones, such as PINs, only as whole words."""
    for secret in secrets:
        if not is_looked_for(secret):
            continue
        if len(secret) >= _SHORT_SECRET:
            at = text.find(secret)
            while at >= 0:
                yield at, at + len(secret)
                at = text.find(secret, at + len(secret))
        else:
            yield from (match.span() for match in re.finditer(rf"(?<!\w){re.escape(secret)}(?!\w)", text))


def _shaped(text: str) -> Iterator[Span]:
    if any(sign in text for sign in _SHAPE_SIGNS):
        yield from (match.span() for match in _SHAPES.finditer(text))
    for token in _BOT_TOKEN.finditer(text) if ":" in text else ():
        number = _BOT_NUMBER.search(text, max(0, token.start() - 11), token.start())
        if number:
            yield number.start(), token.end()


def _keys(text: str) -> Iterator[Span]:
    """Of a private key the lines themselves; what stands among them and is no such line is shown."""
    for block in _KEY_BLOCK.finditer(text) if "PRIVATE KEY-----" in text else ():
        for line in _KEY_LINE.finditer(text, *block.span(1)):
            if line[0].endswith("=") or (any(map(str.isdigit, line[0])) and is_token_like(line[0].strip("+/"))):
                yield line.span()


def _in_addresses(text: str) -> Iterator[Span]:
    for match in _IN_URL.finditer(text) if "://" in text else ():
        value = _LITERAL.match(text, match.end())
        host = value[0].partition("/")[0].rfind("@") if value else -1
        if host > 0:
            yield match.end(), match.end() + host


def _in_headers(text: str) -> Iterator[Span]:
    for match in _HEADER.finditer(text):
        value = _value_at(text, match.end(), "")
        if value and value[1] - value[0] >= _SHORTEST_SENT and (match["scheme"] or is_token_like(text[slice(*value)])):
            yield value


def _of_users(text: str) -> Iterator[Span]:
    for match in _USER.finditer(text) if "-u" in text or "user" in text else ():
        value = _value_at(text, match.end(), "")
        if value and is_token_like(text[slice(*value)]) and not text[slice(*value)].isdigit():
            yield value


def _named(text: str) -> Iterator[Span]:
    behind = 0
    for word in _WORD.finditer(text):
        if word.start() < behind:
            continue
        before = _NAME_BEFORE.search(text, max(0, word.start() - _LONGEST_NAME), word.start())
        rest = _NAME_BEHIND.match(text, word.end())
        assert before is not None and rest is not None  # both match nothing as well
        begin, behind = before.start(), rest.end()
        name = text[begin:behind]
        if _ABOUT_IT.search(rest[0]) or "." in rest[0].rstrip("."):
            continue
        value = _after_sign(text, begin, behind, name) or _after_flag(text, behind, name)
        if value:
            behind = value[1]
            yield value


def _after_sign(text: str, begin: int, end: int, name: str) -> Span | None:
    sign = _SIGN.match(text, end)
    if sign is None:
        return None
    value = _value_at(text, sign.end(), sign["open"] or "")
    if value is None:
        return None
    said = text[slice(*value)]
    if _says_nothing(name, sign["sign"], said):
        return None
    attached = not sign["gap"]
    if len(said) < (_SHORTEST_ATTACHED if attached and sign["sign"] == "=" else _SHORTEST):
        return None
    if sign["sign"] == "=" and sign["gap"] and not sign["before"]:
        return None  # `KEY= word`: to a shell that word is the command
    if not attached and text[max(0, begin - 2) : begin].rstrip("\"'").endswith("="):
        return None  # `x=key: word`: that one, too
    plain = attached or bool(sign["before"]) or bool(sign["open"]) or not _in_a_command(text, begin)
    return value if (plain and "." not in name) or is_token_like(said) else None


def _in_a_command(text: str, at: int) -> bool:
    """Whether what stands before it in its line may be a command; of a line too long to be looked at nobody knows."""
    begin = text.rfind("\n", max(0, at - _LONGEST_LINE), at) + 1
    return (begin == 0 and at > _LONGEST_LINE) or _COMMAND_LIKE.search(text, begin, at) is not None


def _says_nothing(name: str, sign: str, said: str) -> bool:
    """It counts tokens, or a sentence says something about the secret."""
    if _COUNT.fullmatch(said) and _COUNTED.search(name):
        return True
    return sign == ":" and _NO_VALUE.fullmatch(said) is not None


def _after_flag(text: str, end: int, name: str) -> Span | None:
    """`--token VALUE`; a plain word behind it may be a program, and is shown."""
    gap = _FLAG_GAP.match(text, end) if _FLAG.match(name) else None
    value = _value_at(text, gap.end(), gap["open"] or "") if gap else None
    if value is None or value[1] - value[0] < _SHORTEST:
        return None
    said = text[slice(*value)]
    counts = _COUNT.fullmatch(said) and _COUNTED.search(name)
    return value if is_token_like(said) and not counts else None


def _value_at(text: str, at: int, quote: str) -> Span | None:
    """The literal value that begins here.  None where it goes on with something that is not literal, or where its
    quotes hold more than it."""
    match = _VALUE.match(text, at)
    if match is None:
        return None
    end = match.end()
    if quote:
        closed = text.startswith(quote, end)
        return (at, end) if closed or text.find(quote[-1], end) < 0 else None
    return None if text[end : end + 1] in _MEANS_MORE and end < len(text) else (at, end)
