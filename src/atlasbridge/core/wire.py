"""What host, hub and commands say to each other: one JSON object per line over a Unix socket.

A peer's first line tells the hub what it is: {"m": "hello", ...} is a session host, {"op": ...} is a command.

host -> hub
    hello     session, open: {prompt_id, prompt} or null, typed: [[prompt_id, outcome], ...]  also after every reconnect
              session is SessionRecord.to_wire(); prompt is prompt.codec.encode_prompt(); outcome is "typed", "stale",
              "failed", "taken" or "still_there", the last that is known; ttl_s: the session's own, or null;
              door: its name, when the question comes from a caller without a terminal
    raise     prompt_id, prompt: {...}                the detector saw a waiting moment
    withdraw  prompt_id, reason                       it is no longer there
    typed     prompt_id, outcome, detail              outcome: "typed", "stale" or "failed"; answers `type` and `ask`
    effect    prompt_id, outcome                      "taken": it left the screen; "still_there": it did not in time
    state     attached, rows, cols, stopped           something about the session changed; stopped: by job control,
                                                      also in `hello`
    screen    request, rows, cols, cursor: [row, col], cursor_visible, title, lines: [...] or styled: [[run, ...], ...]
                                                      answers `capture`; also sent by itself while watched (styled)
    end       exit_code, status, typed                the tool has ended; a negative status is the signal's number;
                                                      typed as in `hello`
hub -> host
    welcome
    type      prompt_id, answer: {...}, by            compare, type once, answer with `typed`
    closed    prompt_id, outcome                      it ended here ("expired", "canceled"): nothing will be typed
    over                                              `end` was heard
    ask       prompt_id                               what became of it? answered with `typed` ("none": not typed)
    renew     prompt_id                               its secret answer was lost: raise it again under a new id
    notice    signal, text                            tell the attached terminal: "bell", "osc9" or "title"
    keys      data (latin-1)                          type into the session, outside any prompt (web, opted in)
    capture   request, styled                         one look at the screen
    watch     on, fps                                 send `screen` when it changes, at most `fps` times a second
    continue                                          let a tool that job control has stopped go on
    kill      force                                   end the tool
    goodbye                                           the hub ends on purpose; without it, a host starts a new one

command -> hub: {"op": NAME, ...}; hub -> command: {"ok": true, ...} or {"ok": false, "reason", "message", "hint"}.
Hosts and hubs of an older PROTOCOL are answered: fields are only added, and a reader leaves out what it does not know.
`events` with follow answers with one event per line until the peer goes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

PROTOCOL = 2  # 1: before hubs said their number
MAX_LINE = 4 * 1024 * 1024


class _Usual:
    """How the standard library's scanner is told to read, when nothing else is asked for."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}  # noqa: RUF012


def _make_scanner() -> Any:
    """The C half of `json` alone: the other half needs `re`, and a client has neither time nor use for it."""
    try:
        from _json import make_scanner

        how: Any = _Usual
        return make_scanner(how)
    except (ImportError, AttributeError, TypeError):  # another interpreter, or a later one
        from json import JSONDecoder

        return JSONDecoder().raw_decode


_scan: Any = None  # made when the first message is read: a client has begun to wait by then


def encode(message: dict[str, Any]) -> bytes:
    import json  # not for a client, which has few words

    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass") + b"\n"  # a name of a file may be no text at all


def encode_plain(message: dict[str, str | int]) -> bytes:
    """The same for plain words and numbers: all that a client has to say."""
    items = (
        f'"{name}":"{item}"' if isinstance(item, str) else f'"{name}":{int(item)}' for name, item in message.items()
    )
    return ("{" + ",".join(items) + "}\n").encode("ascii")


class LineBuffer:
    """Cuts a byte stream into messages.  A line that is too long or is not a JSON object raises ValueError."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE:
            raise ValueError("line too long")
        for line in lines:
            if line.strip():
                yield decode(line)


def decode(line: bytes) -> dict[str, Any]:
    global _scan
    _scan = _scan or _make_scanner()
    text = line.decode("utf-8", "surrogatepass").strip(" \t\r\n")
    try:
        message, end = _scan(text, 0)
    except (StopIteration, RecursionError):  # or nested so deeply that nobody could have meant it
        raise ValueError("not JSON") from None
    if not isinstance(message, dict) or end != len(text):
        raise ValueError("not a JSON object")
    return message
