"""The hash chain: every entry contains its number, the hash of the entry before it, and a hash over itself.

Pure: strings in, strings and results out. `log.py` and the store keep the lines.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from atlasbridge.core.values import frozen

GENESIS: Final = "genesis"
_FIRST: Final = ("seq", "ts", "event")
_LAST: Final = ("prev_hash", "hash")
RESERVED: Final = frozenset(_FIRST + _LAST)


# Created once, because verifying a long log mostly consists of this.
_SORTED: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
_ORDERED: Final = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False)


class Head(NamedTuple):
    """The position of a chain: the number of entries, and the hash of the last one."""

    entries: int
    hash: str


START: Final = Head(0, GENESIS)


@frozen
class Fault:
    """The first invalid entry."""

    seq: int
    problem: str


def digest(fields: Mapping[str, Any]) -> str:
    """The hash of an entry: over its line without the field `hash`."""
    rest = {name: value for name, value in fields.items() if name != "hash"}
    return _sha256(render_entry(rest))


def matches(entry: Mapping[str, Any]) -> bool:
    """Whether the hash of an entry is correct. Versions before 0.1 hashed entries with sorted keys."""
    if entry["hash"] == digest(entry):
        return True
    rest = {name: value for name, value in entry.items() if name != "hash"}
    return bool(entry["hash"] == _sha256(_SORTED.encode(rest)))


def _sha256(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def render_entry(fields: Mapping[str, Any]) -> str:
    """Formats an entry as a line without the line feed: number, time and event first, the hashes last. It contains no
    spaces and only ASCII, so that no entry can contain a terminal sequence."""
    middle = sorted(name for name in fields if name not in RESERVED)
    ordered = {name: fields[name] for name in (*_FIRST, *middle, *_LAST) if name in fields}
    return _ORDERED.encode(ordered)


def seal_entry(head: Head, ts: str, event: str, fields: Mapping[str, Any]) -> tuple[str, Head]:
    """Returns the next entry after `head` as a line, and the new head."""
    clash = RESERVED & fields.keys()
    if clash:
        raise ValueError(f"an audit entry writes {', '.join(sorted(clash))} itself")
    entry = {**fields, "seq": head.entries + 1, "ts": ts, "event": event, "prev_hash": head.hash}
    entry["hash"] = digest(entry)
    return render_entry(entry), Head(head.entries + 1, entry["hash"])


def parse_entry(line: str) -> dict[str, Any] | None:
    """Returns the fields of a line; None if it is not an entry."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and entry.keys() >= RESERVED else None


def check_entry(head: Head, line: str) -> Fault | Head:
    """Checks that `line` follows `head`. Returns the new head, or the fault."""
    seq = head.entries + 1
    entry = parse_entry(line)
    if entry is None:
        return Fault(seq, "is not an audit entry")
    if entry["seq"] != seq:
        return Fault(seq, f"is missing or moved: entry {entry['seq']} stands in its place")
    if entry["prev_hash"] != head.hash:
        return Fault(seq, "does not follow the entry before it")
    if not matches(entry) or line != render_entry(entry):
        return Fault(seq, "was changed: its hash does not match")
    return Head(seq, entry["hash"])


def check_chain(lines: Iterable[str], head: Head = START, anchored: Mapping[int, str] | None = None) -> Fault | Head:
    """Follows the chain from `head`. Returns its end, or the first fault. `anchored`: the hashes that a server keeps,
    by number of entries."""
    for line in lines:
        step = check_entry(head, line)
        if isinstance(step, Fault):
            return step
        if anchored and anchored.get(step.entries, step.hash) != step.hash:
            return Fault(step.entries, "was rewritten: another one was anchored at the server")
        head = step
    return head
