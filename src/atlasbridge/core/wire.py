"""The messages between host, hub and commands: one JSON object per line over a Unix socket.

The first line of a peer identifies it: {"m": "hello", ...} is a session host, {"op": ...} is a command.

host -> hub
    hello     session, open: {prompt_id, prompt} or null, typed: [[prompt_id, outcome], ...]  also after every reconnect
              session is SessionRecord.to_wire(); prompt is prompt.codec.encode_prompt(); outcome is the last known of
              "typed", "stale", "failed", "taken" and "still_there"; ttl_s: the session's own, or null;
              integration: its name ("ask", "mcp", …), if the caller has no terminal
    raise     prompt_id, prompt: {...}                the detector found a prompt
    withdraw  prompt_id, reason                       the prompt is no longer on the screen
    typed     prompt_id, outcome, detail              outcome: "typed", "stale" or "failed"; answers `type` and `ask`
    effect    prompt_id, outcome                      "taken": it left the screen; "still_there": it did not in time
    state     attached, rows, cols, stopped           the session changed; stopped: by job control, also in `hello`
    screen    request, rows, cols, cursor: [row, col], cursor_visible, title, lines: [...] or styled: [[run, ...], ...]
                                                      answers `capture`; also sent unasked while watched (styled)
    end       exit_code, status, typed                the tool has ended; a negative status is a signal number;
                                                      typed as in `hello`
hub -> host
    welcome
    type      prompt_id, answer: {...}, by            compare the screen, type once, answer with `typed`
    closed    prompt_id, outcome                      the prompt ended ("expired", "canceled"); nothing will be typed
    over                                              acknowledges `end`
    ask       prompt_id                               requests its outcome; answered with `typed` ("none": not typed)
    renew     prompt_id                               its secret answer was lost: raise it again under a new id
    notice    signal, text                            notify the attached terminal: "bell", "osc9" or "title"
    keys      data (latin-1)                          type into the session, outside any prompt (web, opted in)
    capture   request, styled                         requests the screen once
    watch     on, fps                                 send `screen` when it changes, at most `fps` times a second
    continue                                          continue a tool that job control has stopped
    kill      force                                   end the tool
    goodbye                                           the hub stops on purpose; otherwise a host starts a new one

command -> hub: {"op": NAME, ...}; hub -> command: {"ok": true, ...} or {"ok": false, "reason", "message", "hint"}.
Hosts and hubs with an older PROTOCOL are supported: fields are only added, and a reader ignores unknown fields.
`events` with follow answers with one event per line until the peer disconnects.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

PROTOCOL = 2  # version 1: hubs did not yet send their version
MAX_LINE = 4 * 1024 * 1024


class _Usual:
    """The default settings of the standard library's JSON scanner."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}  # noqa: RUF012


def _make_scanner() -> Any:
    """Uses only the C half of `json`, because the other half imports `re`, which would slow down a client's start."""
    try:
        from _json import make_scanner

        how: Any = _Usual
        return make_scanner(how)
    except (ImportError, AttributeError, TypeError):  # another interpreter, or a later version
        from json import JSONDecoder

        return JSONDecoder().raw_decode


_scan: Any = None  # created when the first message is read, because a client is already waiting by then


def encode(message: dict[str, Any]) -> bytes:
    import json  # imported late: a client does not need it

    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass") + b"\n"  # a file name is not always valid text


def encode_plain(message: dict[str, str | int]) -> bytes:
    """Like `encode`, for plain ASCII strings and numbers, which is all that a client sends."""
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
    except (StopIteration, RecursionError):  # RecursionError: nested too deeply
        raise ValueError("not JSON") from None
    if not isinstance(message, dict) or end != len(text):
        raise ValueError("not a JSON object")
    return message
