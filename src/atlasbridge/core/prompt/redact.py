"""Secrets leave no machine: keys, tokens, passwords and credentials in a text become `[redacted]`."""

from __future__ import annotations

import re

GONE = "[redacted]"
_SHAPES = re.compile(
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
_IN_URL = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]*://)(?P<user>[^\s/:@]*):(?P<secret>[^\s/@]+)@", re.IGNORECASE)
_HEADER = re.compile(
    r"(?P<head>\b(?:authorization|proxy-authorization|x-api-key)\s*:\s*(?:bearer|basic|token)?\s*)\S{6,}", re.IGNORECASE
)
_NAMED = re.compile(
    r"(?P<name>\b[\w.-]*(?:passwo?r?d|passphrase|passwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)[\w.-]*"
    r"[\"']?[ \t]*(?P<sign>[=:])[ \t]*[\"']?)(?P<value>(?!\[redacted\])[^\s\"',;]{4,})",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"\btokens?\b|tokens$|_tokens?_", re.IGNORECASE)  # what models are paid by is no secret
_COUNT = re.compile(r"[~<>≈]?\d{1,3}(?:[.,]?\d{3}){0,3}(?:\.\d+)?[kKmM%]?(?:/\S+)?")
_NO_VALUE = re.compile(
    r"(?:required|optional|missing|invalid|expired|incorrect|wrong|accepted|rejected|refused|hidden|none|null|true|false"
    r"|unset|empty|unknown)[.!)]*",
    re.IGNORECASE,
)
_FLAG = re.compile(r"(?P<flag>--?(?:password|passwd|token|secret|api-key|apikey)[ =])(?P<value>\S{4,})", re.IGNORECASE)
_LONGEST_SHORT = 5


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
