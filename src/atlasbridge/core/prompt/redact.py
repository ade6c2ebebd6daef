"""Redaction: secrets become `[redacted]` before a text leaves the machine. `redact_outgoing` is the last step before
every output.

Everything else in a text stays unchanged, including spaces and line breaks, so that a reader sees what a command does
and that a part of it was hidden.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from atlasbridge.core.escape import escape_controls
from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.values import replace

# Finds the secrets in a text: only literal, token-like values.
#
# A found part never contains a space or a character with a meaning in a shell, because hidden syntax would hide what a
# command does.

Span = tuple[int, int]

SYNTAX = "$`()[]{}|;&<>\"'\\"  # and every space and control character
_LITERAL = lazy(r"[^\s$`()\[\]{}|;&<>\"'\\\x00-\x20\x7f-\xa0]+")
_VALUE = lazy(r"[^\s$`()\[\]{}|;&<>\"'\\\x00-\x20\x7f-\xa0,]+")
_MEANS_MORE = "$`([{\\"  # after a value: it continues, and not literally

# How tokens begin, and what follows. A search for a fixed beginning costs almost nothing, and most texts have none.
TOKEN_STARTS: Final = {
    r"[A-Za-z0-9_-]{16,}": (
        *("sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glrt-", "hf_", "npm_"),
        *(
            "pypi-",
            "dop_v1_",
            "dckr_pat_",
            "shpat_",
            "shpss_",
            "gsk_",
            "nvapi-",
            "lin_api_",
            "tskey-",
            "whsec_",
            "figd_",
        ),
        *(
            "sq0atp-",
            "sq0csp-",
            "AGE-SECRET-KEY-",
            "sk_live_",
            "rk_live_",
            "pk_live_",
            "sk_test_",
            "rk_test_",
            "pk_test_",
        ),
    ),
    r"[A-Za-z0-9-]{10,}": ("xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"),
    r"[A-Z0-9]{16}\b": ("AKIA", "ASIA", "AGPA", "AROA"),
    r"[A-Za-z0-9_=-]{20,}": ("AIza", "ya29.", "ATATT3"),
    r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?": ("eyJ", "SG."),
    r"[A-Za-z0-9/_-]{20,}": ("hooks.slack.com/services/", "discord.com/api/webhooks/"),
    r"[0-9a-f]{8}_[A-Za-z0-9_-]{20,}": ("ab_",),  # our own
}
_SHAPES: Final = tuple(
    (starts, lazy(rf"(?<!\w)(?:{'|'.join(map(re.escape, starts))}){more}")) for more, starts in TOKEN_STARTS.items()
)
_BOT_TOKEN = lazy(r":[A-Za-z0-9_-]{35}\b")
_BOT_NUMBER = lazy(r"(?<!\w)\d{8,10}\Z")
# A text with none of these is not searched for names.
_NAME_SIGNS = ("pass", "secret", "token", "key", "credential", "mysql_pwd", "kennwort", "contrase", "パスワード")
_HEADER_SIGNS = ("authorization", "x-api-key", "x-auth-token", "cookie:")
_KEY_BLOCK = lazy(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(.*?)(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)", re.DOTALL
)
_KEY_LINE = lazy(r"[A-Za-z0-9+/]{20,}={0,2}|[A-Za-z0-9+/]+={1,2}")
_IN_URL = lazy(r"[a-z0-9+.-]://[^\s/:@]{0,200}:", re.IGNORECASE)
_HEADER = lazy(
    r"\b(?:proxy-)?authorization[ \t]*:[ \t]*(?P<scheme>(?:bearer|basic|token)[ \t]+)?"
    r"|\bx-(?:api-key|auth-token)[ \t]*:[ \t]*|\b(?:set-)?cookie:[ \t]*[\w.-]+=",
    re.IGNORECASE,
)
_USER = lazy(r"(?<!\S)(?:-u|--user|--proxy-user)[ =]['\"]?[\w.@-]+:")
_PASSED = lazy(  # a password behind -p
    r"\b(?:mysql(?:dump|admin|sh)?|mariadb)\b[^\n|;&]{0,200}?[ \t]-p['\"]?"
    r"|\b(?:sshpass|(?:docker|podman|nerdctl)[ \t]+login)\b[^\n|;&]{0,200}?[ \t]-p[ \t]*['\"]?"
    r"|\blogin[ \t]+\S+[ \t]+password[ \t]+"  # .netrc
)
_WORD = lazy(
    r"passwo?r?[dt]|kennwort|contrase(?:ñ|n)a|パスワード|passphrase|mysql_pwd|secret|token|api[_-]?key|(?:access|private|auth|signing|encryption)[_-]?key"
    r"|credential|(?<![a-z])pass(?=\\?[\"']?[ \t]*=)",
    re.IGNORECASE,
)
_NAME_BEFORE, _NAME_BEHIND = lazy(r"[\w.-]*\Z"), lazy(r"[\w.-]*")
_LONGEST_NAME, _LONGEST_LINE = 80, 400
_ABOUT_IT = lazy(  # a name that describes the secret, such as its location or type: the value is not a secret
    r"(?:^|[_.-])(?:file|path|dir|folder|helper|ur[li]|endpoint|host|cmd|command|script|program|type|name|len|length|size|count"
    r"|limit|store|provider|manager|policy|ttl|expir\w*|age|hint|prompt|field|label|format|mode|clean|smudge|process"
    r"|required|enabled)s?$",
    re.IGNORECASE,
)
_SIGN = lazy(r"(?P<close>\\?[\"'])?(?P<before>[ \t]*)(?P<sign>[=:])(?P<gap>[ \t]*)(?P<open>\\?[\"'])?")
_FLAG_GAP = lazy(r"(?P<gap>[ \t]+)(?P<open>[\"'])?")
_FLAG = lazy(r"-{1,2}\w[\w-]*\Z")
_COUNTED = lazy(r"\btokens?\b|tokens$|_tokens?_", re.IGNORECASE)  # a number of model tokens is not a secret
_COUNT = lazy(r"[~≈]?\d{1,3}(?:[.,]?\d{3}){0,3}(?:\.\d+)?[kKmM%]?(?:/\S+)?")
_NO_VALUE = lazy(
    r"(?:required|optional|missing|invalid|expired|incorrect|wrong|accepted|rejected|refused|hidden|none|null|true|false"
    r"|unset|empty|unknown)[.!]*",
    re.IGNORECASE,
)
_COMMAND_LIKE = lazy(r"[=$`;&|<>(){}\[\]\\]|(?<!\S)-\w")
_TOKEN_START = lazy(r"[A-Za-z0-9_]")
# our own ids, which are in every record and never contain a secret
_OWN_ID = lazy(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SHORTEST_TEXT = 7  # `a://:b@`
_SHORTEST, _SHORTEST_ATTACHED, _SHORTEST_SENT = 4, 3, 6
_LONG_WITH_SLASH = 16
_SHORT_SECRET, _SHORTEST_SECRET, _SHORTEST_WORD = 6, 3, 5


def find_secrets(text: str, secrets: tuple[str, ...] = ()) -> list[Span]:
    """Returns every part that must not leave, in order and without adjacent parts."""
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
    """The only place that ensures that no syntax is hidden."""
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
    """Whether a value looks random: not a plain word, which could be the name of a program, and not a path."""
    if not _TOKEN_START.match(value) or "://" in value:
        return False
    digit, small, large = (any(test(char) for char in value) for test in (str.isdigit, str.islower, str.isupper))
    if "/" in value:
        return len(value) >= _LONG_WITH_SLASH and digit and small and large
    return digit or (small and any(map(str.isupper, value[1:])))


def is_looked_for(secret: str) -> bool:
    """Shorter secrets occur everywhere, and other texts also contain a short plain word."""
    return len(secret) >= (_SHORTEST_WORD if secret.isalpha() else _SHORTEST_SECRET)


def find_known(text: str, secrets: tuple[str, ...]) -> Iterator[Span]:
    """Finds known secrets. Short ones, such as PINs, match only as whole words."""
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
    for starts, shape in _SHAPES:
        if any(start in text for start in starts):
            yield from (match.span() for match in shape.finditer(text))
    for token in _BOT_TOKEN.finditer(text) if ":" in text else ():
        number = _BOT_NUMBER.search(text, max(0, token.start() - 11), token.start())
        if number:
            yield number.start(), token.end()


def _keys(text: str) -> Iterator[Span]:
    """The lines of a private key; anything else between them is shown."""
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
    ways = [_USER] * ("-u" in text or "user" in text) + [_PASSED] * (" -p" in text or "password" in text)
    for match in (match for way in ways for match in way.finditer(text)):
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
        assert before is not None and rest is not None  # both patterns also match the empty string
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
        return None  # `KEY= word`: to a shell, that word is the command
    if not attached and text[max(0, begin - 2) : begin].rstrip("\"'").endswith("="):
        return None  # `x=key: word`: the same
    plain = attached or bool(sign["before"]) or bool(sign["open"]) or not _in_a_command(text, begin)
    return value if (plain and "." not in name) or is_token_like(said) else None


def _in_a_command(text: str, at: int) -> bool:
    """Whether the text before it in its line could be a command. Assumed for a line that is too long to examine."""
    begin = text.rfind("\n", max(0, at - _LONGEST_LINE), at) + 1
    return (begin == 0 and at > _LONGEST_LINE) or _COMMAND_LIKE.search(text, begin, at) is not None


def _says_nothing(name: str, sign: str, said: str) -> bool:
    """Whether it counts tokens, or a sentence only describes the secret."""
    if _COUNT.fullmatch(said) and _COUNTED.search(name):
        return True
    return sign == ":" and _NO_VALUE.fullmatch(said) is not None


def _after_flag(text: str, end: int, name: str) -> Span | None:
    """Handles `--token VALUE`. A plain word after the flag could be a program, and is shown."""
    gap = _FLAG_GAP.match(text, end) if _FLAG.match(name) else None
    value = _value_at(text, gap.end(), gap["open"] or "") if gap else None
    if value is None or value[1] - value[0] < _SHORTEST:
        return None
    said = text[slice(*value)]
    counts = _COUNT.fullmatch(said) and _COUNTED.search(name)
    return value if is_token_like(said) and not counts else None


def _value_at(text: str, at: int, quote: str) -> Span | None:
    """The literal value that begins here. None if it continues with something that is not literal, or if its quotes
    contain more."""
    match = _VALUE.match(text, at)
    if match is None:
        return None
    end = match.end()
    if quote:
        closed = text.startswith(quote, end)
        return (at, end) if closed or text.find(quote[-1], end) < 0 else None
    return None if text[end : end + 1] in _MEANS_MORE and end < len(text) else (at, end)


GONE = "[redacted]"
_DOT = "•"
_WRAPS = 0.6  # fraction of the widest row: a shorter row was not wrapped
_FRAMES = dict.fromkeys(range(0x2500, 0x25A0), " ")

LEAST_PIECE = 8  # a shorter piece could be an ordinary word


def redact_outgoing(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Makes `text` safe to leave this machine: without secrets, and without characters that deceive a reader."""
    return escape_controls(redact_rows(text, secrets))


def redact(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Removes everything that looks like a secret, and the given values."""
    return _replaced(text, find_secrets(text, secrets))


def redact_rows(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Like `redact`, for rows of a screen: a secret that is wrapped into the next row is removed from both."""
    return _replaced(text, _hidden_in_rows(text, secrets))


def hidden_pieces(text: str, secrets: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The pieces that `redact_rows` hides in these rows. In a text that was joined from the rows, the same pieces would
    not be recognised."""
    pieces = (text[begin:end] for begin, end in _hidden_in_rows(text, secrets))
    return tuple(piece for piece in pieces if len(piece) >= LEAST_PIECE)


def mask_rows(rows: Sequence[str], secrets: tuple[str, ...] = ()) -> list[str]:
    """Like `redact_rows`, for a screen whose columns must stay aligned: each row keeps its length."""
    text = "\n".join(rows)
    spans = _hidden_in_rows(text, secrets)
    return _replaced(text, spans, as_wide=True).split("\n") if spans else list(rows)


def mask_styled(rows: Sequence[Sequence[Sequence[object]]], secrets: tuple[str, ...] = ()) -> list[list[list[object]]]:
    """Like `mask_rows`, for rows of runs, each `[text, style, …]`."""
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
    found = find_secrets(text, secrets)
    if "\n" not in text:
        return found
    joined, places = _joined(text.split("\n"))
    known = merged(find_known(joined, secrets))
    for begin, end in find_secrets(joined, secrets):
        certain = any(first <= begin and end <= last for first, last in known)
        found += _row_parts(joined, places, (begin, end), certain)
    return merged(iter(found))


def _row_parts(joined: str, places: list[int], span: Span, certain: bool) -> list[Span]:
    """The parts of one secret in its rows. Unless the secret is `certain`, the row could have ended here: then the next
    row begins with something else, and only parts that look random are hidden."""
    begin, end = first, _ = span
    certain_first = certain or not _named_in_the_row_above(joined, places, begin)
    parts: list[Span] = []
    for at in range(begin + 1, end + 1):
        if at == end or places[at] != places[at - 1] + 1:
            if certain or (certain_first and first == begin) or is_token_like(joined[first:at]):
                parts.append((places[first], places[at - 1] + 1))
            first = at
    in_one_row = places[end - 1] - places[begin] == end - 1 - begin
    return [] if in_one_row and not certain else parts  # it was found already, or it begins after the end of a row


def _named_in_the_row_above(joined: str, places: list[int], begin: int) -> bool:
    """Whether `Password:` ends the previous row: the next row can begin with something else."""
    return begin > 0 and places[begin] != places[begin - 1] + 1 and joined[:begin].rstrip().endswith((":", "="))


def _joined(rows: list[str]) -> tuple[str, list[int]]:
    """Returns one text without frames and indents, and the position of each of its characters in the rows."""
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


# The secrets that a session knows, and how they are removed from a prompt, a command or typed keys.
#
# A session's secrets exist only in its host's memory: those of the tool's environment, and those that were typed.

MOST_SECRETS = 64  # the oldest is dropped, because each one is searched in all output
_SEQUENCE = lazy(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)")
_ERASE, _CLEAR, _WORD_AWAY = b"\x7f\x08", 0x15, 0x17


def with_secret(secrets: tuple[str, ...], value: str) -> tuple[str, ...]:
    """Adds a secret, unless it is so short or plain that hiding it would hide ordinary text."""
    value = value.strip()
    if value in secrets or not is_looked_for(value):
        return secrets
    return (*secrets, value)[-MOST_SECRETS:]


def typed_text(keys: bytes) -> str:
    """The text that these keys leave in a line, after erasing."""
    out = bytearray()
    for key in _SEQUENCE.sub(b"", keys):
        if key in _ERASE:
            while out and out.pop() & 0xC0 == 0x80:
                pass
        elif key == _CLEAR:
            out.clear()
        elif key == _WORD_AWAY:
            del out[out.rstrip().rfind(b" ") + 1 :]
        elif key >= 0x20:
            out.append(key)
    return out.decode("utf-8", "replace")


def redact_prompt(prompt: Prompt, secrets: tuple[str, ...] = ()) -> Prompt:
    """The prompt in a form that is allowed to leave. The text of its subject stays complete for decisions on this
    machine."""

    def safe(text: str) -> str:
        return redact_outgoing(text, secrets)

    subject = prompt.subject
    return replace(
        prompt,
        excerpt=safe(prompt.excerpt),
        screen=safe(prompt.screen),
        choices=tuple(replace(choice, label=safe(choice.label)) for choice in prompt.choices),
        constraints={
            name: safe(value) if isinstance(value, str) else value for name, value in prompt.constraints.items()
        },
        evidence=tuple(replace(item, detail=safe(item.detail)) for item in prompt.evidence),
        raw=redact(prompt.raw.decode("utf-8", "surrogateescape"), secrets).encode("utf-8", "surrogateescape"),
        subject=subject and replace(subject, shown=safe(subject.shown), target=safe(subject.target)),
    )


def redact_data(data: Any, secrets: tuple[str, ...] = ()) -> Any:
    """Redacts every text in it, at any depth."""
    if isinstance(data, str):
        return redact_outgoing(data, secrets)
    if isinstance(data, Mapping):
        return {name: redact_data(value, secrets) for name, value in data.items()}
    return [redact_data(item, secrets) for item in data] if isinstance(data, list | tuple) else data


def redact_text(words: tuple[str, ...], secrets: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Redacts the arguments of a command; a value is also recognised by the flag before it, such as `--token`."""
    out: list[str] = []
    for at, word in enumerate(words):
        shown = redact(word, secrets)
        flag = f"{words[at - 1]} " if at and words[at - 1].startswith("-") else ""
        behind = redact(flag + word, secrets)
        out.append(behind[len(flag) :] if shown == word and behind.startswith(flag) else shown)
    return tuple(out)
