"""Folders, files and hosts in rules: `~`, `*` within a part, `**` for any parts; a folder includes everything below it.

Pure: link targets are resolved elsewhere and matched like names.
"""

from __future__ import annotations

import re
from functools import lru_cache
from unicodedata import normalize

from atlasbridge.core.patterns import lazy

_PART = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_PLAIN_URL = lazy(rf"https?://((?:{_PART}\.)*{_PART})(?::\d{{1,5}})?(?:[/?#][!-\[\]-~]*)?", 2)
_ANY_URL = lazy(r"[\\/]{2,}([^\s'\"<>|;&)]+)")


def absolute(path: str, folder: str, home: str) -> str:
    """Resolves `.` and `..`; "" if the path is unknown."""
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    if not path.startswith("/"):
        if not folder.startswith("/"):
            return ""
        path = f"{folder}/{path}"
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


@lru_cache(maxsize=512)
def _glob(pattern: str, below: bool) -> re.Pattern[str]:
    out = []
    for part in pattern.strip("/").split("/"):
        if part == "**":
            out.append("(?:/[^/]+)*")
        elif part:
            out.append("/" + "[^/]*".join(re.escape(piece) for piece in part.split("*")))
    return re.compile("".join(out) + ("(?:/.*)?" if below else "") if out else ".*" if below else "/")


def _pattern(pattern: str, folder: str, home: str) -> str:
    if pattern == "~" or pattern.startswith("~/"):
        return home + pattern[1:]
    return pattern if pattern.startswith(("/", "**")) else f"{folder}/{pattern}"


def in_folder(pattern: str, folder: str, home: str, *, folds: bool = False) -> bool:
    where = absolute(folder, "", home)
    return bool(where) and _is_below(_pattern(pattern, "", home), where, below=True, folds=folds)


def is_file(pattern: str, path: str, folder: str, home: str, *, below: bool = False, folds: bool = False) -> bool:
    """A relative pattern applies in the folder where the tool works. `folds`: the disk treats `A` and `a`, and both
    encodings of `é`, as equal."""
    where = absolute(path, folder, home)
    return bool(where) and _is_below(_pattern(pattern, folder, home), where, below=below, folds=folds)


def _is_below(pattern: str, where: str, *, below: bool, folds: bool) -> bool:
    if folds:
        pattern, where = _folded(pattern), _folded(where)
    return _glob(pattern, below).fullmatch(where) is not None


def _folded(path: str) -> str:
    return normalize("NFC", normalize("NFC", path).casefold())


def plain_host(address: str) -> str:
    """The host of a URL that every program reads in the same way; "" for any other."""
    found = _PLAIN_URL.fullmatch(address)
    return found.group(1).lower() if found else ""


def any_hosts(text: str) -> list[str]:
    """Every host that a program could read from this text."""
    hosts = []
    for found in _ANY_URL.finditer(text):
        authority = found.group(1).replace("\\", "/")
        for piece in {authority.split("/")[0], *authority.split("/")[0].split("@")}:
            host = piece.split("?")[0].split("#")[0].lower()
            hosts += [host.rsplit(":", 1)[0].rstrip("."), host.rstrip(".")]
    return list(dict.fromkeys(host for host in hosts if host))


@lru_cache(maxsize=256)
def _host_glob(pattern: str) -> re.Pattern[str]:
    return re.compile("[a-z0-9.-]*".join(re.escape(piece) for piece in pattern.lower().split("*")))


def is_host(pattern: str, host: str) -> bool:
    return bool(_host_glob(pattern).fullmatch(host))
